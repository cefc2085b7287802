"""Databases and sockets: servers on the loopback that speak enough of the protocol to fail in every way."""

import asyncio
import socket
import struct
import threading

import pytest

from tests.sdks.checks import PROSE, difference, raised
from tests.sdks.server import closed_port, silent_port
from tests.sdks.test_others import speaking

# ----------------------------------------------------------------------------------------------------------- redis

REDIS = [
    ("LOADING", b"-LOADING hunter2", "refused"),
    ("BUSY", b"-BUSY hunter2 is busy running a script", "refused"),
    ("NOAUTH", b"-NOAUTH hunter2", "credentials"),
    ("WRONGPASS", b"-WRONGPASS hunter2", "credentials"),
    ("NOPERM", b"-NOPERM hunter2", "permission"),
    ("READONLY", b"-READONLY hunter2", "refused"),
    ("OOM", b"-OOM command not allowed when used memory > 'maxmemory'.", None, {"recovery": "transient", "executed": "no"}),
    ("MOVED", b"-MOVED 3999 127.0.0.1:6381", None, {"executed": "no"}),
    ("CLUSTERDOWN", b"-CLUSTERDOWN hunter2", "refused"),
    ("TRYAGAIN", b"-TRYAGAIN hunter2", "refused"),
    ("MASTERDOWN", b"-MASTERDOWN hunter2", "refused"),
    ("NOSCRIPT", b"-NOSCRIPT hunter2", "missing"),
    ("WRONGTYPE", b"-WRONGTYPE hunter2", "invalid"),
    ("ERR", b"-ERR hunter2 value is not an integer", "invalid"),
    ("EXECABORT", b"-EXECABORT hunter2", None, {"executed": "no"}),
    ("MISCONF", b"-MISCONF hunter2", None, {"executed": "no", "recovery": ("transient", "terminal")}),
    ("max clients", b"-ERR max number of clients reached", None, {"recovery": "transient"}),
    ("garbage", b"HTTP/1.1 400", None, {"executed": "maybe"}),
]  # fmt: skip


def redis_client(port, **more):
    import redis

    return redis.Redis(
        port=port, protocol=2, lib_name=None, lib_version=None, retry=None, socket_timeout=0.5, **more
    )


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
def test_redis(asynchronous):
    """The first word of an error reply decides, by its class or by the table."""
    found = {}

    def call():
        if not asynchronous:
            return redis_client(port).execute_command("SET", "k", "v")
        import redis.asyncio

        async def run():
            client = redis.asyncio.Redis(port=port, protocol=2, lib_name=None, lib_version=None, retry=None)
            try:
                await client.execute_command("SET", "k", "v")
            finally:
                await client.aclose()

        return asyncio.run(run())

    for name, reply, kind, *more in REDIS:

        def answer(connection, reply=reply):
            while connection.recv(4096):
                connection.sendall(reply + b"\r\n")

        with speaking(answer) as port:
            error = raised(call)
        if differs := difference(error, kind, **(more[0] if more else {})):
            found[name] = (repr(error), differs)
    assert found == {}


def test_redis_connections():
    """Nothing listens, time-outs, a connection that is closed, an empty pool, a lock, a watched key."""
    import redis

    found = {}

    def check(name, call, kind, **more):
        error = raised(call)
        if differs := difference(error, kind, **more):
            found[name] = (repr(error), differs)

    check("refused", lambda: redis_client(closed_port()).set("k", "v"), "refused")
    check("host", lambda: redis_client(6379, host="no-such-host.invalid").set("k", "v"), "refused")
    with silent_port() as port:
        check("connect", lambda: redis_client(port, socket_connect_timeout=0.2).set("k", "v"), "timeout")
    stop = threading.Event()
    with speaking(lambda connection: stop.wait(3)) as port:
        check("read", lambda: redis_client(port).set("k", "v"), "timeout")
        stop.set()
    with speaking(lambda connection: connection.recv(10)) as port:
        check("closed", lambda: redis_client(port).set("k", "v"), "lost")
    pool = redis.ConnectionPool(port=closed_port(), max_connections=1)
    pool._available_connections.clear()
    check("pool", lambda: (pool.make_connection(), pool.make_connection()), "refused")
    check("watch", lambda: (_ for _ in ()).throw(redis.WatchError(PROSE)), "again")
    check("lock", lambda: (_ for _ in ()).throw(redis.exceptions.LockNotOwnedError(PROSE)), "conflict")
    with speaking(lambda connection: connection.recv(10)) as port:
        check("data", lambda: redis_client(port).execute_command("SET", "k", object()), "invalid")
    assert found == {}


# -------------------------------------------------------------------------------------------------------- psycopg

PSYCOPG = [
    ("40001", "again"),
    ("40P01", "again"),
    ("23505", "conflict"),
    ("23503", "conflict"),
    ("23502", "invalid"),
    ("23514", "invalid"),
    ("22P02", "invalid"),
    ("42601", "invalid"),
    ("42P01", "missing"),
    ("42501", "permission"),
    ("53300", "refused"),
    ("53200", None, {"recovery": "transient"}),
    ("53100", None, {"executed": ("no", "maybe"), "recovery": ("transient", "terminal")}),
    ("55P03", "again"),
    ("57014", None, {"code": ("CANCELLED", "TIMEOUT")}),
    ("57P01", "lost"),
    ("57P03", "refused"),
    ("25006", None, {"executed": "no"}),
    ("25P02", None, {"executed": "no"}),
    ("XX001", "permanent"),
    ("XX000", "internal"),
    ("P0001", None, {"executed": "no"}),
    ("28P01", "credentials"),
    ("3D000", "missing"),
    ("08006", "lost"),
    ("0A000", "invalid"),
]


def frame(kind, payload):
    return kind + struct.pack(">I", len(payload) + 4) + payload


def postgres(state, connection):
    """Sign a client in, and answer its first statement with an error."""
    connection.recv(4096)
    ready = frame(b"Z", b"I")
    connection.sendall(
        frame(b"R", struct.pack(">I", 0))
        + frame(b"S", b"client_encoding\x00UTF8\x00")
        + frame(b"S", b"server_version\x0015.0\x00")
        + frame(b"K", struct.pack(">II", 1, 1))
        + ready
    )
    connection.recv(4096)
    if state is None:
        return
    fields = (
        b"SERROR\x00VERROR\x00C" + state.encode() + b"\x00M" + PROSE.encode() + b"\x00cname\x00ttable\x00\x00"
    )
    connection.sendall(frame(b"E", fields) + ready)


def connect(port, **more):
    import psycopg

    return psycopg.connect(
        f"host=127.0.0.1 port={port} user=u dbname=d sslmode=disable gssencmode=disable",
        autocommit=True,
        **more,
    )


def test_psycopg():
    """The SQLSTATE of a statement decides."""
    found = {}
    for state, kind, *more in PSYCOPG:
        with speaking(lambda connection, state=state: postgres(state, connection)) as port:
            error = raised(lambda: connect(port).execute("INSERT INTO t VALUES (1)"))
        if differs := difference(error, kind, **(more[0] if more else {})):
            found[state] = (repr(error), differs)
    assert found == {}


def test_psycopg_connections():
    """Nothing listens, a connect time-out, a connection that is closed, a use after the end."""
    import psycopg

    found = {}

    def check(name, call, kind, **more):
        error = raised(call)
        if differs := difference(error, kind, **more):
            found[name] = (repr(error), differs)

    check("refused", lambda: connect(closed_port()), "refused")
    with silent_port() as port:
        check("connect", lambda: connect(port, connect_timeout=2), "not-started")
    with speaking(lambda connection: postgres(None, connection)) as port:
        check("closed", lambda: connect(port).execute("INSERT INTO t VALUES (1)"), "lost")
    check("parameters", lambda: psycopg.connect("nonsense"), "invalid")
    assert found == {}


# -------------------------------------------------------------------------------------------------------- pymongo


def mongo(reply, connection):
    """Answer `hello`, then every command with `reply`; None closes the connection."""
    import bson

    hello = {
        "ok": 1, "ismaster": True, "isWritablePrimary": True, "helloOk": True, "maxWireVersion": 21, "minWireVersion": 0,
        "maxBsonObjectSize": 16777216, "maxMessageSizeBytes": 48000000, "maxWriteBatchSize": 100000,
        "setName": "rs", "hosts": ["127.0.0.1:1"], "me": "127.0.0.1:1", "logicalSessionTimeoutMinutes": 30,
    }  # fmt: skip
    hello.pop("setName"), hello.pop("hosts"), hello.pop("me"), hello.pop("logicalSessionTimeoutMinutes")
    while head := receive(connection, 16):
        length, number, _, opcode = struct.unpack("<iiii", head)
        body = receive(connection, length - 16)
        if opcode == 2004:
            document = bson.encode(hello)
            payload = struct.pack("<iqii", 8, 0, 0, 1) + document
            connection.sendall(struct.pack("<iiii", 16 + len(payload), 1, number, 1) + payload)
            continue
        command = bson.decode(body[5 : 5 + struct.unpack("<i", body[5:9])[0]]) if body[4] == 0 else {}
        word = next(iter(command), "")
        answer = hello if word in {"hello", "ismaster", "isMaster"} else reply
        if answer is None:
            return
        payload = struct.pack("<iB", 0, 0) + bson.encode(answer)
        connection.sendall(struct.pack("<iiii", 16 + len(payload), 1, number, 2013) + payload)


def receive(connection, length):
    data = b""
    while len(data) < length:
        part = connection.recv(length - len(data))
        if not part:
            return b""
        data += part
    return data


def fails(code, name, **more):
    return {"ok": 0, "errmsg": PROSE, "code": code, "codeName": name, **more}


def write(code, **more):
    return {"ok": 1, "n": 0, "writeErrors": [{"index": 0, "code": code, "errmsg": PROSE, **more}]}


MONGO = [
    ("duplicate", write(11000, keyPattern={"a": 1}, keyValue={"a": "hunter2"}), "conflict"),
    ("document validation", write(121), "invalid"),
    ("not primary", fails(10107, "NotWritablePrimary"), "refused"),
    ("primary stepped down", fails(189, "PrimarySteppedDown"), None, {"recovery": "transient"}),
    ("shutdown", fails(91, "ShutdownInProgress"), None, {"recovery": "transient"}),
    ("auth", fails(18, "AuthenticationFailed"), "credentials"),
    ("unauthorized", fails(13, "Unauthorized"), "permission"),
    ("time limit", fails(50, "MaxTimeMSExpired"), "timeout"),
    ("write conflict", fails(112, "WriteConflict", errorLabels=["TransientTransactionError"]), "again"),
    ("no such transaction", fails(251, "NoSuchTransaction", errorLabels=["TransientTransactionError"]), "again"),
    ("bad value", fails(2, "BadValue"), "invalid"),
    ("parse", fails(9, "FailedToParse"), "invalid"),
    ("command", fails(59, "CommandNotFound"), None, {"recovery": "correctable", "executed": "no"}),
    ("namespace", fails(26, "NamespaceNotFound"), "missing"),
    ("exists", fails(48, "NamespaceExists"), "conflict"),
    ("too large", fails(10334, "BSONObjectTooLarge"), None, {"recovery": "correctable"}),
    ("interrupted", fails(11601, "Interrupted"), None, {"executed": "maybe"}),
    ("concern", {"ok": 1, "n": 1, "writeConcernError": {"code": 64, "errmsg": PROSE, "errInfo": {"wtimeout": True}}}, "timeout"),
    ("lock", fails(46, "LockBusy"), None, {"recovery": "transient"}),
    ("overload", fails(462, "IngressRequestRateLimitExceeded"), "throttle"),
    ("retry label", fails(6, "HostUnreachable", errorLabels=["RetryableWriteError"]), None, {"recovery": "transient"}),
    ("closed", None, "lost"),
]  # fmt: skip


def mongo_insert(port):
    import pymongo

    with pymongo.MongoClient(
        "127.0.0.1", port, serverSelectionTimeoutMS=1500, retryWrites=False, directConnection=True
    ) as client:
        client.d.c.insert_one({"a": 1})


def test_pymongo():
    """The number of an error decides, and its labels."""
    found = {}
    for name, reply, kind, *more in MONGO:
        with speaking_in_threads(lambda connection, reply=reply: mongo(reply, connection)) as port:
            error = raised(mongo_insert, port)
        if differs := difference(error, kind, **(more[0] if more else {})):
            found[name] = (repr(error)[:120], differs)
    assert found == {}


def speaking_in_threads(answer):
    """Like `speaking`, with a thread for each connection."""

    def later(connection):
        own = socket.socket(fileno=connection.detach())
        own.settimeout(5)
        threading.Thread(target=run, args=(own,), daemon=True).start()

    def run(connection):
        with connection:
            try:
                answer(connection)
            except OSError:
                return

    return speaking(later)


def test_pymongo_without_a_server():
    """No server is found; a bulk write; errors of the driver itself."""
    import pymongo
    from pymongo import errors

    found = {}

    def check(name, call, kind, **more):
        error = raised(call)
        if differs := difference(error, kind, **more):
            found[name] = (repr(error)[:120], differs)

    def none():
        with pymongo.MongoClient("127.0.0.1", closed_port(), serverSelectionTimeoutMS=200) as client:
            client.d.c.insert_one({})

    def bulk():
        with (
            speaking_in_threads(lambda connection: mongo(write(11000), connection)) as port,
            pymongo.MongoClient("127.0.0.1", port, retryWrites=False, directConnection=True) as client,
        ):
            client.d.c.insert_many([{"a": 1}, {"a": 1}])

    def large():
        with (
            speaking_in_threads(lambda connection: mongo({"ok": 1}, connection)) as port,
            pymongo.MongoClient("127.0.0.1", port, directConnection=True) as client,
        ):
            client.d.c.insert_one({"a": "x" * 17_000_000})

    check("none", none, "refused")
    check("bulk", bulk, "conflict")
    check("large", large, None, recovery="correctable", executed="no")
    check("uri", lambda: pymongo.MongoClient("mongodb://"), None, recovery="correctable", executed="no")
    check("encode", lambda: errors_of_bson(), None, recovery="correctable", executed="no")
    check("pool", lambda: (_ for _ in ()).throw(errors.WaitQueueTimeoutError(PROSE)), "not-started")
    assert found == {}


def errors_of_bson():
    import bson

    bson.encode({"a": object()})


# ----------------------------------------------------------------------------------------------------- websockets

CLOSES = [
    (1000, None, {"executed": ("no", "maybe")}),
    (1001, "lost", {}),
    (1002, "invalid", {}),
    (1008, "permission", {}),
    (1009, None, {"recovery": "correctable", "executed": "no"}),
    (1011, "internal", {}),
    (1012, "lost", {}),
    (1013, None, {"recovery": "transient"}),
    (3000, "credentials", {}),
    (3003, "permission", {}),
    (4000, None, {"executed": "maybe"}),
]


def test_websockets_close_codes():
    """The code with which the server closes decides."""
    from websockets.sync.client import connect as open_socket
    from websockets.sync.server import serve

    found = {}
    for code, kind, more in CLOSES:
        with serve(lambda socket, code=code: socket.close(code, "hunter2"), "127.0.0.1", 0) as server:
            thread = threading.Thread(target=server.serve_forever, daemon=True)
            thread.start()
            port = server.socket.getsockname()[1]
            with open_socket(f"ws://127.0.0.1:{port}") as client:
                error = raised(client.recv)
            server.shutdown()
            thread.join(5)
        if differs := difference(error, kind, **more):
            found[code] = differs
    assert found == {}


def test_websockets_other():
    """A connection that breaks, a message after the end, an address that is none, a time-out."""
    from websockets.sync.client import connect as open_socket
    from websockets.sync.server import serve

    def broken(connection):
        connection.recv(4096)
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")

    with speaking(broken) as port:
        assert difference(raised(open_socket, f"ws://127.0.0.1:{port}"), None, executed="no") == {}
    assert difference(raised(open_socket, "http://x"), "invalid") == {}
    with serve(lambda socket: socket.socket.close(), "127.0.0.1", 0) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        with open_socket(f"ws://127.0.0.1:{server.socket.getsockname()[1]}") as client:
            assert difference(raised(client.recv), "lost") == {}
        server.shutdown()
        thread.join(5)
    waiting = threading.Event()
    with serve(lambda socket: waiting.wait(5), "127.0.0.1", 0) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        with open_socket(f"ws://127.0.0.1:{server.socket.getsockname()[1]}", close_timeout=0.1) as client:
            assert difference(raised(lambda: client.recv(timeout=0.1)), "timeout") == {}
        waiting.set()
        server.shutdown()
        thread.join(5)


# ------------------------------------------------------------------------------------------------------- paramiko


class Ssh:
    """A server for one connection, on paramiko's own transport."""

    def __init__(self, allow=True, channels=True):
        import paramiko

        self.key = paramiko.RSAKey.generate(1024)

        class Interface(paramiko.ServerInterface):
            def check_auth_password(self, username, password):
                return paramiko.AUTH_SUCCESSFUL if allow else paramiko.AUTH_FAILED

            def get_allowed_auths(self, username):
                return "password"

            def check_channel_request(self, kind, chanid):
                return (
                    paramiko.OPEN_SUCCEEDED if channels else paramiko.OPEN_FAILED_ADMINISTRATIVELY_PROHIBITED
                )

            def check_channel_exec_request(self, channel, command):
                return False

        self.interface = Interface()

    def __call__(self, connection):
        import paramiko

        own = socket.socket(fileno=connection.detach())
        transport = paramiko.Transport(own)
        transport.add_server_key(self.key)
        transport.start_server(server=self.interface)


def ssh(port, **more):
    import paramiko

    client = paramiko.SSHClient()
    client.set_missing_host_key_policy(more.pop("policy", paramiko.AutoAddPolicy()))
    options = {"username": "u", "password": "p", "look_for_keys": False, "allow_agent": False, **more}
    client.connect("127.0.0.1", port, timeout=2, banner_timeout=2, auth_timeout=2, **options)
    return client


def test_paramiko():
    """Refused, time-out, sign-in, host key, channel, and a connection that ends."""
    import paramiko

    found = {}

    def check(name, call, kind, **more):
        error = raised(call)
        if differs := difference(error, kind, **more):
            found[name] = (repr(error)[:120], differs)

    check("refused", lambda: ssh(closed_port()), "refused")
    with silent_port() as port:
        check("connect", lambda: ssh(port), None, recovery="transient")
    with speaking(Ssh(allow=False)) as port:
        check("password", lambda: ssh(port), "credentials")
    with speaking(Ssh(channels=False)) as port:
        check("channel", lambda: ssh(port).exec_command("x"), None, executed="no")
    with speaking(Ssh()) as port:
        check("command", lambda: ssh(port).exec_command("x"), None, executed=("no", "maybe"))
    with speaking(lambda connection: None) as port:
        check("closed", lambda: ssh(port), None, recovery="transient")
    with speaking(lambda connection: connection.recv(5000) and connection.recv(5000)) as port:
        check("banner", lambda: ssh(port), None, recovery="transient")
    check(
        "bad key",
        lambda: (_ for _ in ()).throw(paramiko.BadHostKeyException("h", Ssh().key, Ssh().key)),
        "untrusted",
    )
    check("key file", lambda: paramiko.RSAKey.from_private_key_file("/nonexistent"), None, executed="no")
    check(
        "passphrase", lambda: (_ for _ in ()).throw(paramiko.PasswordRequiredException(PROSE)), "credentials"
    )
    assert found == {}
