"""WebSocket connections and listeners."""

from __future__ import annotations

import asyncio
import socket
import ssl
import subprocess
import sys

import pytest
import websockets

from amends.arcp.transports import ConnectionLost, stdio, websocket
from tests.arcp.test_connection import Echo


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
        await connection.send(b"a")
        assert await connection.receive() == b"a"
        await connection.close()
        with pytest.raises(ConnectionLost):
            await websocket.dial(listening.url)


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


async def test_connections_with_extensions_are_written_by_the_library():
    """If the client requests compression, it is used in both directions."""
    async with websocket.serve(Echo(), compression="deflate") as listening:
        connection = await websocket.dial(listening.url, compression="deflate")
        assert not connection.post([b"x"])
        await connection.send(("ä" * 5000).encode())
        assert [await connection.receive() for _ in range(2)] == [("ä" * 5000).encode()] * 2
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


async def test_a_redirect_to_another_server_is_not_followed():
    """The token is for the address that was named; a path on the same server is."""
    echo = Echo()
    async with websocket.serve(echo) as listening:
        target = listening.url

        def redirect(connection, request):
            response = connection.respond(307, "")
            moved = "/arcp" if request.path == "/same" else target
            response.headers["Location"] = moved
            return None if request.path == "/arcp" else response

        async def accept(connection):
            await connection.wait_closed()

        async with websockets.serve(accept, "127.0.0.1", 0, process_request=redirect) as server:
            port = server.sockets[0].getsockname()[1]
            with pytest.raises(ConnectionLost) as lost:
                await websocket.dial(f"ws://127.0.0.1:{port}/other")
            assert lost.value.reason == "redirected"
            assert "another server" in str(lost.value)
            same = await websocket.dial(f"ws://127.0.0.1:{port}/same")
            await same.close()
    assert echo.served == []
