"""
The cells of the crash matrix: which server dies how and when, and who calls it.

The reader obeys only what it sees: the decision, the wait and the notes of the exception, or, for a client without amends, the
standard fields of the answer. It is an agent that wants exactly one order.
"""

import itertools
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import httpx2
import msgspec

from amends import FaultError, Operation, recover
from tests.bindings import clients
from tests.crash.shop import APPS, INSTANTS
from tests.ports import free_port

CLIENTS = {each.name: each for each in clients.CLIENTS}
ROOT = Path(__file__).resolve().parents[2]
BOUND = 55.0
"""Seconds within which every reader has its answer."""
STOPPED = 3.0
"""Seconds for which a process is stopped; its lease is shorter."""


class Cell(NamedTuple):
    """One cell of the matrix."""

    client: str
    server: str
    side: str
    """both, client or server: who uses amends."""
    how: str
    """kill, stop or cut: the process is killed or stopped, or the connection is cut between both."""
    instant: str

    def __str__(self):
        return f"{self.client} → {self.server}, amends on {self.side}: {self.how} {self.instant}"


class Outcome(NamedTuple):
    effects: int
    seconds: float
    told: str
    """done, or what the reader was told at last."""


def cells():
    """Every cell."""
    sides = {"both": CLIENTS, "client": CLIENTS, "server": ("plain",), "none": ("plain",)}
    for side, callers in sides.items():
        for client, server, how in itertools.product(callers, APPS, ("kill", "stop", "cut")):
            for instant in ("sent", "in the answer") if how == "cut" else INSTANTS:
                yield Cell(client, server, side, how, instant)


class Server:
    """The shop, started again whenever its process has ended."""

    def __init__(self, cell, folder):
        self.folder, self.port = folder, free_port()
        kind = cell.server if cell.side in {"both", "server"} else f"plain-{cell.server}"
        lease = "1" if cell.how == "stop" else "30"
        how = "none" if cell.how == "cut" else cell.how
        self._command = ["-m", "tests.crash.shop", kind, self.port, folder, how, cell.instant, lease]
        self._closing = threading.Event()
        self._start()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _start(self):
        self._process = subprocess.Popen(
            [sys.executable, *map(str, self._command)], cwd=ROOT, stderr=subprocess.DEVNULL
        )
        until = time.monotonic() + 30
        while time.monotonic() < until and self._process.poll() is None:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            self._closing.wait(0.02)

    def _watch(self):
        while not self._closing.wait(0.02):
            if self._process.poll() is not None:
                self._start()
            elif _state(self._process.pid) == "T":
                self._closing.wait(STOPPED)
                os.kill(self._process.pid, signal.SIGCONT)

    def close(self):
        self._closing.set()
        self._thread.join()
        self._process.kill()
        self._process.wait()


def _state(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


class Proxy:
    """Passes bytes on, and cuts the first connection: after the request was sent, or in the answer."""

    def __init__(self, port, instant):
        self._target, self._instant, self._cut = port, instant, False
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._pass_on, args=[connection], daemon=True).start()

    def _pass_on(self, caller):
        with caller, socket.create_connection(("127.0.0.1", self._target)) as server:
            threading.Thread(target=self._pump, args=[caller, server], daemon=True).start()
            while True:
                try:
                    part = server.recv(65536)
                except OSError:
                    return
                if not part:
                    return
                if not self._cut:
                    self._cut = True
                    if self._instant == "in the answer":
                        caller.sendall(part[: len(part) // 2])
                    caller.shutdown(socket.SHUT_RDWR)
                    return
                caller.sendall(part)

    @staticmethod
    def _pump(source, target):
        try:
            while part := source.recv(65536):
                target.sendall(part)
        except OSError:
            pass

    def close(self):
        self._listener.close()


def run(cell, folder):
    """Run one cell."""
    server = Server(cell, folder)
    proxy = Proxy(server.port, cell.instant) if cell.how == "cut" else None
    url = f"http://127.0.0.1:{server.port if proxy is None else proxy.port}/orders"
    began = time.monotonic()
    try:
        order = plain_order if cell.client == "plain" else typed_order
        told = order(cell, url, lambda: placed(folder))
        seconds = time.monotonic() - began
        settle(server, cell)
    finally:
        server.close()
        if proxy is not None:
            proxy.close()
    return Outcome(placed(folder), seconds, told)


def settle(server, cell):
    """Let a process that is stopped go on: what it does then counts."""
    if cell.how == "stop":
        until = time.monotonic() + 2 * STOPPED
        while _state(server._process.pid) == "T" and time.monotonic() < until:
            time.sleep(0.05)
        time.sleep(0.3)


def placed(folder):
    with closing(sqlite3.connect(Path(folder) / "orders.db", timeout=20)) as file:
        return file.execute("SELECT count(*) FROM orders").fetchone()[0]


def typed_order(cell, url, look):
    """An agent whose client uses amends: it reads the exception."""
    client, key = CLIENTS[cell.client], None
    options = {"keyed": True} if cell.side == "both" else {}
    for _ in range(4):
        try:
            call = lambda: client.call("POST", url, json={"item": "book"}, timeout=2, options=dict(options))  # noqa: E731
            reply = call() if key is None else recover(call, operation=Operation(key=key))
        except FaultError as error:
            decision = error.decision
            told = f"{error.fault.code} {decision.action}"
            if error.fault.executed == "maybe":
                key = error.key
            if decision.action == "verify":
                # The advice: find out, or send it again with the same key. A lost call may still act, so this agent
                # looks after a while, and does not send it with another key.
                time.sleep(STOPPED + 1 if cell.how == "stop" else 1)
                return f"{told}, found {look()}"
            if decision.action != "escalate" or decision.resume_in is None:
                return told
            time.sleep(min(decision.resume_in, BOUND))
            continue
        return "done" if reply.status == 201 else f"status {reply.status}"
    return told


def plain_order(cell, url, look):
    """A client without amends that sets a key by hand and reads the standard fields of a problem document."""
    key = f"{time.time_ns()}" if cell.side == "server" else None
    told = "nothing"
    until = time.monotonic() + BOUND
    with httpx2.Client(timeout=2) as client:
        while time.monotonic() < until:
            try:
                answer = client.post(
                    url, json={"item": "book"}, headers={} if key is None else {"Idempotency-Key": key}
                )
            except httpx2.TransportError as error:
                told = type(error).__name__
                if key is None:
                    return told  # nothing can be known
                time.sleep(0.5)
                continue
            if answer.status_code == 201:
                return "done"
            problem = msgspec.json.decode(answer.content) if answer.content else {}
            told = f"{answer.status_code} {problem.get('code')}"
            if not problem.get("is_retriable"):
                return f"{told}, found {look()}"
            time.sleep(float(answer.headers.get("retry-after", 1)))
    return told
