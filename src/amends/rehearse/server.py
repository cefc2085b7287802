"""The HTTP server of the stage on loopback: a thread for each connection, and endings that no framework would produce."""

from __future__ import annotations

import select
import socket
import threading
import time
from collections.abc import Iterable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

import msgspec

from amends.rehearse.exchange import Answer, Request
from amends.rehearse.stage import CallRecord, Stage

__all__ = ["CONTROL", "ORIGIN", "StageServer"]

ORIGIN = "x-amends-rehearsal-origin"
"""The header in which the interception says which origin a call was meant for."""
CONTROL = "/.amends-rehearsal/"
"""The path of what the interception and the guards of child processes tell the stage."""

_POLL = 0.02
_IDLE = 60.0
"""Seconds that a kept connection waits for its next request."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, owner: StageServer, service: str | None) -> None:
        self.owner, self.stage, self.service = owner, owner.stage, service
        super().__init__(("127.0.0.1", 0), _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A caller that goes away is no error of the stage."""


class StageServer:
    """
    The servers of a stage: one for the interception and for control, and one for each service.

    A service is first given its server when its address is asked for.
    """

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self._servers: dict[str | None, _Server] = {}
        self._closed_port = socket.socket()
        self._closed_port.bind(("127.0.0.1", 0))  # bound and not listening: connections to it are refused
        self._plain = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._break_handshakes, name="amends-rehearsal-tls", daemon=True).start()
        self.joined = 0
        """How many processes have begun the interception."""

    @property
    def refusing_port(self) -> int:
        """A port that refuses connections."""
        return int(self._closed_port.getsockname()[1])

    @property
    def tls_port(self) -> int:
        """A port on which a TLS handshake fails."""
        return int(self._plain.getsockname()[1])

    def _break_handshakes(self) -> None:
        """Answer every handshake with what is no TLS."""
        while True:
            try:
                connection, _ = self._plain.accept()
            except OSError:
                return
            with connection:
                connection.settimeout(1)
                try:
                    connection.recv(4096)
                    connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
                except OSError:
                    pass

    def port(self, service: str | None = None) -> int:
        """Return the port of a service, or that of the interception."""
        if service not in self._servers:
            server = _Server(self, service)
            self._servers[service] = server
            name = f"amends-rehearsal-{service or 'stage'}"
            threading.Thread(
                target=server.serve_forever, kwargs={"poll_interval": 0.05}, name=name, daemon=True
            ).start()
        return int(self._servers[service].server_address[1])

    def ports(self) -> dict[str, int]:
        """Return the ports of the services that have a server."""
        return {name: self.port(name) for name in list(self._servers) if name is not None}

    def address(self, service: str | None = None) -> str:
        """Return the address of a service, or that of the interception."""
        return f"http://127.0.0.1:{self.port(service)}"

    def close(self) -> None:
        """Stop all servers."""
        self.stage.closing.set()
        for server in self._servers.values():
            server.shutdown()
            server.server_close()
        self._servers.clear()
        self._closed_port.close()
        self._plain.close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = _IDLE
    server: _Server

    def setup(self) -> None:
        """Send small answers at once."""
        super().setup()
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def handle_one_request(self) -> None:
        """Read one request and answer it."""
        try:
            self.raw_requestline = self.rfile.readline(65537)
            if not self.raw_requestline or not self.parse_request():
                self.close_connection = True
                return
            if self.command == "CONNECT":
                self._refuse_tunnel(self.path)
                return
            body = self._body()
            if self.path.startswith(CONTROL):
                self._control(body)
                return
            self._call(body)
        except (OSError, ValueError):
            self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing is logged: the output belongs to the program under test."""

    def _body(self) -> bytes:
        if "chunked" in self.headers.get("transfer-encoding", "").lower():
            pieces = []
            while size := int(self.rfile.readline(256).split(b";")[0] or b"0", 16):
                pieces.append(self.rfile.read(size))
                self.rfile.readline(8)
            while self.rfile.readline(65537).strip():
                pass
            return b"".join(pieces)
        return self.rfile.read(int(self.headers.get("content-length") or 0))

    def _call(self, body: bytes) -> None:
        stage, name, target, origin = self.server.stage, self.server.service, self.path, ""
        if target.startswith("http://"):
            # A client that takes this server for its proxy.
            parts = urlsplit(target)
            if parts.hostname not in {"127.0.0.1", "localhost", "::1"}:
                self._refuse_tunnel(parts.netloc)
                return
            target = parts._replace(scheme="", netloc="").geturl() or "/"
        if name is None:
            origin = self.headers.get(ORIGIN, "")
            service = stage.service_for(urlsplit(origin).hostname or "") if origin else None
            if service is None:
                self._send(Answer(status=421, body=b"no service of this rehearsal"), None)
                return
            name = service.name
        headers = tuple((key, value) for key, value in self.headers.items() if key.lower() != ORIGIN)
        request = Request(name, self.command, target, headers, body, origin)
        answer, call = stage.handle(request)
        self._send(answer, call)

    def _send(self, answer: Answer, call: CallRecord | None) -> None:
        stage = self.server.stage
        if answer.ending in {"silent", "late"}:
            held, gone = self._hold()
            if gone or answer.ending == "silent" or stage.closing.is_set():
                self._finish(call, abandoned=gone, held=held)
                self.close_connection = True
                return
        else:
            held = 0.0
        if answer.ending == "lost":
            self._finish(call)
            self._cut()
            return
        self._write(answer)
        self._finish(call, held=held)
        if answer.ending == "cut":
            self._cut()

    def _finish(self, call: CallRecord | None, *, abandoned: bool = False, held: float = 0.0) -> None:
        if call is not None:
            self.server.stage.finished(call, abandoned=abandoned, held=held)

    def _write(self, answer: Answer) -> None:
        try:
            phrase = HTTPStatus(answer.status).phrase
        except ValueError:
            phrase = ""
        named = {name.lower() for name, _ in answer.headers}
        lines = [
            f"HTTP/1.1 {answer.status} {phrase}",
            *(f"{name}: {value}" for name, value in answer.headers),
        ]
        bodiless = self.command == "HEAD" or answer.status in {204, 304} or answer.status < 200
        chunked = answer.parts is not None and "content-length" not in named and not bodiless
        if chunked:
            lines.append("transfer-encoding: chunked")
        elif "content-length" not in named and answer.status not in {204, 304}:
            lines.append(f"content-length: {len(answer.body)}")
        head = ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1", "replace")
        if bodiless:
            self.wfile.write(head)
        elif chunked:
            self.wfile.write(head)
            self._write_chunks(answer.parts or (), end=answer.ending != "cut")
        else:
            self.wfile.write(head + (answer.body if answer.parts is None else b"".join(answer.parts)))
        if answer.header("connection").lower() == "close":
            self.close_connection = True

    def _write_chunks(self, parts: Iterable[bytes], *, end: bool) -> None:
        for part in parts:
            if part:
                self.wfile.write(f"{len(part):x}\r\n".encode() + part + b"\r\n")
        if end:
            self.wfile.write(b"0\r\n\r\n")

    def _cut(self) -> None:
        """End the connection without an answer, or without the rest of it."""
        self.close_connection = True
        try:
            self.connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

    def _hold(self) -> tuple[float, bool]:
        """Wait until the caller goes away, patience is over or the run ends; return the seconds, and whether it went away."""
        stage, started = self.server.stage, time.monotonic()
        closing = stage.closing
        while (held := time.monotonic() - started) < stage.plan.patience and not closing.is_set():
            readable, _, _ = select.select([self.connection], [], [], _POLL)
            if readable and self._gone():
                return held, True
        return held, False

    def _gone(self) -> bool:
        try:
            if self.connection.recv(1, socket.MSG_PEEK) == b"":
                return True
        except OSError:
            return True
        time.sleep(_POLL)  # a pipelined request is waiting
        return False

    def _refuse_tunnel(self, address: str) -> None:
        """Refuse a connection beyond this machine, for clients that take this server for their proxy."""
        self.server.stage.violated(address, self.headers.get("user-agent", "a client that uses HTTPS_PROXY"))
        text = b"a rehearsal makes no connections beyond this machine\n"
        self._send(Answer(status=403, headers=(("connection", "close"),), body=text), None)
        self.close_connection = True

    def _control(self, body: bytes) -> None:
        """Answer the interception and the guards of other processes."""
        stage, action = self.server.stage, self.path.removeprefix(CONTROL)
        document = msgspec.json.decode(body) if body else {}
        result: object = {}
        if action == "hello":
            owner = self.server.owner
            owner.joined += 1
            result = {
                "refusing": owner.refusing_port,
                "tls": owner.tls_port,
                "asks": stage.needs_connections(),
                "services": owner.ports(),
            }
        elif action == "violation":
            stage.violated(str(document.get("address")), str(document.get("by")))
        elif action == "service":
            service = stage.service_for(str(document.get("host")))
            result = {"service": service.name if service is not None else None}
        elif action == "connect":
            named = document.get("service")
            service = stage.services.get(named) if named else stage.service_for(str(document.get("host")))
            kind = None
            if service is not None:
                kind = stage.connecting(
                    Request(service.name, str(document.get("method")), str(document.get("target")))
                )
            result = {"fails": kind}
        headers = (("content-type", "application/json"),)
        self._send(Answer(headers=headers, body=msgspec.json.encode(result)), None)
