"""A store without transactions: a crash between any two steps is repaired, and no key gets two jobs."""

from __future__ import annotations

import asyncio
import time
from types import SimpleNamespace

import pytest

from amends import stores
from amends.arcp import Limits
from amends.arcp.runtime.cluster import takeover
from amends.arcp.runtime.cluster.retention import EndedJobs
from amends.arcp.runtime.entries import ACTIVE, KEYS, JobEntry, JobSpec, encode
from amends.arcp.runtime.ledger import Ledger
from amends.arcp.wire import new_id
from amends.durable.batch import Batch
from amends.durable.keys import Owner, key_name
from amends.errors.arcp import InternalError
from amends.stores import ConflictError
from tests.arcp.raw import connected

pytestmark = pytest.mark.parametrize("store_url", ["nats"], indirect=True)
PRINCIPAL = "alice"
LONG = 100
"""Timeout in seconds; the waits take a few leases, and longer on a busy machine."""


class Crash(Exception):
    """The simulated end of a process."""


@pytest.fixture
def crash_after(monkeypatch):
    """Makes a commit fail after so many of its steps."""
    whole = Batch._perform_in_order

    def set(ledger, count, error=Crash):
        async def some(self, store):
            if store is not ledger.store:
                # A commit of another node.
                return await whole(self, store)
            monkeypatch.setattr(Batch, "_perform_in_order", whole)
            self._changes = self._changes[:count]
            await whole(self, store)
            raise error

        monkeypatch.setattr(Batch, "_perform_in_order", some)

    return set


@pytest.fixture
async def dead_ledger(store_url):
    """The ledger of a dead node: it has no row, and writes only what the test makes it write."""
    async with await stores.open(store_url) as store:
        yield Ledger(store, new_id("node"), Limits())


def job_spec(key="k", *, agent="echo@1.0.0", fingerprint="f", repeatable=False, ahead=0.0):
    return JobSpec(
        job_id=new_id("job"),
        principal=PRINCIPAL,
        session="sess_x",
        agent=agent,
        created=time.time() + ahead,
        trace="0" * 31 + "1",
        key=None if key is None else key_name(PRINCIPAL, key),
        fingerprint=fingerprint,
        input=1,
        repeatable=repeatable,
    )


@pytest.mark.parametrize(
    ("here", "steps"), [(True, 1), (True, 2), (True, 3), (False, 2), (False, 3), (False, 4)]
)
async def test_accepting_is_interrupted(store_url, begin, dead_ledger, crash_after, steps, here):
    """The same key submitted again leads to one job that ends, wherever the first try stopped."""
    living = await begin(store_url, limits={"node_lease": 0.6})
    raw = await connected(living)
    first = job_spec(fingerprint=await _same_fingerprint(living, raw))
    crash_after(dead_ledger, steps)
    with pytest.raises(Crash):
        await dead_ledger.accept(first, here=here)
    end = await raw.run("echo", 1, idempotency_key="k")
    kinds = await _kinds(living, first.job_id)
    if kinds[:1] == ["accepted"]:
        # The first try had written the job: the second one joined it, and it ended once.
        assert end["job_id"] == first.job_id
        assert sum(kind in {"result", "error"} for kind in kinds) == 1
    else:
        assert end["job_id"] != first.job_id
        assert end["payload"]["result"] == 1
        assert kinds in ([], ["annulled"])
    async with asyncio.timeout(LONG):
        while [row async for row in living._node.store.table(ACTIVE).scan()]:
            await asyncio.sleep(0.05)
    await raw.close()


async def _kinds(runtime, job_id):
    return [entry.kind async for _, entry in runtime._node.ledger.history(job_id)]


async def _same_fingerprint(runtime, raw):
    """Return the fingerprint of the request that the test sends."""
    await raw.run("echo", 1, idempotency_key="probe")
    return (await runtime._node.ledger.keys.get(key_name(PRINCIPAL, "probe"))).fingerprint


async def test_a_crash_before_the_queue_under_a_clock_that_is_ahead(
    store_url, begin, dead_ledger, crash_after
):
    """The age of a queued job is not measured by its submitter's clock, which may be an hour ahead."""
    spec = job_spec(key=None, ahead=3600.0)
    crash_after(dead_ledger, 2)
    with pytest.raises(Crash):
        await dead_ledger.accept(spec, here=False)
    living = await begin(store_url, limits={"node_lease": 0.5})
    assert await _wait_for_end(living, spec.job_id) == ["accepted", "started", "result"]


async def test_a_slow_submission_whose_key_was_released(store_url, begin, crash_after):
    """The key is released before the job's log has an entry: the slow submission fails and leaves no row."""
    node = (await begin(store_url))._node
    slow = job_spec()
    crash_after(node.ledger, 1)
    with pytest.raises(Crash):
        await node.ledger.accept(slow, here=True)
    assert await node.ledger.release_key(slow.key) == slow.job_id
    assert await node.ledger.keys.get(slow.key) is None
    again = job_spec()
    await node.ledger.accept(again, here=False)
    assert await node.ledger.release_key(slow.key) is None
    # The slow submission continues with its next step.
    await node.ledger.write_owner(slow, JobEntry("accepted", 1, 1, node.id, slow.created))
    with pytest.raises(ConflictError):
        await node.store.log(f"arcp.job/{slow.job_id}").append(b"x", last=0)
    assert (await node.ledger.keys.get(slow.key)).id == again.job_id
    with pytest.raises(InternalError):
        await node.ledger.accept(slow, here=True)
    assert await node.ledger.release_key("nothing") is None


async def test_a_job_with_an_annulled_log_is_not_started(store_url, begin):
    """A late `accept` of a job whose key was released fails."""
    node = (await begin(store_url))._node
    slow = job_spec()
    await node.store.table(KEYS).put(slow.key, encode(Owner(slow.job_id, "f")))
    await node.ledger.release_key(slow.key)
    with pytest.raises(InternalError):
        await node.ledger.accept(slow, here=True)
    assert not [row async for row in node.store.table(ACTIVE).scan()]


@pytest.mark.parametrize("repeatable", [True, False])
@pytest.mark.parametrize("steps", [1, 2])
async def test_starting_is_interrupted(store_url, begin, dead_ledger, crash_after, steps, repeatable):
    """A node dies after its first or second step of taking a job: the job still ends once."""
    first = job_spec(key=None, repeatable=repeatable)
    await dead_ledger.accept(first, here=False)
    crash_after(dead_ledger, steps)
    with pytest.raises(Crash):
        await dead_ledger.start(first, await dead_ledger.tail(first.job_id))
    living = await begin(store_url, limits={"node_lease": 0.5})
    kinds = await _wait_for_end(living, first.job_id)
    assert kinds[-1] == ("result" if repeatable else "error")
    assert sum(kind in {"result", "error"} for kind in kinds) == 1


@pytest.mark.parametrize("steps", [1, 2, 3])
async def test_putting_back_is_interrupted(store_url, begin, dead_ledger, crash_after, steps):
    """A node dies while it requeues a dead node's job: another node continues."""
    first = job_spec(key=None, repeatable=True)
    await dead_ledger.accept(first, here=True)
    crash_after(dead_ledger, steps)
    with pytest.raises(Crash):
        await dead_ledger.requeue(first, await dead_ledger.tail(first.job_id))
    living = await begin(store_url, limits={"node_lease": 0.5})
    assert (await _wait_for_end(living, first.job_id)).count("result") == 1


@pytest.mark.parametrize("repeatable", [True, False])
@pytest.mark.parametrize("here", [True, False])
async def test_entries_that_cannot_be_read(store_url, begin, dead_ledger, here, repeatable):
    """The job goes on from the entries before them if it may be repeated; otherwise it ends in doubt."""
    spec = job_spec(key=None, repeatable=repeatable)
    await dead_ledger.accept(spec, here=here)
    for value in (b"\xff", b'["started"]'):
        await dead_ledger.store.log(f"arcp.job/{spec.job_id}").append(value)
    other = job_spec(key=None)
    await dead_ledger.accept(other, here=True)
    living = await begin(store_url, limits={"node_lease": 0.3})
    kinds = await _wait_for_end(living, spec.job_id)
    again = ["accepted", "requeued", "started", "event", "result"]
    assert kinds == (again if repeatable else ["accepted", "error"])
    assert await _wait_for_end(living, other.job_id) == ["accepted", "error"]
    raw = await connected(living)
    await raw.send("job.subscribe", {"job_id": spec.job_id, "history": True, "from_event_seq": 0})
    end = await raw.end(spec.job_id)
    assert repeatable or end["payload"]["details"]["in_doubt"] is True
    await raw.close()


async def test_running_again_is_interrupted(store_url, begin, dead_ledger, crash_after):
    """The node dies before it writes the row: the next submission with the key writes it, and the run ends in doubt."""
    living = await begin(store_url, limits={"node_lease": 0.5})
    raw = await connected(living)
    end = await raw.run("flaky", {"fails": 1}, idempotency_key="k")
    assert end["type"] == "job.error"
    job_id = end["job_id"]
    crash_after(dead_ledger, 1)
    with pytest.raises(Crash):
        await dead_ledger.rerun(await dead_ledger.spec(job_id), await dead_ledger.tail(job_id), here=True)
    again = await raw.run("flaky", {"fails": 1}, idempotency_key="k")
    assert again["job_id"] == job_id
    assert again["payload"]["details"]["in_doubt"] is True
    await raw.close()


async def test_a_node_ends_what_it_gave_up(store_url, begin):
    """After a store failure longer than a lease, the node itself ends the run that it dropped."""
    runtime = await begin(store_url, limits={"node_lease": 0.4})
    node = runtime._node
    raw = await connected(runtime)
    job_id = (await raw.submit("waiting"))["payload"]["job_id"]
    await raw.until("job.event")
    node.jobs[job_id].drop()
    end = await raw.end(job_id)
    assert end["payload"]["details"]["in_doubt"] is True
    await raw.close()


@pytest.mark.parametrize("beginning", ["start", "rerun"])
async def test_a_job_that_is_starting_is_not_taken_over(store_url, begin, monkeypatch, beginning):
    """If the store takes longer than a lease to write the start, the node does not take over its own job."""
    runtime = await begin(store_url)
    node = runtime.node
    raw = await connected(runtime)
    write, entries = getattr(node.ledger, beginning), []

    async def slow(*args, **options):
        entry = await write(*args, **options)
        with monkeypatch.context() as patch:
            patch.setattr(takeover, "time", SimpleNamespace(time=lambda: time.time() + 3600))
            await node.takeover.recover_orphans()
        entries.append(entry)
        return entry

    if beginning == "start":
        first = job_spec(key=None)
        monkeypatch.setattr(node.ledger, "start", slow)
        await node.ledger.accept(first, here=False)
        assert await _wait_for_end(runtime, first.job_id) == ["accepted", "started", "result"]
    else:
        await raw.run("flaky", {"fails": 1}, idempotency_key="k")
        monkeypatch.setattr(node.ledger, "rerun", slow)
        assert (await raw.run("flaky", {"fails": 1}, idempotency_key="k"))["type"] == "job.result"
    assert len(entries) == 1
    assert (node.takeover.taken_over, node.capacity.being_written) == (0, set())
    await raw.close()


async def test_the_store_fails_during_a_rerun(store_url, begin, monkeypatch):
    """After a write with an unknown outcome, the reserved place is free again."""
    runtime = await begin(store_url)
    node = runtime.node
    raw = await connected(runtime)
    await raw.run("flaky", {"fails": 1}, idempotency_key="k")

    async def failing(*args, **options):
        raise stores.StoreUnavailableError("away", "maybe")

    with monkeypatch.context() as patch:
        patch.setattr(node.ledger, "rerun", failing)
        answer = await raw.submit("flaky", {"fails": 1}, idempotency_key="k")
        assert answer["type"] == "job.error"
    assert (node.capacity.running, node.capacity.being_written) == (0, set())
    assert (await raw.run("flaky", {"fails": 1}, idempotency_key="k"))["type"] == "job.result"
    await raw.close()


async def test_one_node_is_responsible_for_a_queued_job(store_url, begin):
    """Each queued job has exactly one responsible node."""
    nodes = [(await begin(store_url, agents=False))._node for _ in range(3)]
    for node in nodes:
        await node.membership.refresh_peers()
    for number in range(20):
        assert sum(node.membership.is_responsible(f"job_{number}") for node in nodes) == 1


async def _wait_for_end(runtime, job_id):
    async with asyncio.timeout(LONG):
        while True:
            kinds = await _kinds(runtime, job_id)
            if kinds and kinds[-1] in {"result", "error"}:
                return kinds
            await asyncio.sleep(0.05)


async def test_a_session_row_that_expires_later_than_expected(store_url, begin):
    """If it has not expired by the store's clock, the node checks it again later and then deletes it."""
    runtime = await begin(store_url, limits={"resume_window": 2.0})
    node = runtime.node
    raw = await connected(runtime)
    await raw.run("echo", 1)
    await raw.close()
    async with asyncio.timeout(LONG):
        while raw.session_id not in node.sessions._detached:
            await asyncio.sleep(0.01)
    row, _ = node.sessions._detached[raw.session_id]
    node.sessions._detached[raw.session_id] = (row, node.tasks.loop.time())
    await node.sessions.expire()
    assert raw.session_id in node.sessions._detached
    async with asyncio.timeout(LONG):
        while [name for name in (await node.store.names())["logs"] if "session" in name]:
            await node.sessions.expire()
            await asyncio.sleep(0.1)
    assert raw.session_id not in node.sessions._detached


@pytest.mark.parametrize(("noticed", "lease"), [("maintain", 0.5), ("refresh", 3.0)])
async def test_ended_jobs_of_a_stopped_node_are_deleted(store_url, begin, noticed, lease):
    """One of the remaining nodes schedules the deletion of its ended jobs."""
    first = await begin(store_url, limits={"node_lease": lease})
    second = await begin(store_url, limits={"node_lease": lease})
    raw = await connected(first)
    job_id = (await raw.run("echo", 1))["job_id"]
    await second.node.membership.refresh_peers()
    await first.stop()
    if noticed == "refresh":
        # A request that refreshes the peers may be the first to notice.
        await second.node.membership.refresh_peers()
    async with asyncio.timeout(LONG):
        while job_id not in {ended.job_id for ended in second.node.ended.plain.kept}:
            await asyncio.sleep(0.05)


async def test_a_busy_node_renews_its_row(store_url, begin, monkeypatch):
    """The node renews its row while an eviction takes longer than a lease."""
    busy = asyncio.Event()

    async def long(node):
        busy.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(EndedJobs, "expire", long)
    runtime = await begin(store_url, limits={"node_lease": 1.0})
    await busy.wait()
    nodes, revisions = runtime.node.store.table("arcp.nodes"), set()
    async with asyncio.timeout(LONG):
        while len(revisions) < 3:
            row = await nodes.get(runtime.node.id)
            if row is not None:
                revisions.add(row.revision)
            await asyncio.sleep(0.05)
