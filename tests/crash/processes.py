"""The processes of a run: started from one that has imported everything, started again when they end, continued when they stop."""

import multiprocessing
import os
import signal
import socket
import sqlite3
import threading
import time
from contextlib import closing, suppress
from pathlib import Path

from tests.crash.instants import INSIDE, pid_of, reach, state_of
from tests.stores.servers import NatsServer

STOPPED = {"stop": 3.0, "long stop": 70.0}
"""Seconds for which a process is stopped: longer than its lease, which is a second, or the 30 s of the library."""
LOOKS = 4.0
"""Seconds after which a reader looks whether a call that may still act had its effect."""
DOWN = 1.0
"""Seconds until a process that was killed is started again."""


def forkserver():
    """Return the context that starts processes."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.crash.preload"])
    return context


def when_open(port, seconds=60.0):
    """Wait until something listens."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.02)


class Process:
    """One part of a run. It is started again after it ended, unless `again` is False."""

    def __init__(self, folder, name, target, args, *, port=None, again=True):
        self.folder, self.name, self.port, self.again = folder, name, port, again
        self._target, self._args = target, args
        self._closing = threading.Event()
        self.ended = threading.Event()
        self._start()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _start(self):
        self._process = forkserver().Process(
            target=self._target, args=[str(self.folder), self.name, *self._args], daemon=True
        )
        self._process.start()
        if self.port is not None:
            when_open(self.port)

    def _watch(self):
        while not self._closing.wait(0.02):
            if not self._process.is_alive():
                if not self.again or self._process.exitcode == 0:
                    self.ended.set()
                    return
                self._closing.wait(DOWN)
                if not self._closing.is_set():
                    self._start()

    def close(self):
        self._closing.set()
        self._thread.join()
        self._process.kill()
        self._process.join()


class Store:
    """The store of a run: a file that another process can lock, or a real nats-server."""

    def __init__(self, folder, kind, seconds):
        self.folder, self.kind, self._seconds = Path(folder), kind, seconds
        self._closing = threading.Event()
        if kind == "nats":
            self._nats = NatsServer(self.folder / "nats")
            self._nats.start()
            self.url = f"{self._nats.url}/crash"
            self._enter()
        else:
            self.url = f"sqlite:///{folder}/keys.db"
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _enter(self):
        pids = self.folder / "pids"
        pids.mkdir(exist_ok=True)
        (pids / "store").write_text(str(self._nats.process.pid))

    def _watch(self):
        while not self._closing.wait(0.02):
            if self.kind != "nats":
                if (self.folder / "lock").exists() and not (self.folder / "locked").exists():
                    self._lock()
            elif self._nats.process.poll() is not None:
                self._closing.wait(DOWN)
                self._nats.start()
                self._enter()

    def _lock(self):
        with closing(sqlite3.connect(self.folder / "keys.db", timeout=20, isolation_level=None)) as file:
            file.execute("BEGIN EXCLUSIVE")
            (self.folder / "locked").touch()
            self._closing.wait(self._seconds)
            file.execute("ROLLBACK")

    def close(self):
        self._closing.set()
        self._thread.join()
        if self.kind == "nats":
            with suppress(ProcessLookupError):
                os.kill(self._nats.process.pid, signal.SIGCONT)
            self._nats.kill()


class Waker:
    """Continues the processes of a run that are stopped, each after its time."""

    def __init__(self, folder, seconds):
        self._pids, self._seconds = Path(folder) / "pids", seconds
        self._closing = threading.Event()
        self._since = {}
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self):
        while not self._closing.wait(0.05):
            for path in self._pids.glob("*"):
                pid = pid_of(self._pids.parent, path.name)
                if pid is None or state_of(pid) != "T":
                    self._since.pop(pid, None)
                elif time.monotonic() - self._since.setdefault(pid, time.monotonic()) > self._seconds:
                    with suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGCONT)

    @property
    def stopped(self):
        """Whether a process is stopped now."""
        return bool(self._since)

    def close(self):
        self._closing.set()
        self._thread.join()


class Proxy:
    """
    Passes bytes on, and reaches the instants between both ends.

    The call is the first request with one of the marks in it; or, without marks, the first bytes after the caller said that it is
    about to send (the file `armed`).
    """

    def __init__(self, folder, port, how, instant, marks):
        self._folder, self._target = Path(folder), port
        self._how, self._instant, self._marks = how, instant, marks
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                caller, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=[caller], daemon=True).start()

    def _serve(self, caller):
        if self._instant == "before sending" and self._how == "cut" and reach(self._folder, self._instant):
            caller.close()
            return
        try:
            server = socket.create_connection(("127.0.0.1", self._target), timeout=10)
        except OSError:
            caller.close()
            return
        server.settimeout(None)
        with caller, server:
            armed = threading.Event()
            down = threading.Thread(target=self._down, args=[server, caller, armed], daemon=True)
            down.start()
            self._up(caller, server, armed)
            down.join()

    def _up(self, caller, server, armed):
        try:
            while part := caller.recv(65536):
                if not armed.is_set() and self._is_call(part):
                    part += _rest(caller)
                    armed.set()
                    if self._instant == "sent" and self._how != "cut":
                        reach(self._folder, "sent")
                server.sendall(part)
                cuts = armed.is_set() and self._instant == "sent" and self._how == "cut"
                if cuts and reach(self._folder, "sent"):
                    _close(caller, server)
                    return
            server.shutdown(socket.SHUT_WR)
        except OSError:
            _close(caller, server)

    def _is_call(self, part):
        if not self._marks:
            return (self._folder / "armed").exists()
        return any(mark in part for mark in self._marks)

    def _down(self, server, caller, armed):
        try:
            while part := server.recv(65536):
                if armed.is_set() and self._instant not in INSIDE and not (self._folder / "died").exists():
                    if self._instant == "in the answer":
                        caller.sendall(part[: len(part) // 2])
                        part = part[len(part) // 2 :]
                        time.sleep(0.05)
                    if self._instant == "between answer and client":
                        part += _rest(server)
                    if reach(self._folder, self._instant) and self._how == "cut":
                        _close(caller, server)
                        return
                caller.sendall(part)
        except OSError:
            pass
        _close(caller, server)

    def close(self):
        self._listener.close()


def _rest(source):
    """Return what else arrives within a moment."""
    found = b""
    source.settimeout(0.15)
    try:
        while part := source.recv(65536):
            found += part
    except TimeoutError:
        pass
    finally:
        source.settimeout(None)
    return found


def _close(*sockets):
    for each in sockets:
        with suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)
