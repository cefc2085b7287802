"""A server on the loopback that answers every request with the next answer of its script, and the last one from then on."""

import json
import socket
import struct
import threading
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Answer:
    """
    One answer: status, headers and body as a value or a text.

    `cut` closes the connection after that many bytes of the body; -1 resets it before the answer, -2 never answers.
    """

    def __init__(self, status, body=None, headers=None, cut=None):
        self.status = status
        self.cut = cut
        self.headers = dict(headers or {})
        if body is None:
            self.body = b""
        elif isinstance(body, bytes | str):
            self.body = body.encode() if isinstance(body, str) else body
        else:
            self.body = json.dumps(body).encode()
        if not any(name.lower() == "content-type" for name in self.headers):
            kind = "application/xml" if self.body[:1] == b"<" else "application/json"
            self.headers["Content-Type"] = kind


class Server(ThreadingHTTPServer):
    """Counts the requests to all paths but those that an SDK asks before its first call."""

    daemon_threads = True
    request_queue_size = 32

    def __init__(self, script, prelude):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.script, self.prelude = list(script), prelude
        self.requests = []
        self.lock = threading.Lock()
        self.stopped = threading.Event()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}"

    def answer_to(self, path, headers):
        for part, answer in self.prelude.items():
            if part in path:
                return answer
        with self.lock:
            self.requests.append((path, dict(headers)))
            return self.script.pop(0) if len(self.script) > 1 else self.script[0]

    def handle_error(self, request, client_address):
        """Clients may leave at any time."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self):
        length = int(self.headers.get("Content-Length") or 0)
        if self.headers.get("Transfer-Encoding", "") == "chunked":
            while (size := int(self.rfile.readline().strip() or b"0", 16)) > 0:
                self.rfile.read(size + 2)
            self.rfile.readline()
        self.rfile.read(length)
        answer = self.server.answer_to(self.path, self.headers)
        if answer.cut is not None and answer.cut < 0:
            self.close_connection = True
            if answer.cut == -2:
                self.server.stopped.wait(30)
            else:
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            return
        self.send_response_only(answer.status)
        for name, value in answer.headers.items():
            if name.lower() != "content-length":
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body[: answer.cut])
        if answer.cut is not None:
            self.close_connection = True

    do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = do_HEAD = answer  # noqa: N815 - names of the base class

    def log_message(self, *_):
        """Say nothing."""


@contextmanager
def serving(*script, prelude=None):
    """Run a server with these answers, and yield it."""
    server = Server(script, prelude or {})
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.stopped.set()
        server.shutdown()
        server.server_close()
        thread.join(5)


@contextmanager
def silent_port():
    """Yield a port on which a connection is never established: its queue of connections is full."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        waiting = [socket.socket() for _ in range(4)]
        for each in waiting:
            each.setblocking(False)
            with suppress(BlockingIOError):
                each.connect(listener.getsockname())
        try:
            yield listener.getsockname()[1]
        finally:
            for each in waiting:
                each.close()


def closed_port():
    """Return a port on which nothing listens."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]
