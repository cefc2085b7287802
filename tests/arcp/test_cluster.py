"""The runtime on a real NATS server, a store without transactions, and the repair of interrupted writes."""

from __future__ import annotations

import asyncio
import dataclasses
import uuid

import pytest

from amends import stores
from amends.arcp import Limits, Runtime
from amends.arcp.runtime.entries import ACTIVE, JobEntry, JobSpec, encode, job_log
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
    """Clients see the same behaviour as on other stores."""
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
    """A job is submitted on one node, run by the other and cancelled from the first; concurrent keys have one job."""
    front, back = await begin(nats_url, agents=False), await begin(nats_url, agents=False)
    back.register_agent("echo", echo)
    back.register_agent("waiting", waiting)
    await back._node.membership.announce()
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
    """Its running jobs end in doubt, and its queued jobs run."""
    limits = {"node_lease": 1.0}
    dying = Runtime(nats_url, tokens=TOKENS, limits=Limits(running=1, **limits))
    dying.register_agent("waiting", waiting)
    dying.register_agent("echo", echo)
    await dying.start()
    raw = await connected(dying)
    running = (await raw.submit("waiting"))["payload"]["job_id"]
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
    assert ends[running]["details"] == {"in_doubt": True, "executed": "maybe"}
    assert ends[waits]["result"] == 3
    await raw2.close()


# -- writes that were interrupted between two steps, and their repair by `maintenance`


def job_spec(**more):
    return JobSpec(
        job_id=f"job_{uuid.uuid4().hex}",
        principal="alice",
        session="sess_x",
        agent="echo@1.0.0",
        created=0.0,
        trace="a" * 32,
        **more,
    )


async def write_job(node, spec, entries, owner):
    """Write a job's log, and its row as a dead node left it."""
    from amends.arcp.runtime.ledger import summary_of

    for entry in entries:
        await node.store.log(job_log(spec.job_id)).append(encode(entry))
    row = summary_of(spec, "running", 1)
    await node.store.table(ACTIVE).put(f"{owner or '-'}/{spec.job_id}", encode(row))
    return row


def accepted_entry(spec, owner="dead"):
    import msgspec

    return JobEntry("accepted", 1, 1 if owner else 0, owner, 0.0, msgspec.Raw(encode(spec)))


def terminal_entry(owner="dead"):
    import msgspec

    return JobEntry("result", 1, 1, owner, 1.0, msgspec.Raw(b'{"final_status":"success","result":1}'))


async def test_a_cancelled_job_of_a_dead_node(node):
    """The node that takes it over ends it as cancelled."""
    spec = job_spec()
    row = await write_job(node, spec, [accepted_entry(spec)], "dead")
    await node.store.table("arcp.cancels").put(spec.job_id, b"")
    await node.takeover.take_over("dead", row)
    assert b"CANCELLED" in bytes((await node.ledger.tail(spec.job_id))[1].payload)


async def test_queue_messages_of_jobs_that_cannot_start(node):
    """A message that is redelivered after the job's end, or while another node has the job, has no effect."""
    for entries in (
        [lambda g: accepted_entry(g), lambda g: terminal_entry()],
        [lambda g: accepted_entry(g, "other")],
        [],
    ):
        spec = job_spec()
        for make in entries:
            await node.store.log(job_log(spec.job_id)).append(encode(make(spec)))
        queue = node.store.queue("arcp.run.echo@1.0.0")
        await queue.put(spec.job_id.encode(), key=spec.job_id)
        before = await node.ledger.tail(spec.job_id)
        while await node.dispatcher.take_one_of_each():
            pass
        assert await node.ledger.tail(spec.job_id) == before
        assert (await queue.size()).ready == 0


async def test_a_requeued_job_that_was_cancelled(node):
    """The job was running when it was cancelled, and its node died: the node that takes it from the queue ends it."""
    spec = job_spec()
    await node.ledger.accept(spec, here=True)
    await node.store.table("arcp.cancels").put(spec.job_id, b"")
    await node.ledger.requeue(spec, await node.ledger.tail(spec.job_id))
    node.capacity.queue_wakeup.set()
    async with asyncio.timeout(100):
        while not (await node.ledger.tail(spec.job_id))[1].ended:
            await asyncio.sleep(0.01)
    assert b"CANCELLED" in bytes((await node.ledger.tail(spec.job_id))[1].payload)


class Failing:
    """A store that fails on request, in front of a real one."""

    def __init__(self, store):
        self._store = store
        self.error = None
        self.times = 0

    def __getattr__(self, name):
        return getattr(self._store, name)

    @property
    def traits(self):
        """Writes to this store may fail and may wait."""
        return dataclasses.replace(self._store.traits, immediate=False)

    async def transaction(self, work):
        if self.times > 0:
            self.times -= 1
            if getattr(self.error, "executed", None) == "maybe":
                await self._store.transaction(work)
            raise self.error
        return await self._store.transaction(work)


@pytest.mark.parametrize("executed", ["no", "maybe"])
async def test_a_store_that_does_not_answer_for_a_while(executed, begin):
    """A write is repeated; if the first try had succeeded, its entries are in the log once."""
    async with await stores.open(f"memory:{uuid.uuid4().hex}") as real:
        failing = Failing(real)
        runtime = await begin(failing)
        release = asyncio.Event()

        async def agent(input, ctx):
            await ctx.log("started")
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
        assert [m["payload"]["body"]["message"] for m in raw.events(job_id)] == ["started", "while away"]
        await raw.close()


@pytest.mark.parametrize("error", [stores.StoreError("broken"), stores.StoreUnavailableError("away")])
async def test_a_store_that_fails_for_good(error, begin, caplog):
    """Submissions are refused; a running job is dropped without an end, for another node to take over."""
    async with await stores.open(f"memory:{uuid.uuid4().hex}") as real:
        failing = Failing(real)
        runtime = await begin(failing, limits={"node_lease": 0.3})
        seen, stopped = asyncio.Event(), asyncio.Event()

        async def agent(input, ctx):
            await ctx.log("started")
            # A session whose events cannot be numbered would lose its connection.
            await seen.wait()
            failing.error, failing.times = error, 10**6
            await ctx.log("lost")
            try:
                await asyncio.sleep(30)
            finally:
                stopped.set()

        runtime.register_agent("agent", agent)
        raw = await connected(runtime)
        await raw.submit("agent")
        assert (await raw.receive())["type"] == "job.event"
        seen.set()
        await asyncio.wait_for(stopped.wait(), 100)
        answer = await raw.submit("echo", 1)
        assert answer["payload"]["code"] == "INTERNAL_ERROR"
        assert "broken" not in str(raw.seen)
        failing.times = 0
        await raw.close()
