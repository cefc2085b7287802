"""Servers on the loopback, each of which fails in one way."""

import socket
import ssl
import struct
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

Behaviour = Callable[[socket.socket], None]

HOST = "127.0.0.1"


@contextmanager
def serving(behave: Behaviour) -> Iterator[int]:
    """Yield a port. Each connection to it is handled by `behave` in a thread of its own."""
    listener = socket.create_server((HOST, 0))
    threads: list[threading.Thread] = []
    held: list[socket.socket] = []

    def handle(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            behave(connection)

    def accept() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                held.append(connection)
                threads.append(threading.Thread(target=handle, args=(connection,), daemon=True))
                threads[-1].start()

    accepting = threading.Thread(target=accept, daemon=True)
    accepting.start()
    try:
        yield listener.getsockname()[1]
    finally:
        # Closing the socket does not end a blocked accept.
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        for connection in held:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for thread in [accepting, *threads]:
            thread.join(5)


@contextmanager
def refused() -> Iterator[int]:
    """Yield a port on which nothing listens, and which no other process gets meanwhile."""
    with socket.socket() as holder:
        holder.bind((HOST, 0))
        yield holder.getsockname()[1]


@contextmanager
def unresponsive() -> Iterator[int]:
    """Yield a port with a full backlog: the handshake of a further connection is never answered."""
    with ExitStack() as stack:
        listener = stack.enter_context(socket.socket())
        listener.bind((HOST, 0))
        listener.listen(0)
        for _ in range(4):
            filler = stack.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(listener.getsockname())
        yield listener.getsockname()[1]


def read_request(connection: socket.socket) -> bytes:
    """Return what a client sends, up to the end of its headers."""
    read = b""
    while b"\r\n\r\n" not in read:
        more = connection.recv(65536)
        if not more:
            break
        read += more
    return read


def answering(status: int, headers: dict[str, str] | None = None, body: bytes = b"") -> Behaviour:
    """Return a behaviour that sends a complete HTTP response."""
    lines = {"Content-Length": str(len(body)), "Connection": "close", **(headers or {})}
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())

    def behave(connection: socket.socket) -> None:
        read_request(connection)
        connection.sendall(f"HTTP/1.1 {status} Status\r\n{head}\r\n".encode() + body)

    return behave


def hanging(connection: socket.socket) -> None:
    """Read the request and never answer."""
    while connection.recv(65536):
        pass


def closing(connection: socket.socket) -> None:
    """Read the request and close the connection."""
    read_request(connection)


def resetting(connection: socket.socket) -> None:
    """Read the request and reset the connection."""
    read_request(connection)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def not_speaking_http(connection: socket.socket) -> None:
    """Answer with bytes that are neither HTTP nor TLS."""
    connection.recv(65536)
    connection.sendall(b"220 mail.acme.internal ESMTP ready\r\n\r\n")


def truncating(connection: socket.socket) -> None:
    """Send less than the announced length."""
    read_request(connection)
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc")


def certificate(folder: Path) -> ssl.SSLContext:
    """Return a server's TLS context with a self-signed certificate."""
    key, cert = folder / "key.pem", folder / "cert.pem"
    subprocess.run(
        [
            *(
                "openssl",
                "req",
                "-x509",
                "-newkey",
                "ec",
                "-pkeyopt",
                "ec_paramgen_curve:prime256v1",
                "-nodes",
            ),
            *("-keyout", key, "-out", cert, "-days", "1", "-subj", "/CN=localhost"),
        ],
        check=True,
        capture_output=True,
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    return context


def encrypted(context: ssl.SSLContext) -> Behaviour:
    """Return a behaviour that uses TLS and sends a response with status 200."""

    def behave(connection: socket.socket) -> None:
        with context.wrap_socket(connection, server_side=True) as secure:
            answering(200)(secure)

    return behave


def postgres(*answers: bytes | None) -> Behaviour:
    """
    Return a behaviour that accepts a PostgreSQL login and sends one scripted error for every query.

    An answer is a SQLSTATE, or None to close the connection instead.
    """

    def behave(connection: socket.socket) -> None:
        replies = iter(answers)
        _message(connection, typed=False)
        connection.sendall(
            _packet(b"R", b"\0\0\0\0")
            + _packet(b"S", b"server_version\x0016.0\0")
            + _packet(b"S", b"client_encoding\0UTF8\0")
            + _packet(b"Z", b"I")
        )
        while message := _message(connection):
            if message[:1] in {b"Q", b"S"}:
                state = next(replies)
                if state is None:
                    return
                text = b"relation acme_billing.invoices at 10.1.2.3"
                error = b"SERROR\0C" + state + b"\0M" + text + b"\0\0"
                connection.sendall(_packet(b"E", error) + _packet(b"Z", b"I"))

    return behave


def _packet(kind: bytes, body: bytes) -> bytes:
    return kind + struct.pack("!I", len(body) + 4) + body


def _message(connection: socket.socket, *, typed: bool = True) -> bytes:
    """Return one message of a client; empty at the end. A request for encryption is declined."""
    kind = connection.recv(1) if typed else b"!"
    if not kind or kind == b"X":
        return b""
    size = struct.unpack("!I", _exactly(connection, 4))[0]
    body = _exactly(connection, size - 4)
    if not typed and size == 8:
        connection.sendall(b"N")
        return _message(connection, typed=False)
    return kind + body


def _exactly(connection: socket.socket, size: int) -> bytes:
    read = b""
    while len(read) < size:
        more = connection.recv(size - len(read))
        if not more:
            raise OSError("gone")
        read += more
    return read
