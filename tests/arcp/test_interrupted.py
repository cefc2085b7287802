"""A store without transactions: what stands after a crash between any two steps is mended, and no key has two jobs."""

from __future__ import annotations

import asyncio
import time
from types import SimpleNamespace

import pytest

from amends import stores
from amends.arcp import Limits
from amends.arcp.runtime import maintenance
from amends.arcp.runtime.batch import Steps
from amends.arcp.runtime.entries import ACTIVE, KEYS, JobSpec, KeyRow, encode, key_name
from amends.arcp.runtime.ledger import Ledger
from amends.arcp.wire import new_id
from amends.errors.arcp import InternalError
from amends.stores import ConflictError
from tests.arcp.raw import connected

pytestmark = pytest.mark.parametrize("store_url", ["nats"], indirect=True)
PRINCIPAL = "alice"
LONG = 100
"""Seconds after which something is lost; what is waited for takes a few leases, and a busy machine's time."""


class Crash(Exception):
    """The process is gone."""


@pytest.fixture
def crash_after(monkeypatch):
    """Lets so many steps of a commit happen."""
    whole = Steps._one_by_one

    def set(ledger, count, error=Crash):
        async def some(self, store):
            if store is not ledger.store:
                # Somebody else's.
                return await whole(self, store)
            monkeypatch.setattr(Steps, "_one_by_one", whole)
            self._steps = self._steps[:count]
            await whole(self, store)
            raise error

        monkeypatch.setattr(Steps, "_one_by_one", some)

    return set


@pytest.fixture
async def gone(store_url):
    """The ledger of a node that nobody vouches for: it writes what the test lets it write, and looks after nothing."""
    async with await stores.open(store_url) as store:
        yield Ledger(store, new_id("node"), Limits())


def order(key="k", *, agent="echo@1.0.0", fingerprint="f", repeatable=False):
    return JobSpec(
        job_id=new_id("job"),
        principal=PRINCIPAL,
        session="sess_x",
        agent=agent,
        created=time.time(),
        trace="0" * 31 + "1",
        key=None if key is None else key_name(PRINCIPAL, key),
        fingerprint=fingerprint,
        input=1,
        repeatable=repeatable,
    )


@pytest.mark.parametrize(
    ("here", "steps"), [(True, 1), (True, 2), (True, 3), (False, 2), (False, 3), (False, 4)]
)
async def test_accepting_is_interrupted(store_url, begin, gone, crash_after, steps, here):
    """The same key submitted again leads to one job that ends, wherever the first try stopped."""
    living = await begin(store_url, limits={"node_lease": 0.6})
    first = order()
    crash_after(gone, steps)
    with pytest.raises(Crash):
        await gone.accept(first, here=here)
    raw = await connected(living)
    fingerprint = await _same_fingerprint(living, raw)
    row = await living._node.ledger.key(first.key)
    if row is not None:
        await living._node.store.table(KEYS).put(first.key, encode(KeyRow(row.job_id, fingerprint)))
    end = await raw.run("echo", 1, idempotency_key="k")
    kinds = await _kinds(living, first.job_id)
    begun = kinds[:1] == ["accepted"]
    if begun:
        # It was written down: the submission joined it, and it had one end.
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
    return [mark.kind async for _, mark in runtime._node.ledger.history(job_id)]


async def _same_fingerprint(runtime, raw):
    """What this runtime makes of the request the test sends."""
    await raw.run("echo", 1, idempotency_key="probe")
    return (await runtime._node.ledger.key(key_name(PRINCIPAL, "probe"))).fingerprint


async def test_who_was_slow_with_its_key_begins_nothing(store_url, begin, crash_after):
    """Taken over before the log was begun: the slow one is refused by the log, and leaves no row."""
    node = (await begin(store_url))._node
    slow = order()
    crash_after(node.ledger, 1)
    with pytest.raises(Crash):
        await node.ledger.accept(slow, here=True)
    assert await node.ledger.annul(slow.key) == slow.job_id
    assert await node.ledger.key(slow.key) is None
    again = order()
    await node.ledger.accept(again, here=False)
    assert await node.ledger.annul(slow.key) is None
    # The slow one goes on where it was.
    steps = Steps()
    node.ledger._activate(steps, slow, node.ledger.accepted(slow, here=True))
    await steps.commit(node.store)
    with pytest.raises(ConflictError):
        await node.store.log(f"arcp.job/{slow.job_id}").append(b"x", last=0)
    assert (await node.ledger.key(slow.key)).job_id == again.job_id
    with pytest.raises(InternalError):
        await node.ledger.accept(slow, here=True)
    assert await node.ledger.annul("nothing") is None


async def test_a_buried_id_is_not_begun(store_url, begin):
    """The whole of an acceptance that comes late."""
    node = (await begin(store_url))._node
    slow = order()
    await node.store.table(KEYS).put(slow.key, encode(KeyRow(slow.job_id, "f")))
    await node.ledger.annul(slow.key)
    with pytest.raises(InternalError):
        await node.ledger.accept(slow, here=True)
    assert not [row async for row in node.store.table(ACTIVE).scan()]


@pytest.mark.parametrize("repeatable", [True, False])
@pytest.mark.parametrize("steps", [1, 2])
async def test_starting_is_interrupted(store_url, begin, gone, crash_after, steps, repeatable):
    """A node dies between saying that it has a job and everything else: the job has one end all the same."""
    first = order(key=None, repeatable=repeatable)
    await gone.accept(first, here=False)
    crash_after(gone, steps)
    with pytest.raises(Crash):
        await gone.start(first, await gone.tail(first.job_id))
    living = await begin(store_url, limits={"node_lease": 0.5})
    kinds = await _ended(living, first.job_id)
    assert kinds[-1] == ("result" if repeatable else "error")
    assert sum(kind in {"result", "error"} for kind in kinds) == 1


@pytest.mark.parametrize("steps", [1, 2, 3])
async def test_putting_back_is_interrupted(store_url, begin, gone, crash_after, steps):
    """A keeper dies while it puts a dead node's job back: the next one goes on with it."""
    first = order(key=None, repeatable=True)
    await gone.accept(first, here=True)
    crash_after(gone, steps)
    with pytest.raises(Crash):
        await gone.requeue(first, await gone.tail(first.job_id))
    living = await begin(store_url, limits={"node_lease": 0.5})
    assert (await _ended(living, first.job_id)).count("result") == 1


async def test_running_again_is_interrupted(store_url, begin, gone, crash_after):
    """Between the log and its row: the next submission with the key has the row written, and the keeper sees to it."""
    living = await begin(store_url, limits={"node_lease": 0.5})
    raw = await connected(living)
    end = await raw.run("flaky", {"fails": 1}, idempotency_key="k")
    assert end["type"] == "job.error"
    job_id = end["job_id"]
    crash_after(gone, 1)
    with pytest.raises(Crash):
        await gone.again(await gone.order(job_id), await gone.tail(job_id), here=True)
    again = await raw.run("flaky", {"fails": 1}, idempotency_key="k")
    assert again["job_id"] == job_id
    assert again["payload"]["details"]["in_doubt"] is True
    await raw.close()


async def test_a_node_ends_what_it_gave_up(store_url, begin):
    """The store failed for longer than a lease: the run was dropped here, and nobody else would look at it."""
    runtime = await begin(store_url, limits={"node_lease": 0.4})
    node = runtime._node
    raw = await connected(runtime)
    job_id = (await raw.submit("waiting"))["payload"]["job_id"]
    await raw.until("job.event")
    node.jobs[job_id].lost()
    end = await raw.end(job_id)
    assert end["payload"]["details"]["in_doubt"] is True
    await raw.close()


@pytest.mark.parametrize("beginning", ["start", "again"])
async def test_a_job_that_is_being_begun_is_not_given_up(store_url, begin, monkeypatch, beginning):
    """The store takes longer than a lease to write that a job begins here: its own keeper leaves it alone."""
    runtime = await begin(store_url)
    node = runtime.node
    raw = await connected(runtime)
    write, looked = getattr(node.ledger, beginning), []

    async def slow(*args, **options):
        mark = await write(*args, **options)
        with monkeypatch.context() as patch:
            patch.setattr(maintenance, "time", SimpleNamespace(time=lambda: time.time() + 3600))
            await maintenance.recover_orphans(node)
        looked.append(mark)
        return mark

    if beginning == "start":
        first = order(key=None)
        monkeypatch.setattr(node.ledger, "start", slow)
        await node.ledger.accept(first, here=False)
        assert await _ended(runtime, first.job_id) == ["accepted", "started", "result"]
    else:
        await raw.run("flaky", {"fails": 1}, idempotency_key="k")
        monkeypatch.setattr(node.ledger, "again", slow)
        assert (await raw.run("flaky", {"fails": 1}, idempotency_key="k"))["type"] == "job.result"
    assert len(looked) == 1
    assert (node.taken_over, node.placing) == (0, set())
    await raw.close()


async def test_running_again_fails_in_the_store(store_url, begin, monkeypatch):
    """Nobody knows whether it was written: the place that was kept for it is free again."""
    runtime = await begin(store_url)
    node = runtime.node
    raw = await connected(runtime)
    await raw.run("flaky", {"fails": 1}, idempotency_key="k")

    async def failing(*args, **options):
        raise stores.StoreUnavailableError("gone", "maybe")

    with monkeypatch.context() as patch:
        patch.setattr(node.ledger, "again", failing)
        answer = await raw.submit("flaky", {"fails": 1}, idempotency_key="k")
        assert answer["type"] == "job.error"
    assert (node.running, node.placing) == (0, set())
    assert (await raw.run("flaky", {"fails": 1}, idempotency_key="k"))["type"] == "job.result"
    await raw.close()


async def test_only_one_node_looks_at_a_job_that_waits(store_url, begin):
    """Each node has its share of the queue's jobs to look at; together they look at all."""
    nodes = [(await begin(store_url, agents=False))._node for _ in range(3)]
    for node in nodes:
        await node.meet()
    for number in range(20):
        assert sum(maintenance._looks(node, f"job_{number}") for node in nodes) == 1


async def _ended(runtime, job_id):
    async with asyncio.timeout(LONG):
        while True:
            kinds = await _kinds(runtime, job_id)
            if kinds and kinds[-1] in {"result", "error"}:
                return kinds
            await asyncio.sleep(0.05)


async def test_a_session_whose_row_lives_a_moment_longer(store_url, begin):
    """By the store's clock it has not run out yet: it is looked at again, and erased then."""
    runtime = await begin(store_url, limits={"resume_window": 2.0})
    node = runtime.node
    raw = await connected(runtime)
    await raw.run("echo", 1)
    await raw.close()
    async with asyncio.timeout(LONG):
        while raw.session_id not in node.sessions._left:
            await asyncio.sleep(0.01)
    node.sessions._left[raw.session_id] = ("alice", node.loop.time())
    await node.sessions.expire()
    assert raw.session_id in node.sessions._left
    async with asyncio.timeout(LONG):
        while [name for name in (await node.store.names())["logs"] if "session" in name]:
            await node.sessions.expire()
            await asyncio.sleep(0.1)
    assert raw.session_id not in node.sessions._left


@pytest.mark.parametrize(("noticed", "lease"), [("looking", 0.5), ("asking", 3.0)])
async def test_somebody_forgets_what_a_node_that_left_has_ended(store_url, begin, noticed, lease):
    """Its ended jobs are inherited by one of those that stay."""
    first = await begin(store_url, limits={"node_lease": lease})
    second = await begin(store_url, limits={"node_lease": lease})
    raw = await connected(first)
    job_id = (await raw.run("echo", 1))["job_id"]
    await second.node.meet()
    await first.stop()
    if noticed == "asking":
        # Whoever asks who is there may be the first to notice.
        await second.node.meet()
    async with asyncio.timeout(LONG):
        while job_id not in {ended.job_id for ended in second.node.ended}:
            await asyncio.sleep(0.05)


async def test_a_node_vouches_for_itself_while_it_is_busy(store_url, begin, monkeypatch):
    """Forgetting takes longer than a lease: the node is alive all the same."""
    busy = asyncio.Event()

    async def long(node):
        busy.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(maintenance, "evict", long)
    runtime = await begin(store_url, limits={"node_lease": 1.0})
    await busy.wait()
    nodes, revisions = runtime.node.store.table("arcp.nodes"), set()
    async with asyncio.timeout(LONG):
        while len(revisions) < 3:
            row = await nodes.get(runtime.node.id)
            if row is not None:
                revisions.add(row.revision)
            await asyncio.sleep(0.05)
