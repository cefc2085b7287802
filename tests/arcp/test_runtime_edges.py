"""Rare cases: sessions resumed elsewhere during a write, stores that fail in the handshake, and misuse."""

from __future__ import annotations

import asyncio
import uuid

import pytest

from amends import stores
from amends.arcp import Limits, Runtime
from amends.arcp.transports.memory import pair
from tests.arcp.agents import register
from tests.arcp.raw import TOKENS, Raw, connected, dial


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


def test_authentication_must_be_configured():
    """A runtime without authentication cannot be created."""
    for options in (
        {},
        {"tokens": "t", "authenticate": lambda token: "x"},
        {"tokens": []},
        {"tokens": {"": "x"}},
    ):
        with pytest.raises(ValueError):
            Runtime(**options)


async def test_a_runtime_is_started_once_and_before_it_serves():
    """Misuse raises."""
    runtime = Runtime(tokens=TOKENS)
    ours, theirs = pair()
    with pytest.raises(RuntimeError):
        await runtime.serve(theirs)
    assert await ours.receive() is None
    await runtime.stop()
    await runtime.abandon()
    async with runtime:
        with pytest.raises(RuntimeError):
            await runtime.start()
    # It can be started again after it was stopped.
    async with register(Runtime(tokens=TOKENS)) as again:
        raw = await connected(again)
        assert (await raw.run("echo", 1))["payload"]["result"] == 1
        await raw.close()


async def test_a_store_that_cannot_be_opened(tmp_path):
    """The runtime does not start, and keeps nothing open."""
    (tmp_path / "file").write_text("not a store")
    runtime = Runtime(f"sqlite:///{tmp_path / 'file'}", tokens=TOKENS)
    with pytest.raises(stores.StoreError):
        await runtime.start()


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


async def test_a_closed_event_loop_leaves_the_job_in_doubt(sqlite_url, begin):
    """If tasks are cancelled from outside, no end is written; the next node ends the job in doubt."""
    limits = Limits(node_lease=0.4, drain=0.0)
    ended = register(Runtime(sqlite_url, tokens=TOKENS, limits=limits))
    await ended.start()
    raw = await connected(ended)
    job_id = (await raw.submit("waiting"))["payload"]["job_id"]
    await raw.until("job.event")
    job = ended._node.jobs[job_id]
    job.task.cancel()
    await asyncio.wait([job.task])
    assert job_id in ended._node.jobs
    await ended.abandon()
    raw2 = await resumed(await begin(sqlite_url, limits={"node_lease": 0.4}), raw)
    end = await raw2.end(job_id)
    assert end["payload"]["details"]["in_doubt"] is True
    await raw2.close()


async def test_jobs_do_not_see_each_others_context(begin):
    """Context variables that an agent sets stay its own over every wait; each job has a task of its own."""
    from contextvars import ContextVar

    variable = ContextVar("variable", default="untouched")
    tasks = []

    async def setting(input, ctx):
        before = variable.get()
        token = variable.set(input)
        if input != "at once":
            await asyncio.sleep(0.01)
        tasks.append(asyncio.current_task())
        inside = variable.get()
        if input == "reset":
            variable.reset(token)
        return [before, inside, variable.get()]

    runtime = await begin()
    runtime.register_agent("setting", setting)
    raw = await connected(runtime)
    for input in ("at once", "waits", "at once", "reset", "at once"):
        after = "untouched" if input == "reset" else input
        assert (await raw.run("setting", input))["payload"]["result"] == ["untouched", input, after]
    assert len(set(tasks)) == len(tasks)
    assert None not in tasks
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
