"""The same runtime on a store without transactions: a real NATS server, steps in an order that can be mended."""

from __future__ import annotations

import asyncio
import uuid

import pytest

from amends import stores
from amends.arcp import Limits, Runtime
from amends.arcp.runtime.entries import ACTIVE, JobEntry, JobSpec, encode, job_log
from amends.arcp.runtime.maintenance import _take_over
from tests.arcp.agents import echo, waiting
from tests.arcp.raw import TOKENS, connected, dial
from tests.stores.servers import NatsServer


@pytest.fixture(scope="module")
def nats_server(tmp_path_factory):
    server = NatsServer(tmp_path_factory.mktemp("nats"))
    server.start()
    yield server
    server.stop()


@pytest.fixture
def nats_url(nats_server):
    return f"{nats_server.url}/a{uuid.uuid4().hex[:8]}?storage=memory"


async def test_jobs_keys_and_resuming_on_nats(nats_url, begin):
    """Everything a client sees is as on the other stores."""
    runtime = await begin(nats_url)
    raw = await connected(runtime)
    assert (await raw.run("echo", {"x": 1}))["payload"]["result"] == {"x": 1}
    first = await raw.run("flaky", {"fails": 1}, idempotency_key="k")
    again = await raw.run("flaky", {"fails": 1}, idempotency_key="k")
    done = await raw.run("flaky", {"fails": 1}, idempotency_key="k")
    assert (first["type"], again["type"]) == ("job.error", "job.result")
    assert first["job_id"] == again["job_id"]
    assert done["payload"] == again["payload"]
    assert (await raw.submit("echo", 1, idempotency_key="k"))["payload"]["code"] == "DUPLICATE_KEY"
    job_id = (await raw.submit("counting", {"count": 6, "pause": 0.01}))["payload"]["job_id"]
    await raw.until("job.event")
    await raw.close()
    raw2 = dial(runtime)
    assert (await raw2.hello(resume=raw.resume_block(0)))["type"] == "session.welcome"
    await raw2.end(job_id)
    numbers = [m["event_seq"] for m in raw2.seen if "event_seq" in m]
    assert numbers == list(range(1, len(numbers) + 1))
    await raw2.close()


async def test_two_nodes_on_nats(nats_url, begin):
    """Submitted on one, run by the other, cancelled from the first; a key raced for has one job."""
    front, back = await begin(nats_url, agents=False), await begin(nats_url, agents=False)
    back.register_agent("echo", echo)
    back.register_agent("waiting", waiting)
    await back._node.announce()
    raw, other = await connected(front), await connected(back)
    assert (await raw.run("echo", 5))["payload"]["result"] == 5
    job_id = (await raw.submit("waiting"))["payload"]["job_id"]
    await raw.until("job.event")
    await raw.send("job.cancel", {"reason": "r"}, job_id=job_id)
    assert (await raw.end(job_id))["payload"]["code"] == "CANCELLED"
    one, two = await asyncio.gather(
        raw.run("echo", 1, idempotency_key="race"), other.run("echo", 1, idempotency_key="race")
    )
    assert one["job_id"] == two["job_id"]
    assert one["payload"] == two["payload"]
    await asyncio.gather(raw.close(), other.close())


async def test_a_dead_node_on_nats(nats_url, begin):
    """Its jobs end in doubt; what had not begun is run."""
    limits = {"node_lease": 1.0}
    dying = Runtime(nats_url, tokens=TOKENS, limits=Limits(running=1, **limits))
    dying.register_agent("waiting", waiting)
    dying.register_agent("echo", echo)
    await dying.start()
    raw = await connected(dying)
    begun = (await raw.submit("waiting"))["payload"]["job_id"]
    await raw.until("job.event")
    waits = (await raw.submit("echo", 3))["payload"]["job_id"]
    await dying.abandon()
    runtime = await begin(nats_url, limits=limits)
    raw2 = dial(runtime)
    await raw2.hello(resume=raw.resume_block())
    ends = {}
    while len(ends) < 2:
        end = await raw2.until(lambda m: "event_seq" in m and m["type"] != "job.event")
        ends[end["job_id"]] = end["payload"]
    assert ends[begun]["details"] == {"in_doubt": True, "executed": "maybe"}
    assert ends[waits]["result"] == 3
    await raw2.close()


# -- interrupted between two steps: what the keeper finds, and what it makes of it


@pytest.fixture
async def node(begin):
    runtime = await begin(f"memory:{uuid.uuid4().hex}")
    return runtime._node


def order(**more):
    return JobSpec(
        job_id=f"job_{uuid.uuid4().hex}",
        principal="alice",
        session="sess_x",
        agent="echo@1.0.0",
        created=0.0,
        trace="a" * 32,
        **more,
    )


async def left_behind(node, given, marks, owner):
    """A job's log, and its row as a dead node left it."""
    from amends.arcp.runtime.ledger import summary_of

    for mark in marks:
        await node.store.log(job_log(given.job_id)).append(encode(mark))
    row = summary_of(given, "running", 1)
    await node.store.table(ACTIVE).put(f"{owner or '-'}/{given.job_id}", encode(row))
    return row


async def rows(node, table):
    return [row.key async for row in node.store.table(table).scan()]


def accepted(given, owner="dead"):
    import msgspec

    return JobEntry("accepted", 1, 1 if owner else 0, owner, 0.0, msgspec.Raw(encode(given)))


def ended(owner="dead"):
    import msgspec

    return JobEntry("result", 1, 1, owner, 1.0, msgspec.Raw(b'{"final_status":"success","result":1}'))


async def test_ended_in_the_log_only(node):
    """The tables are brought after the log."""
    given = order()
    row = await left_behind(node, given, [accepted(given), ended()], "dead")
    await _take_over(node, "dead", row)
    assert await rows(node, ACTIVE) == []
    assert [key.partition("/")[2] for key in await rows(node, "arcp.jobs")] == [given.job_id]


async def test_a_row_without_a_job(node):
    """Nothing was accepted: the row goes."""
    given = order()
    row = await left_behind(node, given, [], "dead")
    await _take_over(node, "dead", row)
    assert await rows(node, ACTIVE) == []


async def test_a_row_of_the_owner_before(node):
    """The job has moved on: the old row goes, the job is left alone."""
    given = order()
    row = await left_behind(node, given, [accepted(given), JobEntry("started", 1, 2, "other", 0.0)], "dead")
    await _take_over(node, "dead", row)
    assert not [key for key in await rows(node, ACTIVE) if key.startswith("dead/")]
    assert (await node.ledger.tail(given.job_id))[1].node == "other"


async def test_cancelled_while_its_node_was_dying(node):
    """Whoever takes it over ends it as it was asked to."""
    given = order()
    row = await left_behind(node, given, [accepted(given)], "dead")
    await node.store.table("arcp.cancels").put(given.job_id, b"")
    await _take_over(node, "dead", row)
    assert b"CANCELLED" in bytes((await node.ledger.tail(given.job_id))[1].payload)


async def test_a_queue_that_names_what_is_done(node):
    """Redelivered after its end, or while somebody has it: nothing happens twice."""
    from amends.arcp.runtime.dispatch import _round

    for marks in ([lambda g: accepted(g), lambda g: ended()], [lambda g: accepted(g, "somebody")], []):
        given = order()
        for make in marks:
            await node.store.log(job_log(given.job_id)).append(encode(make(given)))
        queue = node.store.queue("arcp.run.echo@1.0.0")
        await queue.put(given.job_id.encode(), key=given.job_id)
        before = await node.ledger.tail(given.job_id)
        while await _round(node):
            pass
        assert await node.ledger.tail(given.job_id) == before
        assert (await queue.size()).ready == 0


async def test_cancelled_in_the_queue_by_a_word_only(node):
    """It was at work when it was cancelled, and its node died: the word stands, and whoever takes the job ends it."""
    given = order()
    await node.ledger.accept(given, here=True)
    await node.store.table("arcp.cancels").put(given.job_id, b"")
    await node.ledger.requeue(given, await node.ledger.tail(given.job_id))
    node.wanted.set()
    async with asyncio.timeout(100):
        while not (await node.ledger.tail(given.job_id))[1].ended:
            await asyncio.sleep(0.01)
    assert b"CANCELLED" in bytes((await node.ledger.tail(given.job_id))[1].payload)


async def test_a_key_whose_job_was_forgotten(begin):
    """The key is as if never used."""
    runtime = await begin()
    raw = await connected(runtime)
    first = await raw.run("echo", 1, idempotency_key="k")
    await runtime._node.store.log(job_log(first["job_id"])).drop()
    again = await raw.run("echo", 1, idempotency_key="k")
    assert again["job_id"] != first["job_id"]
    await raw.close()


class Failing:
    """A store that fails when told to, in front of a real one."""

    def __init__(self, store):
        self._store = store
        self.error = None
        self.times = 0

    def __getattr__(self, name):
        return getattr(self._store, name)

    @property
    def url(self):
        # Not taken for memory: its writes may fail, and may make somebody wait.
        return "failing:"

    async def transaction(self, work, *, short=False):
        if self.times > 0:
            self.times -= 1
            if getattr(self.error, "executed", None) == "maybe":
                await self._store.transaction(work, short=short)
            raise self.error
        return await self._store.transaction(work, short=short)


@pytest.mark.parametrize("executed", ["no", "maybe"])
async def test_a_store_that_does_not_answer_for_a_while(executed, begin):
    """A write is tried again; one that had happened is recognised, and stands once."""
    async with await stores.open(f"memory:{uuid.uuid4().hex}") as real:
        failing = Failing(real)
        runtime = await begin(failing)
        release = asyncio.Event()

        async def agent(input, ctx):
            await ctx.log("begun")
            await release.wait()
            failing.error, failing.times = stores.StoreUnavailableError("away", executed), 1
            await ctx.log("while away")
            await asyncio.sleep(0.2)
            failing.times = 1
            return "done"

        runtime.register_agent("agent", agent)
        raw = await connected(runtime)
        job_id = (await raw.submit("agent"))["payload"]["job_id"]
        await raw.until("job.event")
        release.set()
        end = await raw.end(job_id)
        assert end["payload"]["result"] == "done"
        assert [m["payload"]["body"]["message"] for m in raw.events(job_id)] == ["begun", "while away"]
        await raw.close()


@pytest.mark.parametrize("error", [stores.StoreError("broken"), stores.StoreUnavailableError("away")])
async def test_a_store_that_fails_for_good(error, begin, caplog):
    """Submissions are refused; a running job is given up without a word, and left to whoever comes."""
    async with await stores.open(f"memory:{uuid.uuid4().hex}") as real:
        failing = Failing(real)
        runtime = await begin(failing, limits={"node_lease": 0.3})
        stopped = asyncio.Event()

        async def agent(input, ctx):
            await ctx.log("begun")
            failing.error, failing.times = error, 10**6
            await ctx.log("lost")
            try:
                await asyncio.sleep(30)
            finally:
                stopped.set()

        runtime.register_agent("agent", agent)
        raw = await connected(runtime)
        await raw.submit("agent")
        await asyncio.wait_for(stopped.wait(), 100)
        answer = await raw.submit("echo", 1)
        assert answer["payload"]["code"] == "INTERNAL_ERROR"
        assert "broken" not in str(raw.seen)
        failing.times = 0
        await raw.close()
