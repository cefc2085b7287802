"""Failed connections: the fault has the URL, the cause as a sentence and as a name, and whether to try again."""

import asyncio
import socket
import ssl
import subprocess
import sys
from contextlib import asynccontextmanager
from http import HTTPStatus

import pytest
import uvicorn
import websockets
from starlette.applications import Starlette
from starlette.routing import Mount
from websockets.datastructures import Headers
from websockets.http11 import Response

from amends.arcp import Runtime, connect
from amends.arcp.client.dial import UrlDial, dial_of
from amends.arcp.transports import asgi, stdio
from amends.core.enums import Executed, Recovery
from amends.errors.arcp import HeartbeatLostError

WAIT = 20


async def refused_connection(url, **options):
    """Connect, and return the fault."""
    async with asyncio.timeout(WAIT):
        with pytest.raises(HeartbeatLostError) as caught:
            await connect(url, token="secret", transport={"insecure": True, **options})
    fault = caught.value.fault
    assert fault.executed is Executed.NO
    assert fault.details["url"] in fault.message
    return fault


def check(fault, reason, words, *, permanent):
    assert fault.details["reason"] == reason
    assert words in fault.message
    assert fault.recovery is (Recovery.CORRECTABLE if permanent else Recovery.TRANSIENT)


async def silent_then(reader, writer, answer):
    await reader.read(100)
    writer.write(answer)
    await writer.drain()
    writer.close()


@asynccontextmanager
async def tcp(answer):
    """A server that answers every connection with these bytes."""
    server = await asyncio.start_server(lambda r, w: silent_then(r, w, answer), "127.0.0.1", 0)
    async with server:
        yield f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}/arcp"


async def test_causes_without_a_server():
    """Refused, and a host name that does not exist."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"ws://127.0.0.1:{free.getsockname()[1]}/arcp"
    fault = await refused_connection(url)
    check(fault, "refused", "refused", permanent=False)
    assert fault.message.startswith(f"Cannot connect to {url}: ")
    check(await refused_connection("ws://name.invalid/arcp"), "name_not_found", "resolved", permanent=False)


@pytest.mark.parametrize(
    ("answer", "reason", "words", "permanent"),
    [
        (b"SSH-2.0-OpenSSH_9.6\r\n", "not_websocket", "WebSocket", True),
        (b"", "not_websocket", "WebSocket", False),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", "not_websocket", "HTTP status 200", True),
        (b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", "not_websocket", "HTTP status 404", True),
        (b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n", "unavailable", "HTTP status 503", False),
        (
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n",
            "not_websocket",
            "does not open a WebSocket",
            True,
        ),
    ],
)
async def test_servers_that_are_not_websockets(answer, reason, words, permanent):
    """Another protocol, a plain HTTP server, a proxy without its service. A server that only closes the connection may be restarting."""
    async with tcp(answer) as url:
        check(await refused_connection(url), reason, words, permanent=permanent)


async def test_a_wrong_path_names_the_usual_one():
    """Also where the server has the runtime at /arcp."""
    runtime = Runtime(tokens={"secret": "alice"})
    async with runtime, runtime.listen(port=0) as listening:
        fault = await refused_connection(listening.url.replace("/arcp", "/agents?token=hidden"))
        check(fault, "wrong_path", "/arcp", permanent=True)
        assert "/agents" in fault.message
        assert "hidden" not in fault.message


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """A self-signed certificate for localhost."""
    folder = tmp_path_factory.mktemp("tls")
    key, cert = folder / "key.pem", folder / "cert.pem"
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
    ]
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    subprocess.run([*command, *subject, "-keyout", key, "-out", cert], check=True, capture_output=True)
    return cert, key


async def test_tls(certificate):
    """ws: to a TLS server, wss: to a plain one, an untrusted certificate, and one for another name."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    trusting = ssl.create_default_context(cafile=str(certificate[0]))
    runtime = Runtime(tokens={"secret": "alice"})
    async with runtime, runtime.listen(port=0, ssl=context) as secure, runtime.listen(port=0) as plain:
        check(await refused_connection(secure.url), "untrusted", "self-signed", permanent=True)
        named = await refused_connection(secure.url, ssl=trusting)
        check(named, "untrusted", "another address", permanent=True)
        check(await refused_connection(f"ws{secure.url[3:]}"), "tls_needed", "wss:", permanent=True)
        check(await refused_connection(f"wss{plain.url[2:]}"), "no_tls", "TLS", permanent=False)
    async with tcp(b"HTTP/1.1 400 Bad Request\r\n\r\n") as url:
        check(await refused_connection(f"wss{url[2:]}"), "no_tls", "TLS", permanent=True)


async def test_a_websocket_without_arcp():
    """An echo server, one that sends something else, and one that closes with a code."""

    async def echo(socket):
        async for message in socket:
            await socket.send(message)

    async def chat(socket):
        await socket.send("hello!")
        await socket.wait_closed()

    async def strict(socket):
        await socket.close(1008, "no")

    for handler, words in ((echo, "ARCP"), (chat, "ARCP"), (strict, "1008")):
        async with websockets.serve(handler, "127.0.0.1", 0) as server:
            url = f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}/arcp"
            check(await refused_connection(url), "no_protocol", words, permanent=False)


@asynccontextmanager
async def full(times, refuse):
    """A runtime that refuses its first connections."""
    runtime = Runtime(tokens={"secret": "alice"})
    seen = []

    class Full:
        async def serve(self, connection):
            seen.append(connection)
            if len(seen) <= times:
                await refuse(connection)
            else:
                await runtime.serve(connection)

    from amends.arcp.transports import websocket

    async with runtime, websocket.serve(Full()) as listening:
        yield listening.url, seen


async def closes(connection):
    await connection.close(1013)


async def reports(connection):
    details = '{"amends": {"retry_after_ms": 20}}'
    error = f'{{"code": "INTERNAL_ERROR", "message": "full", "retryable": true, "details": {details}}}'
    frame = f'{{"arcp": "1.1", "id": "m", "type": "session.error", "payload": {error}}}'
    await connection.send(frame.encode())
    await connection.close(1013)


@pytest.mark.parametrize("refuse", [closes, reports])
async def test_a_full_runtime_is_tried_again(refuse):
    """Close code 1013, alone or behind a session.error: the client waits and tries again."""
    async with asyncio.timeout(WAIT), full(3, refuse) as (url, seen):
        async with connect(url, token="secret") as client:
            assert client.session_id
        assert len(seen) == 4


async def test_a_runtime_that_stays_full():
    """After `busy_timeout` the client gives up."""
    async with asyncio.timeout(WAIT), full(10**9, closes) as (url, seen):
        with pytest.raises(HeartbeatLostError) as caught:
            await connect(url, token="secret", busy_timeout=0.3)
        assert (caught.value.details["reason"], caught.value.retryable) == ("busy", True)
        assert len(seen) > 1


async def test_a_proxy_that_names_a_wait():
    """Status 503 with Retry-After is waited for; a longer wait than `busy_timeout` is returned at once."""
    answers = [
        Response(503, HTTPStatus(503).phrase, Headers([("Retry-After", wait)])) for wait in ("0", "3600")
    ]

    async with websockets.serve(
        lambda socket: None, "127.0.0.1", 0, process_request=lambda *_: answers.pop(0)
    ) as server:
        fault = await refused_connection(f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}/arcp")
    assert (fault.details["reason"], fault.retry_after, answers) == ("unavailable", 3600, [])


async def test_an_endpoint_that_is_mounted():
    """`/arcp` works beside `/arcp/`."""
    runtime = Runtime(tokens={"secret": "alice"})
    app = Starlette(routes=[Mount("/arcp", app=asgi.endpoint(runtime))])
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", ws="websockets-sansio"))
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        task = asyncio.create_task(server.serve(sockets=[listener]))
        while not server.started:
            await asyncio.sleep(0.005)
        url = f"ws://127.0.0.1:{listener.getsockname()[1]}"
        async with asyncio.timeout(WAIT), runtime:
            for path in ("/arcp", "/arcp/"):
                async with connect(f"{url}{path}", token="secret") as client:
                    assert client.session_id
            check(await refused_connection(f"{url}/other"), "wrong_path", "/arcp", permanent=True)
        server.should_exit = True
        await task


async def test_noise_of_a_child_process():
    """Lines before the first message are ignored, whatever they contain."""
    child = """
import asyncio, sys
print("loading model\\n\\n{not json}\\n[1]\\n{\\"level\\": \\"info\\"}\\n" + "x" * 5000, flush=True)
from amends.arcp import Runtime
from amends.arcp.transports import stdio
async def main():
    runtime = Runtime(tokens={"secret": "alice"})
    async with runtime:
        await stdio.serve(runtime)
asyncio.run(main())
"""
    async with (
        asyncio.timeout(60),
        connect(stdio.command(sys.executable, "-c", child), token="secret", connect_timeout=50) as client,
    ):
        assert client.session_id


async def test_a_command_that_cannot_be_started():
    """The fault names it."""
    with pytest.raises(HeartbeatLostError) as caught:
        await connect(stdio.command("/nonexistent/agent"))
    assert caught.value.details == {"reason": "not_started"}
    assert "/nonexistent/agent" in caught.value.message


def test_targets():
    """A URL without secrets in its name; anything else that is not a runtime or a function is refused."""
    assert UrlDial("wss://me:pw@[::1]:7/arcp?x=1#y", {}).name == "wss://[::1]:7/arcp"
    assert callable(dial_of(print, {}))
    with pytest.raises(TypeError):
        dial_of(5, {})
