"""Clients that are gone delay no other client: not its heartbeats, not its resumption, not the end of the runtime."""

from __future__ import annotations

import asyncio

from amends.arcp.transports.memory import pair
from tests.arcp.raw import Raw, connected, dial

GONE = 20


class SlowClose:
    """The runtime's side of a connection whose client does not confirm a close."""

    def __init__(self, connection, confirm):
        self._connection = connection
        self._confirm = confirm

    def __getattr__(self, name):
        return getattr(self._connection, name)

    async def close(self, code=1000, reason=""):
        await self._confirm.wait()
        await self._connection.close(code, reason)


async def gone(runtime, confirm, **options):
    """A session whose client is silent, and does not confirm the close of its connection."""
    ours, theirs = pair()
    raw = Raw(ours, asyncio.ensure_future(runtime.serve(SlowClose(theirs, confirm))))
    assert (await raw.hello(**options))["type"] == "session.welcome"
    return raw


async def test_the_others_get_their_heartbeats(begin):
    """A client that answers is pinged on time while the connections of many that are gone are being closed."""
    confirm = asyncio.Event()
    runtime = await begin(limits={"heartbeat": 0.1})
    for _ in range(GONE):
        await gone(runtime, confirm)
    raw = await connected(runtime)
    attached = runtime.node.sessions.attached
    async with asyncio.timeout(30):
        while len(attached) > 1:
            ping = await raw.until("session.ping")
            await raw.send("session.pong", {"ping_nonce": ping["payload"]["nonce"]})
        for _ in range(3):
            ping = await raw.until("session.ping")
            await raw.send("session.pong", {"ping_nonce": ping["payload"]["nonce"]})
    assert list(attached) == [raw.session_id]
    confirm.set()
    await raw.close()


async def test_a_session_is_resumed_at_once(begin):
    """The client's old connection does not have to be closed first."""
    confirm = asyncio.Event()
    runtime = await begin()
    old = await gone(runtime, confirm)
    new = dial(runtime)
    async with asyncio.timeout(30):
        assert (await new.hello(resume=old.resume_block()))["type"] == "session.welcome"
        assert (await new.run("echo", 1))["payload"]["result"] == 1
    confirm.set()
    await new.close()


async def test_stopping_closes_all_connections_at_the_same_time(begin):
    """Each connection may take seconds to close, and there may be many."""
    runtime = await begin()
    closing, together = [], asyncio.Event()

    class Counted(SlowClose):
        async def close(self, code=1000, reason=""):
            closing.append(code)
            if len(closing) == GONE:
                together.set()
            await together.wait()
            await self._connection.close(code, reason)

    for _ in range(GONE):
        ours, theirs = pair()
        raw = Raw(ours, asyncio.ensure_future(runtime.serve(Counted(theirs, together))))
        assert (await raw.hello())["type"] == "session.welcome"
    async with asyncio.timeout(30):
        await runtime.stop()
    assert closing[:GONE] == [1001] * GONE


async def test_a_silent_connection_makes_room_at_once(begin):
    """A new connection does not wait until the silent one that it replaces has confirmed its close."""
    confirm = asyncio.Event()
    runtime = await begin(limits={"handshakes": 1, "hello_timeout": 60.0})
    _, theirs = pair()
    silent = asyncio.ensure_future(runtime.serve(SlowClose(theirs, confirm)))
    await asyncio.sleep(0)
    async with asyncio.timeout(30):
        raw = await connected(runtime)
    confirm.set()
    await asyncio.wait([silent])
    await raw.close()
