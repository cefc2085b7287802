"""Servers that are none: the client ends in time with a typed error, and leaves nothing behind."""

import asyncio
import gc
from contextlib import aclosing, asynccontextmanager

import pytest

from amends import FaultError, Policy
from amends.errors import ServiceUnavailableError
from amends.recovery import NONE
from tests.bindings.a2a_client.asking import ONCE, STREAM, STREAMS, client_for
from tests.bindings.agents import PATHS, events_of, request

HTTP = b"HTTP/1.1 200 OK\r\ncontent-type: %s\r\n%s\r\n"


def _document(body):
    return HTTP % (b"application/json", b"content-length: %d\r\n" % len(body)) + body


async def _hang(reader, writer):
    await asyncio.Event().wait()


async def _half(reader, writer):
    writer.write_eof()
    await asyncio.Event().wait()


def _says(raw, *, then=None):
    async def talk(reader, writer):
        writer.write(raw)
        await writer.drain()
        while then is not None:
            writer.write(then)
            await writer.drain()
            await asyncio.sleep(0)

    return talk


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
    "closing": _says(b""),
    "garbage": _says(b"\x00\xff\x13\x37" * 50),
    "a page": _says(_document(b"<html>welcome</html>")),
    "a list": _says(_document(b"[1]")),
    "a number": _says(_document(b"5")),
    "an empty object": _says(_document(b"{}")),
    "a wrong result": _says(_document(b'{"jsonrpc":"2.0","id":1,"result":{"task":{"id":5,"status":"x"}}}')),
    "an error that is none": _says(_document(b'{"jsonrpc":"2.0","id":1,"error":"x"}')),
    "half a body": _says(HTTP % (b"application/json", b"content-length: 99\r\n") + b"{"),
    "dripping": _drip,
    "a silent stream": _silent_stream,
    "an empty stream": _says(HTTP % (b"text/event-stream", b"connection: close\r\n")),
    "a stream of nonsense": _says(HTTP % (b"text/event-stream", b"connection: close\r\n") + b"data: x\n\n"),
    "a stream of nothing": _says(HTTP % (b"text/event-stream", b""), then=b": ping\n\n"),
    "half a stream": _says(HTTP % (b"text/event-stream", b"connection: close\r\n") + EVENT),
}


@asynccontextmanager
async def rude(talk):
    """A server that speaks as it likes; yields its address and those who are connected."""
    connected: set = set()

    async def handle(reader, writer):
        task = asyncio.current_task()
        connected.add(task)
        try:
            await reader.readuntil(b"\r\n\r\n")
            answering = asyncio.ensure_future(talk(reader, writer))
            try:
                # Until it has spoken, or the other side has gone.
                while not answering.done() and await _still_there(reader):
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


async def _still_there(reader):
    try:
        async with asyncio.timeout(0.05):
            return bool(await reader.read(65536))
    except TimeoutError:
        return True


@pytest.mark.parametrize("kind", [*HOSTILE, "dead"])
async def test_a_server_that_is_none_ends_within_the_deadline(kind):
    """Typed, in time, on every path at once; no task and no connection stays."""
    gc.collect()
    await asyncio.sleep(0)
    before = asyncio.all_tasks()
    async with rude(HOSTILE.get(kind, _hang)) as (base, connected):
        if kind == "dead":
            base = "http://127.0.0.1:9"

        async def send(path):
            # Nothing but the deadline would end it.
            bounds = {"policy": Policy(deadline=0.5), "timeout": 3600, "patience": None}
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
async def test_an_answer_without_end_is_not_kept(path, monkeypatch):
    """The memory is ours."""
    monkeypatch.setattr("amends.bindings.a2a.http_recorder.LARGEST", 1024 * 1024)
    kind = b"text/event-stream" if path.streaming else b"application/json"
    endless = _says(HTTP % (kind, b""), then=b"x" * 65536)
    async with rude(endless) as (base, _), client_for(base, path, policy=NONE) as client:
        with pytest.raises(ServiceUnavailableError):
            await events_of(client)


@pytest.mark.parametrize("path", STREAMS, ids=str)
async def test_who_stops_listening_leaves_nothing_behind(path, desk):
    """A consumer that breaks off, and one that is cancelled."""

    async def work(context, updater):
        await updater.start_work()
        await asyncio.Event().wait()

    desk.does(work)
    gc.collect()
    before = asyncio.all_tasks()
    async with client_for(desk.base, path) as client:
        async with aclosing(client.send_message(request())) as events:
            await anext(events)
        waiting = asyncio.ensure_future(events_of(client))
        while desk.agent.calls < 2:
            await asyncio.sleep(0.01)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        pool = client._connection._config.httpx_client._transport._pool
        while asyncio.all_tasks() != before or [each for each in pool.connections if not each.is_idle()]:
            gc.collect()
            await asyncio.sleep(0.01)
