"""A service on loopback that fails on demand, and remembers who asked."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from amends.audit.evidence import Request

__all__ = ["RETRY_AFTER", "SCENARIOS", "Fixture", "fixture"]

SCENARIOS = ("429", "503", "401", "404", "422", "hang", "drop")
RETRY_AFTER = 2
"""Seconds the rate limit asks for: more than an impatient tool waits, less than an audit may take."""
_HEADERS = {"429": {"Retry-After": str(RETRY_AFTER)}, "401": {"WWW-Authenticate": "Bearer"}}


class Fixture:
    """The server's address, what it does now, and what it has seen."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.scenario = "404"
        self.over = threading.Event()
        self._requests: list[Request] = []
        self._began = time.monotonic()
        self._lock = threading.Lock()

    def begin(self, scenario: str) -> None:
        """Fail this way from now on, and forget what was seen."""
        with self._lock:
            self.scenario, self._requests, self._began = scenario, [], time.monotonic()

    def saw(self, method: str, path: str) -> None:
        """Remember a request."""
        with self._lock:
            at = round(time.monotonic() - self._began, 3)
            self._requests.append(Request(method, path[:200], at))

    @property
    def requests(self) -> list[Request]:
        """Those of the present scenario."""
        with self._lock:
            return list(self._requests)


@contextmanager
def fixture() -> Iterator[Fixture]:
    """Serve while the block lasts."""
    server = _Server(("127.0.0.1", 0), _Handler)
    server.fixture = Fixture(server.server_port)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield server.fixture
    finally:
        server.fixture.over.set()
        server.shutdown()
        server.server_close()
        thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    fixture: Fixture

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A tool that hangs up is nothing to talk about."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    timeout = 30

    def _answer(self) -> None:
        here = self.server.fixture
        here.saw(self.command, self.path)
        length = self.headers.get("Content-Length", "")
        if length.isdecimal():
            self.rfile.read(min(int(length), 1_000_000))
        if here.scenario == "hang":
            here.over.wait(60)
        if here.scenario in {"hang", "drop"}:
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        status = int(here.scenario)
        body = b'{"message": "this is the audit\'s fixture", "status": %d}' % status
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        for name, value in _HEADERS.get(here.scenario, {}).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = do_OPTIONS = _answer  # noqa: N815

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: the requests are remembered, and stderr is the audit's."""
