"""What happens seldom: sessions taken elsewhere in the middle of a write, stores that fail at the door, misuse."""

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
    """A store whose tables fail when told to, in front of a real one."""

    def __init__(self, store):
        self._store = store
        self.broken = False

    def __getattr__(self, name):
        return getattr(self._store, name)

    def table(self, name):
        if self.broken:
            raise stores.StoreError("broken")
        return self._store.table(name)


async def resumed(runtime, raw):
    other = dial(runtime)
    assert (await other.hello(resume=raw.resume_block()))["type"] == "session.welcome"
    return other


def test_who_may_connect_has_to_be_said():
    """No open door by accident."""
    for options in (
        {},
        {"tokens": "t", "authenticate": lambda token: "x"},
        {"tokens": []},
        {"tokens": {"": "x"}},
    ):
        with pytest.raises(ValueError):
            Runtime(**options)


async def test_a_runtime_is_started_once_and_before_it_serves():
    """Misuse is said where it happens."""
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
    # And again, after it was stopped.
    async with register(Runtime(tokens=TOKENS)) as again:
        raw = await connected(again)
        assert (await raw.run("echo", 1))["payload"]["result"] == 1
        await raw.close()


async def test_a_store_that_cannot_be_opened(tmp_path):
    """The runtime does not start, and holds nothing."""
    (tmp_path / "file").write_text("not a store")
    runtime = Runtime(f"sqlite:///{tmp_path / 'file'}", tokens=TOKENS)
    with pytest.raises(stores.StoreError):
        await runtime.start()


async def test_a_store_that_fails_at_the_door(begin, caplog):
    """No session, told as our failure; nothing of the store's words leaves; later it works again."""
    async with await stores.open(f"memory:{uuid.uuid4().hex}") as real:
        door = Door(real)
        runtime = await begin(door)
        raw = await connected(runtime, features=[])
        await raw.run("echo", 1)
        door.broken = True
        stranger = dial(runtime)
        message = await stranger.hello()
        assert (message["type"], message["payload"]["code"]) == ("session.error", "INTERNAL_ERROR")
        request = await raw.send("session.list_jobs", {})
        assert request
        answer = await raw.submit("echo", 2, idempotency_key="k")
        assert answer["payload"]["code"] == "INTERNAL_ERROR"
        assert "broken" not in str(raw.seen) + str(stranger.seen)
        door.broken = False
        assert (await raw.run("echo", 2, idempotency_key="k"))["payload"]["result"] == 2
        await raw.close()


async def test_hanging_up_in_the_greeting(begin):
    """Before the hello, and before the welcome could be sent."""
    runtime = await begin()
    gone = dial(runtime)
    await gone.close()
    ours, theirs = pair(frames=1)
    raw = Raw(ours, asyncio.ensure_future(runtime.serve(theirs)))
    await raw.send("session.hello", {"auth": {"token": "alice-token"}})
    await raw.close()
    assert runtime._node.strangers == 0
    for _ in range(3):
        wrong = dial(runtime)
        await wrong.send("session.hello", {"auth": {"token": "wrong"}})
        await wrong.close()
    assert not runtime._node.sessions.attached


async def test_a_submission_over_a_connection_that_was_given_up(sqlite_url, begin):
    """The session is another node's: the old connection's request is not served, and its connection ends."""
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


async def test_a_job_that_ends_while_its_session_moves(sqlite_url, begin):
    """The end is written without the session that has moved, and told where it is now, once."""
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


async def test_running_again_when_there_is_no_room(store_url, begin):
    """A further run waits its turn like any other job."""
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
    """The end of a job that has ended is told, whatever the subscriber believes to have seen."""
    runtime = await begin()
    raw, watcher = await connected(runtime), await connected(runtime)
    end = await raw.run("echo", 1)
    request = {"job_id": end["job_id"], "history": True, "from_event_seq": seen}
    await watcher.answer(await watcher.send("job.subscribe", request))
    assert (await watcher.end(end["job_id"]))["payload"] == end["payload"]
    await asyncio.gather(raw.close(), watcher.close())


async def test_subscribing_again_changes_nothing(begin):
    """Who listens goes on where it is, and keeps its authority."""
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


async def test_an_agent_looks_around(begin):
    """Everything a context knows, and what it says when it is told to stop."""
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
            seen["told"] = ctx.cancelled
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
        "told": True,
    }
    await raw.close()


async def test_a_loop_that_ends_leaves_the_job_in_doubt(sqlite_url, begin):
    """Tasks cancelled from outside, as when the program is interrupted: nothing is made up, the next node says so."""
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
    """What an agent sets in its context is its own, over every wait, though jobs may share a task."""
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
    assert None not in tasks
    await raw.close()


async def test_noticing_is_transparent():
    """Values thrown in and waits in a row reach the coroutine as if it were awaited itself."""
    from amends.arcp.runtime.noticing import Noticing

    async def body(log):
        for _ in range(2):
            try:
                await asyncio.sleep(10)
            except asyncio.CancelledError:
                log.append("told")
                asyncio.current_task().uncancel()
        await asyncio.sleep(0)
        log.append("end")
        return "value"

    for apart in (True, False):
        log = []
        noticing = Noticing(body(log), lambda log=log: log.append("waits"), apart=apart)
        task = asyncio.ensure_future(_awaiting(noticing))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.sleep(0)
        task.cancel()
        assert await task == "value"
        assert log == ["waits", "told", "told", "end"]

    async def at_once():
        log.append("at once")

    log = []
    await Noticing(at_once(), lambda: log.append("waits"))
    assert log == ["at once"]

    async def giving_up():
        try:
            await asyncio.sleep(10)
        except asyncio.CancelledError:
            return

    task = asyncio.ensure_future(_awaiting(Noticing(giving_up(), lambda: None)))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])


async def _awaiting(what):
    return await what


async def test_what_comes_late_over_a_connection_that_was_given_up(begin):
    """Found by the simulation: a submission that arrives after its connection was dropped begins nothing."""
    runtime = await begin()
    raw = await connected(runtime)
    session = runtime._node.sessions.attached[raw.session_id]
    close = session.connection.close

    async def slowly(code=1000, reason=""):
        """As a transport whose goodbye is on its way."""

    session.connection.close = slowly
    await runtime._node.drop(session)
    await raw.send("job.submit", {"agent": "echo", "input": 1, "idempotency_key": "k"})
    await asyncio.wait_for(raw.serving, 100)
    assert [row async for row in runtime._node.store.table("arcp.keys").scan()] == []
    await close()
