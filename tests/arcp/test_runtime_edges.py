"""Rare cases: sessions resumed elsewhere during a write, stores that fail in the handshake, and misuse."""

from __future__ import annotations

import asyncio
import uuid

import pytest

from amends import stores
from amends.arcp.transports.memory import pair
from tests.arcp.raw import Raw, connected, dial


class Door:
    """A store whose tables fail on request, in front of a real one."""

    def __init__(self, store):
        self._store = store
        self.broken = False

    def __getattr__(self, name):
        return getattr(self._store, name)

    def table(self, name):
        return DoorTable(self, self._store.table(name))


class DoorTable:
    def __init__(self, door, table):
        self._door, self._table = door, table

    def __getattr__(self, name):
        if self._door.broken:
            raise stores.StoreError("broken")
        return getattr(self._table, name)


async def resumed(runtime, raw):
    other = dial(runtime)
    assert (await other.hello(resume=raw.resume_block()))["type"] == "session.welcome"
    return other


async def test_the_store_fails_during_the_handshake(begin, caplog):
    """The client gets INTERNAL_ERROR without the store's message; later handshakes succeed."""
    async with await stores.open(f"memory:{uuid.uuid4().hex}") as real:
        door = Door(real)
        runtime = await begin(door)
        raw = await connected(runtime, features=[])
        await raw.run("echo", 1)
        door.broken = True
        unknown = dial(runtime)
        message = await unknown.hello()
        assert (message["type"], message["payload"]["code"]) == ("session.error", "INTERNAL_ERROR")
        request = await raw.send("session.list_jobs", {})
        assert request
        answer = await raw.submit("echo", 2, idempotency_key="k")
        assert answer["payload"]["code"] == "INTERNAL_ERROR"
        assert "broken" not in str(raw.seen) + str(unknown.seen)
        door.broken = False
        assert (await raw.run("echo", 2, idempotency_key="k"))["payload"]["result"] == 2
        await raw.close()


async def test_closing_during_the_handshake(begin):
    """Before the hello, and before the welcome is sent."""
    runtime = await begin()
    gone = dial(runtime)
    await gone.close()
    ours, theirs = pair(frames=1)
    raw = Raw(ours, asyncio.ensure_future(runtime.serve(theirs)))
    await raw.send("session.hello", {"auth": {"token": "alice-token"}})
    await raw.close()
    assert len(runtime._node.server.handshakes) == 0
    for _ in range(3):
        wrong = dial(runtime)
        await wrong.send("session.hello", {"auth": {"token": "wrong"}})
        await wrong.close()
    assert not runtime._node.sessions.attached


async def test_a_submission_over_a_replaced_connection(sqlite_url, begin):
    """Another node has the session: the request is not served, and the old connection is closed."""
    first, second = await begin(sqlite_url), await begin(sqlite_url)
    raw = await connected(first)
    raw2 = await resumed(second, raw)
    await raw.send("job.submit", {"agent": "echo", "input": 1})
    async with asyncio.timeout(100):
        while await raw.receive() is not None:
            pass
    assert not [m for m in raw.seen if m["type"] == "job.accepted"]
    assert (await raw2.run("echo", 2))["event_seq"] == 1
    await raw2.close()


async def test_a_job_that_ends_while_its_session_is_resumed(sqlite_url, begin):
    """The end is written without the resumed session's numbers, and sent once on the new connection."""
    first, second = await begin(sqlite_url), await begin(sqlite_url)
    release = asyncio.Event()

    async def quiet(input, ctx):
        await release.wait()
        return "done"

    first.register_agent("quiet", quiet)
    raw = await connected(first)
    job_id = (await raw.submit("quiet"))["payload"]["job_id"]
    raw2 = await resumed(second, raw)
    release.set()
    end = await raw2.end(job_id)
    assert (end["payload"]["result"], end["event_seq"]) == ("done", 1)
    assert await raw.receive() is None
    await raw2.close()


async def test_a_rerun_without_free_capacity_is_queued(store_url, begin):
    """Another run waits in the queue like any other job."""
    runtime = await begin(store_url, limits={"running": 1})
    raw = await connected(runtime)
    first = await raw.run("flaky", {"fails": 1}, idempotency_key="k")
    busy = (await raw.submit("waiting"))["payload"]["job_id"]
    again = await raw.submit("flaky", {"fails": 1}, idempotency_key="k")
    assert again["payload"]["job_id"] == first["job_id"]
    joined = await raw.submit("flaky", {"fails": 1}, idempotency_key="k")
    assert joined["payload"]["job_id"] == first["job_id"]
    await raw.send("job.cancel", {}, job_id=busy)
    end = await raw.end(first["job_id"])
    assert end["payload"]["result"] == {"run": 2}
    await raw.close()


@pytest.mark.parametrize("seen", [0, 1, 50, 2**40])
async def test_subscribing_from_beyond_the_end(seen, begin):
    """The end of an ended job is sent, whatever the subscriber claims to have seen."""
    runtime = await begin()
    raw, watcher = await connected(runtime), await connected(runtime)
    end = await raw.run("echo", 1)
    request = {"job_id": end["job_id"], "history": True, "from_event_seq": seen}
    await watcher.answer(await watcher.send("job.subscribe", request))
    assert (await watcher.end(end["job_id"]))["payload"] == end["payload"]
    await asyncio.gather(raw.close(), watcher.close())


async def test_subscribing_again_changes_nothing(begin):
    """A session that is subscribed keeps its feed and its right to cancel."""
    runtime = await begin()
    raw = await connected(runtime)
    job_id = (await raw.submit("counting", {"count": 10, "pause": 0.01}))["payload"]["job_id"]
    await raw.answer(await raw.send("job.subscribe", {"job_id": job_id}))
    await raw.end(job_id)
    lines = [m["payload"]["body"]["message"].strip() for m in raw.events(job_id)]
    assert lines == [str(n) for n in range(10)]
    other = (await raw.submit("waiting"))["payload"]["job_id"]
    await raw.answer(await raw.send("job.subscribe", {"job_id": other, "history": True}))
    await raw.send("job.cancel", {}, job_id=other)
    assert (await raw.end(other))["payload"]["code"] == "CANCELLED"
    await raw.close()


async def test_the_facts_in_a_context(begin):
    """Every property of a context, and `cancelled` after a cancellation."""
    runtime = await begin()
    seen = {}

    async def curious(input, ctx):
        seen.update(
            lease=ctx.lease, parent=ctx.parent_job_id, credentials=ctx.credentials, cancelled=ctx.cancelled
        )
        seen["left"] = ctx.deadline - asyncio.get_running_loop().time()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            seen["after"] = ctx.cancelled
            raise

    runtime.register_agent("curious", curious)
    raw = await connected(runtime)
    job = await raw.submit("curious", max_runtime_sec=0.2, lease_request={"fs.read": ["/w/**"]})
    await raw.end(job["payload"]["job_id"])
    assert seen.pop("left") <= 0.2
    assert seen == {
        "lease": {"fs.read": ["/w/**"]},
        "parent": None,
        "credentials": [],
        "cancelled": False,
        "after": True,
    }
    await raw.close()


async def test_late_frames_of_a_replaced_connection(begin):
    """Found by the simulation: a submission that arrives after its connection was dropped starts no job."""
    runtime = await begin()
    raw = await connected(runtime)
    session = runtime._node.sessions.attached[raw.session_id]
    close = session.connection.close

    async def slowly(code=1000, reason=""):
        """Close like a transport whose closing handshake takes a while."""

    session.connection.close = slowly
    await session.drop()
    await raw.send("job.submit", {"agent": "echo", "input": 1, "idempotency_key": "k"})
    await asyncio.wait_for(raw.serving, 100)
    assert [row async for row in runtime._node.store.table("arcp.keys").scan()] == []
    await close()
