"""A service on loopback that fails in a chosen way and records the requests it receives."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from amends.audit.evidence import Request

__all__ = ["RETRY_AFTER", "SCENARIOS", "Fixture", "fixture"]

SCENARIOS = ("429", "503", "401", "404", "422", "hang", "drop")
RETRY_AFTER = 2
"""Seconds in the 429's Retry-After: longer than a tool that ignores the header waits, and short enough for an audit."""
_HEADERS = {"429": {"Retry-After": str(RETRY_AFTER)}, "401": {"WWW-Authenticate": "Bearer"}}


class Fixture:
    """The server's address, its current scenario, and the requests it received."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.scenario = "404"
        self.stopping = threading.Event()
        self._requests: list[Request] = []
        self._started = time.monotonic()
        self._lock = threading.Lock()

    def begin(self, scenario: str) -> None:
        """Switch to a scenario and clear the recorded requests."""
        with self._lock:
            self.scenario, self._requests, self._started = scenario, [], time.monotonic()

    def record(self, method: str, path: str) -> None:
        """Record a request."""
        with self._lock:
            at = round(time.monotonic() - self._started, 3)
            self._requests.append(Request(method, path[:200], at))

    @property
    def requests(self) -> list[Request]:
        """The requests of the current scenario."""
        with self._lock:
            return list(self._requests)


@contextmanager
def fixture() -> Iterator[Fixture]:
    """Run the server for the duration of the block."""
    server = _Server(("127.0.0.1", 0), _Handler)
    server.fixture = Fixture(server.server_port)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield server.fixture
    finally:
        server.fixture.stopping.set()
        server.shutdown()
        server.server_close()
        thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    fixture: Fixture

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore errors of a connection: a tool may close it at any time."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    timeout = 30

    def _respond(self) -> None:
        fixture = self.server.fixture
        fixture.record(self.command, self.path)
        length = self.headers.get("Content-Length", "")
        if length.isdecimal():
            self.rfile.read(min(int(length), 1_000_000))
        if fixture.scenario == "hang":
            fixture.stopping.wait(60)
        if fixture.scenario in {"hang", "drop"}:
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        status = int(fixture.scenario)
        body = b'{"message": "this is the audit\'s fixture", "status": %d}' % status
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        for name, value in _HEADERS.get(fixture.scenario, {}).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = do_OPTIONS = _respond  # noqa: N815

    def log_message(self, format: str, *args: object) -> None:
        """Write no log: the requests are recorded, and stderr belongs to the audit."""
