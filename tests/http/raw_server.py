"""A server on a socket that sends exactly the bytes of its script: bodies that break off, and answers that never end."""

import socket
import threading
from contextlib import contextmanager, suppress


class RawServer:
    """`script` is a list of answers; the last one is repeated. An answer is bytes, or a function of the connection."""

    def __init__(self, listener):
        self.listener = listener
        self.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        self.script = [answer(200, b"fine")]
        self.requests = []
        self.open = 0
        self.stop = threading.Event()
        self.changed = threading.Condition()

    def run(self):
        while not self.stop.is_set():
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        self._count(1)
        try:
            with connection, connection.makefile("rb") as file, suppress(OSError):
                while (request := read_request(file)) is not None:
                    self.requests.append(request)
                    step = self.script[min(len(self.requests), len(self.script)) - 1]
                    if callable(step):
                        step = step(self, connection)
                    if step is None:
                        return
                    connection.sendall(step)
                    if b"connection: close" in step.lower():
                        return
        finally:
            self._count(-1)

    def _count(self, more):
        with self.changed:
            self.open += more
            self.changed.notify_all()


def read_request(file):
    """Return (method, path, headers, body), or None at the end of the connection."""
    start = file.readline()
    if not start.strip():
        return None
    headers = {}
    while (line := file.readline()).strip():
        name, _, value = line.decode("latin-1").partition(":")
        headers[name.strip().lower()] = value.strip()
    body = file.read(int(headers.get("content-length", 0)))
    method, path, _ = start.decode("latin-1").split(" ", 2)
    return method, path, headers, body


def answer(status, body=b"", headers=None, *, length=None, close=False):
    """Return the bytes of an answer; `length` is a Content-Length that may be wrong, `close` ends the connection."""
    lines = [f"HTTP/1.1 {status} Status", f"Content-Length: {len(body) if length is None else length}"]
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    if close:
        lines.append("Connection: close")
    return ("\r\n".join(lines) + "\r\n\r\n").encode() + body


def drip(status=200, headers=None, part=b"x", every=0.05):
    """Send a body of 1 MiB in small parts until the client or the test ends it."""

    def send(server, connection):
        connection.sendall(answer(status, b"", headers, length=1024 * 1024))
        while not server.stop.wait(every):
            connection.sendall(part)

    return send


@contextmanager
def raw_server(*script):
    """Run a RawServer, and yield it."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = RawServer(listener)
        if script:
            server.script = list(script)
        thread = threading.Thread(target=server.run, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.stop.set()
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
