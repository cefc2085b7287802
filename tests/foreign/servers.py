"""Servers on the loopback that fail in exactly one way each."""

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
    """A port whose every connection behaves in the given way, each in a thread of its own."""
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
        # Closing alone does not wake an accept.
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
    """A port that nobody listens on, and that nobody else is given meanwhile."""
    with socket.socket() as holder:
        holder.bind((HOST, 0))
        yield holder.getsockname()[1]


@contextmanager
def deaf() -> Iterator[int]:
    """A port whose queue of connections is full: the handshake of a further one is never answered."""
    with ExitStack() as stack:
        listener = stack.enter_context(socket.socket())
        listener.bind((HOST, 0))
        listener.listen(0)
        for _ in range(4):
            filler = stack.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(listener.getsockname())
        yield listener.getsockname()[1]


def request_of(connection: socket.socket) -> bytes:
    """What a client sends, up to the end of its headers."""
    read = b""
    while b"\r\n\r\n" not in read:
        more = connection.recv(65536)
        if not more:
            break
        read += more
    return read


def answering(status: int, headers: dict[str, str] | None = None, body: bytes = b"") -> Behaviour:
    """A whole HTTP answer."""
    lines = {"Content-Length": str(len(body)), "Connection": "close", **(headers or {})}
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())

    def behave(connection: socket.socket) -> None:
        request_of(connection)
        connection.sendall(f"HTTP/1.1 {status} Status\r\n{head}\r\n".encode() + body)

    return behave


def hanging(connection: socket.socket) -> None:
    """Reads the request, and never answers."""
    while connection.recv(65536):
        pass


def closing(connection: socket.socket) -> None:
    """Reads the request, and hangs up politely."""
    request_of(connection)


def resetting(connection: socket.socket) -> None:
    """Reads the request, and breaks the connection."""
    request_of(connection)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def babbling(connection: socket.socket) -> None:
    """Answers something that is not HTTP, and no TLS either."""
    connection.recv(65536)
    connection.sendall(b"220 mail.acme.internal ESMTP ready\r\n\r\n")


def truncating(connection: socket.socket) -> None:
    """Announces more than it sends."""
    request_of(connection)
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc")


def certificate(folder: Path) -> ssl.SSLContext:
    """A server's side of TLS, with a certificate that only it believes in."""
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
    """TLS, and then a good answer to whoever trusts it."""

    def behave(connection: socket.socket) -> None:
        with context.wrap_socket(connection, server_side=True) as secure:
            answering(200)(secure)

    return behave


def postgres(*answers: bytes | None) -> Behaviour:
    """
    As much of PostgreSQL as a client needs to log in, and then one scripted error for every query.

    An answer is a SQLSTATE, or None to break the connection instead.
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
    """One message of a client; empty at the end. A request for encryption is declined."""
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
