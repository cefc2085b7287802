"""Databases, sockets and RPC: real clients against servers on the loopback that speak just enough of the protocol."""

import socket
import struct
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress

import pytest

from amends import from_exception
from tests.sdks.server import Answer, serving


@contextmanager
def speaking(answer):
    """Run a server on TCP; `answer(connection)` speaks to each client. Yield the port."""
    listener = socket.create_server(("127.0.0.1", 0))

    def accept():
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                with connection, suppress(OSError):
                    connection.settimeout(5)
                    answer(connection)

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(5)


def raised(call):
    with pytest.raises(Exception) as caught:
        call()
    fault = from_exception(caught.value)
    return fault.code, fault.recovery.value


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (b"-LOADING Redis is loading the dataset in memory", "transient"),
        (b"-NOAUTH Authentication required.", "correctable"),
        (b"-NOPERM this user has no permissions", "terminal"),
        (b"-READONLY You can't write against a read only replica.", None),
        (b"-OOM command not allowed when used memory > 'maxmemory'.", None),
    ],
)
def test_redis(reply, expected):
    """The class says what the server's word means; a word without a class is uncertain."""
    redis = pytest.importorskip("redis")

    def answer(connection):
        while connection.recv(4096):
            connection.sendall(reply + b"\r\n")

    def call():
        client = redis.Redis(port=port, protocol=2, lib_name=None, lib_version=None, retry=None)
        client.execute_command("GET", "k")

    with speaking(answer) as port:
        recovery = raised(call)[1]
    assert recovery == expected or expected is None


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ("53300", ("OVERLOADED", "transient")),
        ("28P01", ("UNAUTHENTICATED", "correctable")),
        ("57P03", ("SERVICE_UNAVAILABLE", "transient")),
        ("3D000", ("NOT_FOUND", "correctable")),
    ],
)
def test_psycopg(state, expected):
    """An error while connecting has a SQLSTATE in its diagnostics, or none at all."""
    psycopg = pytest.importorskip("psycopg")

    def answer(connection):
        connection.recv(4096)
        fields = b"SFATAL\x00VFATAL\x00C" + state.encode() + b"\x00Mx\x00\x00"
        connection.sendall(b"E" + struct.pack(">I", len(fields) + 4) + fields)

    with speaking(answer) as port:
        found = raised(
            lambda: psycopg.connect(
                f"host=127.0.0.1 port={port} user=u dbname=d sslmode=disable gssencmode=disable",
                connect_timeout=5,
            )
        )
    # libpq keeps the SQLSTATE of a refused connection to itself: the class alone is known.
    assert found in {expected, ("SERVICE_UNAVAILABLE", "transient")}


def test_pymongo():
    """No server answers."""
    pymongo = pytest.importorskip("pymongo")
    with serving(Answer(500)) as server:
        port = server.server_address[1]
    client = pymongo.MongoClient("127.0.0.1", port, serverSelectionTimeoutMS=200)
    assert raised(lambda: client.admin.command("ping")) == ("SERVICE_UNAVAILABLE", "transient")
    client.close()


@pytest.mark.parametrize(
    ("status", "expected"),
    [(429, ("RATE_LIMITED", "transient")), (503, ("SERVICE_UNAVAILABLE", "transient")), (403, ("PERMISSION_DENIED", "terminal"))],
)  # fmt: skip
def test_websockets(status, expected):
    """A handshake that is refused with a status."""
    client = pytest.importorskip("websockets.sync.client")
    with serving(Answer(status, {"error": "x"})) as server:
        assert raised(lambda: client.connect(server.url.replace("http", "ws"))) == expected


def test_paramiko():
    """Nothing listens, and a server that does not speak SSH."""
    paramiko = pytest.importorskip("paramiko")
    client = paramiko.SSHClient()
    client.set_missing_host_key_policy(paramiko.AutoAddPolicy())
    options = {
        "username": "u",
        "password": "p",
        "look_for_keys": False,
        "allow_agent": False,
        "banner_timeout": 2,
    }
    with serving(Answer(500)) as server:
        port = server.server_address[1]
    assert raised(lambda: client.connect("127.0.0.1", port, **options)) == (
        "SERVICE_UNAVAILABLE",
        "transient",
    )
    with speaking(lambda connection: connection.sendall(b"HTTP/1.1 400 Bad\r\n\r\n" * 200)) as port:
        assert raised(lambda: client.connect("127.0.0.1", port, **options))[1] in {"uncertain", "transient"}


def test_docker():
    """Errors of the engine: the status decides, the message is prose."""
    from tests.sdks import clients

    pytest.importorskip("docker")
    for status, expected in (
        (404, ("NOT_FOUND", "correctable")),
        (409, ("CONFLICT", "correctable")),
        (500, ("INTERNAL_ERROR", "uncertain")),
    ):
        with serving(Answer(status, {"message": "x"})) as server:
            assert raised(lambda: clients.docker(server.url)) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("RESOURCE_EXHAUSTED", ("RATE_LIMITED", "transient")),
        ("UNAVAILABLE", ("SERVICE_UNAVAILABLE", "transient")),
        ("UNAUTHENTICATED", ("UNAUTHENTICATED", "correctable")),
        ("PERMISSION_DENIED", ("PERMISSION_DENIED", "terminal")),
        ("INVALID_ARGUMENT", ("VALIDATION_ERROR", "correctable")),
        ("NOT_FOUND", ("NOT_FOUND", "correctable")),
        ("ABORTED", ("CONFLICT", "transient")),
        ("DEADLINE_EXCEEDED", ("TIMEOUT", "transient")),
        ("INTERNAL", ("INTERNAL_ERROR", "uncertain")),
    ],
)
def test_grpc(name, expected):
    """A real server that aborts with a status; google-api-core converts the same errors."""
    grpc = pytest.importorskip("grpc")
    code = getattr(grpc.StatusCode, name)
    handler = grpc.method_handlers_generic_handler(
        "s", {"m": grpc.unary_unary_rpc_method_handler(lambda request, context: context.abort(code, "x"))}
    )
    server = grpc.server(ThreadPoolExecutor(1), handlers=[handler])
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
            call = channel.unary_unary("/s/m")
            assert raised(lambda: call(b"", timeout=5)) == expected
            exceptions = pytest.importorskip("google.api_core.exceptions")
            with pytest.raises(grpc.RpcError) as caught:
                call(b"", timeout=5)
            converted = from_exception(exceptions.from_grpc_error(caught.value))
            assert (converted.recovery.value) == expected[1]
    finally:
        server.stop(None)


def test_urllib3():
    """A retry of urllib3's own that gave up on statuses."""
    urllib3 = pytest.importorskip("urllib3")
    retry = urllib3.Retry(1, status_forcelist=[503], backoff_factor=0)
    with serving(Answer(503, {"error": "x"})) as server:
        found = raised(lambda: urllib3.PoolManager().request("GET", server.url, retries=retry))
    assert found[1] in {"transient", "uncertain"}
