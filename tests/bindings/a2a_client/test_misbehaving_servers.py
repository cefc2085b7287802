"""Servers that misbehave: the client raises a typed error in time, and releases everything."""

import asyncio
import gc
from contextlib import aclosing, asynccontextmanager

import pytest

from amends import FaultError, Policy
from amends.errors import ServiceUnavailableError
from amends.recovery import NONE
from tests.bindings.a2a_client.clients import ONCE, STREAM, STREAMS, client_for
from tests.bindings.agents import PATHS, events_of, request

HTTP = b"HTTP/1.1 200 OK\r\ncontent-type: %s\r\n%s\r\n"


def _document(body):
    return HTTP % (b"application/json", b"content-length: %d\r\n" % len(body)) + body


async def _hang(reader, writer):
    await asyncio.Event().wait()


async def _half(reader, writer):
    writer.write_eof()
    await asyncio.Event().wait()


def _sends(raw, *, then=None):
    async def behave(reader, writer):
        writer.write(raw)
        await writer.drain()
        while then is not None:
            writer.write(then)
            await writer.drain()
            await asyncio.sleep(0)

    return behave


async def _drip(reader, writer):
    for byte in HTTP % (b"application/json", b""):
        writer.write(bytes([byte]))
        await writer.drain()
        await asyncio.sleep(0.02)


async def _silent_stream(reader, writer):
    writer.write(HTTP % (b"text/event-stream", b"connection: close\r\n"))
    await writer.drain()
    await asyncio.Event().wait()


EVENT = b'data: {"jsonrpc":"2.0","id":1,"result":{"task":{"id":"t","contextId":"c","status":{}}},"id":1}\n\n'
HOSTILE = {
    "hanging": _hang,
    "half-closing": _half,
    "closing": _sends(b""),
    "garbage": _sends(b"\x00\xff\x13\x37" * 50),
    "a page": _sends(_document(b"<html>welcome</html>")),
    "a list": _sends(_document(b"[1]")),
    "a number": _sends(_document(b"5")),
    "an empty object": _sends(_document(b"{}")),
    "a wrong result": _sends(_document(b'{"jsonrpc":"2.0","id":1,"result":{"task":{"id":5,"status":"x"}}}')),
    "an error that is none": _sends(_document(b'{"jsonrpc":"2.0","id":1,"error":"x"}')),
    "half a body": _sends(HTTP % (b"application/json", b"content-length: 99\r\n") + b"{"),
    "dripping": _drip,
    "a silent stream": _silent_stream,
    "an empty stream": _sends(HTTP % (b"text/event-stream", b"connection: close\r\n")),
    "a stream of nonsense": _sends(HTTP % (b"text/event-stream", b"connection: close\r\n") + b"data: x\n\n"),
    "a stream of nothing": _sends(HTTP % (b"text/event-stream", b""), then=b": ping\n\n"),
    "half a stream": _sends(HTTP % (b"text/event-stream", b"connection: close\r\n") + EVENT),
}


@asynccontextmanager
async def misbehaving(behave):
    """A server that misbehaves; yields its address and the tasks of its open connections."""
    connected: set = set()

    async def handle(reader, writer):
        task = asyncio.current_task()
        connected.add(task)
        try:
            await reader.readuntil(b"\r\n\r\n")
            answering = asyncio.ensure_future(behave(reader, writer))
            try:
                # Until it is done, or the client has disconnected.
                while not answering.done() and await _is_connected(reader):
                    await asyncio.sleep(0)
            finally:
                answering.cancel()
                await asyncio.gather(answering, return_exceptions=True)
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            connected.discard(task)
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", connected
    finally:
        server.close()
        await server.wait_closed()


async def _is_connected(reader):
    try:
        async with asyncio.timeout(0.05):
            return bool(await reader.read(65536))
    except TimeoutError:
        return True


@pytest.mark.parametrize("kind", [*HOSTILE, "dead"])
async def test_misbehaving_servers_fail_within_the_deadline(kind):
    """With a typed error, on every path at once; no task and no connection is left."""
    gc.collect()
    await asyncio.sleep(0)
    before = asyncio.all_tasks()
    async with misbehaving(HOSTILE.get(kind, _hang)) as (base, connected):
        if kind == "dead":
            base = "http://127.0.0.1:9"

        async def send(path):
            # Only the deadline ends the call.
            bounds = {"policy": Policy(deadline=0.5), "timeout": 3600, "http_timeout": None}
            async with client_for(base, path, **bounds) as client:
                with pytest.raises(FaultError) as caught:
                    await events_of(client)
                return caught.value

        errors = await asyncio.gather(*(send(path) for path in PATHS))
        while connected or asyncio.all_tasks() - before:
            gc.collect()
            await asyncio.sleep(0.02)
    for error in errors:
        assert error.fault.code in {"SERVICE_UNAVAILABLE", "TIMEOUT", "INTERNAL_ERROR"}
        assert error.fault.executed == ("no" if kind == "dead" else "maybe")
        assert error.decision is not None


@pytest.mark.parametrize("path", [ONCE, STREAM], ids=str)
async def test_an_endless_response_fails(path, monkeypatch):
    """It is not kept in memory."""
    monkeypatch.setattr("amends.bindings.a2a.http_recorder.LARGEST", 1024 * 1024)
    kind = b"text/event-stream" if path.streaming else b"application/json"
    endless = _sends(HTTP % (kind, b""), then=b"x" * 65536)
    async with misbehaving(endless) as (base, _), client_for(base, path, policy=NONE) as client:
        with pytest.raises(ServiceUnavailableError):
            await events_of(client)


@pytest.mark.parametrize("path", STREAMS, ids=str)
async def test_a_caller_that_stops_reading_leaves_nothing_open(path, server):
    """One that leaves the loop, and one that is cancelled."""

    async def work(context, updater):
        await updater.start_work()
        await asyncio.Event().wait()

    server.does(work)
    gc.collect()
    before = asyncio.all_tasks()
    async with client_for(server.base, path) as client:
        async with aclosing(client.send_message(request())) as events:
            await anext(events)
        waiting = asyncio.ensure_future(events_of(client))
        while server.agent.calls < 2:
            await asyncio.sleep(0.01)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        pool = client._connection._config.httpx_client._transport._pool
        while asyncio.all_tasks() != before or [each for each in pool.connections if not each.is_idle()]:
            gc.collect()
            await asyncio.sleep(0.01)
