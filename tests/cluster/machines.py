"""Runtime nodes as processes that can be killed, and a TCP proxy that can be cut."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

from amends.arcp.transports import ConnectionLost
from amends.arcp.transports.websocket import dial
from tests.ports import free_port

ROOT = Path(__file__).parents[2]
TOKEN = "alice-token"
AGENTS = ("steps=tests.cluster.work:steps", "patient=tests.cluster.work:patient")


def announcement(process):
    """Read the JSON line that `serve` and `worker` print once they are ready; fails with their error otherwise."""
    line = process.stdout.readline()
    assert line, process.stderr.read()
    announced = json.loads(line)
    assert {"listening", "working"} & announced.keys(), announced
    return announced


class RuntimeProcess:
    """`amends runtime serve` or `worker` as a process, which can be restarted at the same port after a kill."""

    def __init__(self, store, *options, agents=AGENTS, lease=2.0, worker=False, **environment):
        self.store = store
        self._environment = environment
        self.port = 0 if worker else free_port()
        command = [sys.executable, "-m", "amends", "runtime"]
        command += ["worker", "--agents", *agents] if worker else ["serve", *agents, "--port", str(self.port)]
        self.command = [*command, "--store", store, "--lease", str(lease), *options]
        self.process = None
        self.complains = False
        """Whether it is expected to log tracebacks of store failures."""

    def start(self, *, wait=True):
        environment = {**os.environ, "AMENDS_RUNTIME_TOKEN": f"alice={TOKEN}", "PYTHONPATH": str(ROOT)}
        environment |= self._environment
        self.process = subprocess.Popen(
            self.command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        if wait:
            self.wait()

    def wait(self):
        """Wait until the process is ready."""
        announcement(self.process)

    @property
    def url(self):
        return f"ws://127.0.0.1:{self.port}/arcp"

    def kill(self):
        self.process.kill()
        self._reap()

    def stop(self, within=40):
        """Stop it with SIGTERM; returns its exit code."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(within)
            except subprocess.TimeoutExpired:
                self.process.kill()
        return self._reap()

    def _reap(self):
        if self.process is None:
            return None
        _, err = self.process.communicate()
        assert self.complains or "Traceback" not in err, err
        return self.process.returncode


def start_all(machines, *processes):
    """Start processes at the same time, and wait until all are ready; an exit stack stops them."""
    for process in processes:
        process.start(wait=False)
        machines.callback(process.stop, 2)
    for process in processes:
        process.wait()
    return processes


def balancer(nodes, seed=0):
    """Return a dial function that uses any node that answers, like a load balancer."""
    dice = random.Random(seed)

    async def connect():
        for node in dice.sample(nodes, len(nodes)):
            try:
                return await dial(node.url, open_timeout=5)
            except ConnectionLost:
                continue
        raise ConnectionLost

    return connect


class Wire:
    """A TCP proxy in front of a server. While it is cut, it transfers nothing and closes no connection."""

    def __init__(self, port):
        self._target = port
        self._whole = asyncio.Event()
        self._whole.set()
        self._tasks = set()
        self._server = None
        self.port = 0

    async def __aenter__(self):
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_):
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def cut(self):
        self._whole.clear()

    def restore(self):
        self._whole.set()

    async def _accept(self, reader, writer):
        self._tasks.add(asyncio.current_task())
        await self._whole.wait()
        try:
            there_reader, there_writer = await asyncio.open_connection("127.0.0.1", self._target)
        except OSError:
            writer.close()
            return
        try:
            await asyncio.gather(self._carry(reader, there_writer), self._carry(there_reader, writer))
        finally:
            there_writer.close()
            writer.close()

    async def _carry(self, reader, writer):
        try:
            while data := await reader.read(65536):
                await self._whole.wait()
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        finally:
            writer.close()
