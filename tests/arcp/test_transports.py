"""Connections on every transport: frames in order in both directions, back-pressure, limits and closing."""

import asyncio
import os
import socket
import ssl
import subprocess
import sys
from contextlib import asynccontextmanager

import pytest
import uvicorn
import websockets
from websockets.frames import Frame, Opcode
from websockets.streams import StreamReader

from amends.arcp.transports import ConnectionLost, asgi, memory, stdio, websocket
from amends.arcp.transports.frames import text_frame

LIMIT = 1000


class Echo:
    """A runtime that sends every frame back twice, and closes on request."""

    def __init__(self):
        self.served = []

    async def serve(self, connection):
        self.served.append(connection)
        while (frame := await connection.receive()) is not None:
            text = frame.decode() if isinstance(frame, bytes) else frame
            if text == "go":
                break
            await connection.send_all([text, text.encode()])
        await connection.close()


@asynccontextmanager
async def over_memory(echo):
    near, far = memory.pair(max_frame=LIMIT)
    task = asyncio.create_task(echo.serve(far))
    yield near
    await near.close()
    await task


@asynccontextmanager
async def over_websocket(echo):
    async with websocket.serve(echo, max_frame=LIMIT) as listening:
        connection = await websocket.dial(listening.url, max_frame=LIMIT)
        yield connection
        await connection.close()


@asynccontextmanager
async def over_asgi(echo, **options):
    config = uvicorn.Config(
        asgi.endpoint(echo, max_frame=LIMIT), log_level="warning", lifespan="on", ws="websockets-sansio"
    )
    server = uvicorn.Server(config)
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    task = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        while not server.started:
            await asyncio.sleep(0.005)
        url = f"ws://127.0.0.1:{listener.getsockname()[1]}/"
        connection = await websocket.dial(url, max_frame=LIMIT, **options)
        yield connection
        await connection.close()
    finally:
        server.should_exit = True
        await task
        listener.close()


CHILD = """
import asyncio, sys
from amends.arcp.transports import stdio

class Echo:
    async def serve(self, connection):
        print("stray output")
        while (frame := await connection.receive()) is not None:
            if frame == b"go":
                break
            await connection.send_all([frame.decode(), frame])

asyncio.run(stdio.serve(Echo(), max_frame=1000))
print("after")
"""


@asynccontextmanager
async def over_stdio(echo):
    connection = await stdio.command(
        sys.executable, "-c", CHILD, max_frame=LIMIT, stderr=asyncio.subprocess.DEVNULL
    )()
    echo.served.append(connection)
    yield connection
    await connection.close()


ALL = pytest.mark.parametrize("over", [over_memory, over_websocket, over_asgi, over_stdio])


def text(frame):
    return frame.decode() if isinstance(frame, bytes) else frame


@ALL
async def test_frames_travel_in_order(over):
    """One by one, several at once, and posted without waiting; texts and bytes are equivalent."""
    async with over(Echo()) as connection:
        await connection.send("ä")
        await connection.send_all(["b", b"c"])
        if not connection.post([b"d", "e"]):
            await connection.send_all(["d", "e"])
        got = [text(await connection.receive()) for _ in range(10)]
        assert got == ["ä", "ä", "b", "b", "c", "c", "d", "d", "e", "e"]
        assert connection.peer


@ALL
async def test_closing_ends_both_sides(over):
    """Frames sent before are received, then always None; sending raises."""
    echo = Echo()
    async with over(echo) as connection:
        await connection.send("last")
        await connection.send("go")
        assert [text(await connection.receive()) for _ in range(2)] == ["last", "last"]
        while (frame := await connection.receive()) is not None:
            assert frame == b"after"  # printed by the child on its stdout
        assert await connection.receive() is None
        with pytest.raises(ConnectionLost):
            for _ in range(100):
                await connection.send("x")
                await asyncio.sleep(0.01)
        await connection.close()
        assert not connection.post(["x"])
        assert await connection.receive() is None
        with pytest.raises(ConnectionLost):
            await connection.send_all(["x"])
        await connection.close()


@ALL
async def test_a_frame_too_large_ends_the_connection(over):
    """The frame is not delivered."""
    async with over(Echo()) as connection:
        try:
            await connection.send("x" * (LIMIT + 200))
        except ConnectionLost:
            pass
        frames = []
        while (frame := await connection.receive()) is not None:
            frames.append(frame)
        assert frames in ([], [b"after"])


@ALL
async def test_closing_during_a_receive(over):
    """The receiver gets None."""
    async with over(Echo()) as connection:
        waiting = asyncio.create_task(connection.receive())
        await asyncio.sleep(0)
        await connection.close()
        assert await asyncio.wait_for(waiting, 100) in {None, b"after"}


async def test_memory_waits_for_a_slow_reader():
    """A sender waits while the queue is full, a posted batch is refused as a whole, and no frame is lost."""
    near, far = memory.pair(frames=3)
    assert near.post(["0", "1"])
    assert not near.post(["2", "3"])
    await near.send("2")
    sender = asyncio.create_task(near.send("3"))
    given_up = asyncio.create_task(near.send("4"))
    await asyncio.sleep(0)
    assert not sender.done()
    assert not near.post([])
    given_up.cancel()
    assert await far.receive() == "0"
    await sender
    assert [await far.receive() for _ in range(3)] == ["1", "2", "3"]
    assert near.post(["5"])
    assert await far.receive() == "5"
    await asyncio.gather(given_up, return_exceptions=True)


async def test_a_cancelled_sender_wakes_the_next():
    """If a sender is cancelled when it gets room, the next waiting sender gets it."""
    near, far = memory.pair(frames=1)
    await near.send("0")
    first, second = asyncio.create_task(near.send("1")), asyncio.create_task(near.send("2"))
    await asyncio.sleep(0)
    assert await far.receive() == "0"
    first.cancel()
    await asyncio.wait_for(second, 100)
    assert await far.receive() == "2"
    blocked = asyncio.create_task(near.send_all(["3", "4"]))
    await asyncio.sleep(0)
    await far.close()
    with pytest.raises(ConnectionLost):
        await blocked


async def test_a_websocket_waits_for_a_slow_reader():
    """When the socket's buffer is full, posting fails and sending waits."""

    class NotReading:
        def __init__(self):
            self.stop = asyncio.Event()

        async def serve(self, connection):
            await self.stop.wait()

    deaf = NotReading()
    async with websocket.serve(deaf, close_timeout=0.2) as listening:
        connection = await websocket.dial(listening.url, close_timeout=0.2)
        big = b"x" * 1_000_000
        while connection.post([big]):
            pass
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(connection.send_all([big] * 50), 0.05)
        deaf.stop.set()
        await connection.close()


async def test_other_paths_and_origins_are_refused():
    """404 for another path; browser origins only if they are allowed."""
    echo = Echo()
    async with websocket.serve(echo, origins=[None, "https://ours.example"]) as listening:
        with pytest.raises(ConnectionLost):
            await websocket.dial(listening.url + "x")
        slash = await websocket.dial(listening.url + "/")
        await slash.close()
        with pytest.raises(ConnectionLost):
            await websocket.dial(listening.url, origin="https://evil.example")
        ours = await websocket.dial(listening.url, origin="https://ours.example")
        await ours.close()
        queried = await websocket.dial(listening.url + "?tenant=a")
        await queried.close()
    assert len(echo.served) == 3


async def test_connecting_to_a_closed_port():
    """ConnectionLost, without the network's message."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(ConnectionLost) as caught:
        await websocket.dial(f"ws://127.0.0.1:{port}/arcp")
    assert str(port) not in str(caught.value)
    assert caught.value.__cause__ is None
    with pytest.raises(ConnectionLost):
        await stdio.command("/nonexistent/agent")()


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1/", "ws://", "127.0.0.1:80", "ws://example.com/arcp", "ws://10.0.0.1/"]
)
async def test_urls_that_are_refused(url):
    """Not a WebSocket URL, or an unencrypted one to another machine (v1.0, section 14)."""
    with pytest.raises(ValueError):
        await websocket.dial(url)


async def test_listening_beyond_this_machine():
    """Without TLS only with `insecure=True`."""
    for host in ("0.0.0.0", "::", "example.com"):
        with pytest.raises(ValueError, match="insecure=True"):
            async with websocket.serve(Echo(), host):
                pass
    async with websocket.serve(Echo(), "0.0.0.0", insecure=True) as listening:
        assert listening.port


async def test_unencrypted_on_request():
    """`insecure=True` allows it."""
    with pytest.raises(ConnectionLost):
        await websocket.dial("ws://name.invalid/arcp", insecure=True, open_timeout=2)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """A certificate for localhost."""
    folder = tmp_path_factory.mktemp("tls")
    key, cert = folder / "key.pem", folder / "cert.pem"
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", *subject, "-keyout", key, "-out", cert],
        check=True,
        capture_output=True,
    )
    return cert, key


async def test_tls(certificate):
    """wss: with a context on both sides; an untrusted certificate is ConnectionLost."""
    cert, key = certificate
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(cert, key)
    client = ssl.create_default_context(cafile=str(cert))
    async with websocket.serve(Echo(), ssl=server) as listening:
        assert listening.url.startswith("wss://127.0.0.1:")
        connection = await websocket.dial(listening.url, ssl=client)
        await connection.send("a")
        assert await connection.receive() == b"a"
        await connection.close()
        with pytest.raises(ConnectionLost):
            await websocket.dial(listening.url)


async def test_an_asgi_endpoint_refuses_origins_and_plain_requests():
    """426 for HTTP, 403 for an origin that is not allowed; the server's lifespan is handled."""
    async with over_asgi(Echo()) as connection:
        port = connection._socket.remote_address[1]
        with pytest.raises(ConnectionLost):
            await websocket.dial(f"ws://127.0.0.1:{port}/", origin="https://evil.example")
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        answer = await reader.read()
        assert answer.startswith(b"HTTP/1.1 426 ")
        writer.close()
        await writer.wait_closed()


async def test_an_asgi_server_that_gives_up():
    """Another first message, or a server that raises when it sends, only ends the connection."""
    sent = []

    async def send(message):
        sent.append(message)
        if message["type"] == "websocket.send":
            raise RuntimeError("gone")
        if message["type"] == "websocket.close":
            raise OSError

    messages = iter([{"type": "websocket.disconnect"}])

    async def receive():
        return next(messages)

    endpoint = asgi.endpoint(Echo())
    await endpoint({"type": "websocket", "headers": []}, receive, send)
    assert sent == []
    messages = iter([{"type": "websocket.receive", "bytes": b"x", "text": None}])
    connection = asgi.AsgiConnection({}, receive, send, 10)
    assert connection.peer == "asgi"
    assert await connection.receive() == b"x"
    with pytest.raises(ConnectionLost):
        await connection.send("x")
    assert await connection.receive() is None
    other = asgi.AsgiConnection({"client": ["h", 1]}, receive, send, 10)
    await other.close()
    assert sent[-1]["type"] == "websocket.close"
    await endpoint({"type": "something.else"}, receive, send)


async def test_a_child_that_does_not_exit(monkeypatch):
    """It gets SIGTERM, then SIGKILL."""
    monkeypatch.setattr(stdio, "_EXIT_TIMEOUT", 0.2)
    stubborn = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('x', flush=True); time.sleep(60)"
    connection = await stdio.command(sys.executable, "-c", stubborn)()
    assert await connection.receive() == b"x"
    await connection.close()


async def test_lines_with_and_without_an_end():
    """Empty lines are ignored; the last line may lack its line feed."""
    script = "import sys; sys.stdout.write('\\n\\n a \\n\\nb')"
    connection = await stdio.command(sys.executable, "-c", script)()
    assert [await connection.receive() for _ in range(3)] == [b"a", b"b", None]
    await connection.close()


async def test_a_peer_that_uses_the_library_itself():
    """Any WebSocket client is a peer; invalid UTF-8 in a text frame is received as it is."""
    echo = Echo()

    class Recorder:
        async def serve(self, connection):
            echo.served.append(await connection.receive())

    async with websocket.serve(Recorder()) as listening, websockets.connect(listening.url) as peer:
        await peer.send(b"\xff\xfe", text=True)
        await peer.wait_closed()
    assert echo.served == [b"\xff\xfe"]


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("size", [0, 1, 125, 126, 127, 65_535, 65_536, 200_000])
def test_the_library_reads_our_frames(size, masked):
    """The library's parser reads every length form, masked or not, as one text frame."""
    data = ("ä" * (size // 2) + "x" * (size % 2)).encode()
    stream = StreamReader()
    stream.feed_data(text_frame(data, masked=masked))
    with pytest.raises(StopIteration) as done:
        next(Frame.parse(stream.read_exact, mask=masked))
    frame = done.value.value
    assert (frame.opcode, frame.fin, bytes(frame.data)) == (Opcode.TEXT, True, data)
    assert not stream.buffer


def test_every_frame_has_its_own_mask():
    assert len({text_frame(b"the same", masked=True) for _ in range(50)}) == 50


async def test_connections_with_extensions_are_written_by_the_library():
    """If the client requests compression, it is used in both directions."""
    async with websocket.serve(Echo(), compression="deflate") as listening:
        connection = await websocket.dial(listening.url, compression="deflate")
        assert not connection.post(["x"])
        await connection.send("ä" * 5000)
        assert [await connection.receive() for _ in range(2)] == [("ä" * 5000).encode()] * 2
        await connection.close()


async def test_stdio_in_this_process(monkeypatch):
    """stdout is reserved for the protocol while serving, and restored afterwards."""
    loop = asyncio.get_running_loop()
    (their_in, our_out), (our_in, their_out), (errors_in, errors_out) = os.pipe(), os.pipe(), os.pipe()
    with (
        os.fdopen(their_in) as stdin,
        os.fdopen(their_out, "w") as stdout,
        os.fdopen(errors_out, "w") as stderr,
        os.fdopen(errors_in, "rb", 0) as errors,
    ):
        monkeypatch.setattr("sys.stdin", stdin)
        monkeypatch.setattr("sys.stdout", stdout)
        monkeypatch.setattr("sys.stderr", stderr)

        class Chatty(Echo):
            async def serve(self, connection):
                print("stray output", flush=True)
                await super().serve(connection)

        serving = asyncio.create_task(stdio.serve(Chatty()))
        reader = asyncio.StreamReader()
        incoming, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(our_in, "rb", 0)
        )
        transport, protocol = await loop.connect_write_pipe(
            lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader()), os.fdopen(our_out, "wb", 0)
        )
        connection = stdio.LineConnection(reader, asyncio.StreamWriter(transport, protocol, None, loop))
        await connection.send("a")
        assert [await connection.receive() for _ in range(2)] == [b"a", b"a"]
        assert errors.read(100) == b"stray output\n"
        await connection.close()
        incoming.close()
        await asyncio.wait_for(serving, 100)
        assert sys.stdout is stdout


async def test_a_child_that_does_not_read(monkeypatch):
    """When the pipe is full, posting fails and sending waits."""
    monkeypatch.setattr(stdio, "_EXIT_TIMEOUT", 0.2)
    connection = await stdio.command(sys.executable, "-c", "import time; time.sleep(60)")()
    frame = b"x" * 100_000
    while connection.post([frame]):
        pass
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(connection.send("more"), 0.05)
    await connection.close()


async def test_a_child_that_has_exited():
    """The end of the child ends the connection."""
    connection = await stdio.command(sys.executable, "-c", "pass")()
    assert await connection.receive() is None
    with pytest.raises(ConnectionLost):
        while True:
            await connection.send("x" * 100_000)
            await asyncio.sleep(0)
    await connection.close()


def test_without_the_extra():
    """The ImportError contains the install line, and the command prints it."""
    hidden = "import sys; sys.modules['websockets'] = None; "
    script = hidden + "import amends.arcp; from amends.arcp.transports import memory, stdio, asgi, websocket"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert "pip install 'amends[arcp]'" in done.stderr
    script = (
        hidden + "from amends.commands import main; sys.exit(main(['runtime', 'jobs', 'ws://127.0.0.1:1/']))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "amends[arcp]" in done.stdout
