"""Several nodes on one store: jobs submitted, run and watched on different nodes, and the takeover of dead nodes."""

from __future__ import annotations

import asyncio

import pytest

from amends.arcp import Limits, Runtime
from tests.arcp.agents import echo, waiting
from tests.arcp.raw import TOKENS, connected, dial

pytestmark = pytest.mark.parametrize("store_url", ["memory", "sqlite", "nats"], indirect=True)


async def test_agents_of_other_nodes(store_url, begin):
    """A job is submitted on a node without the agent and runs on the one that has it; unknown agents are refused."""
    front, back = await begin(store_url, agents=False), await begin(store_url, agents=False)
    back.register_agent("echo", echo, version="2")
    await back._node.membership.announce()
    raw = await connected(front)
    agents = [agent["name"] for agent in raw.welcome["capabilities"].get("agents", [])]
    assert agents == ["echo"]
    end = await raw.run("echo", {"x": 1})
    assert end["payload"]["result"] == {"x": 1}
    assert (await raw.submit("echo@1", 1))["payload"]["code"] == "AGENT_VERSION_NOT_AVAILABLE"
    assert (await raw.submit("unknown", 1))["payload"]["code"] == "AGENT_NOT_AVAILABLE"
    assert [m["event_seq"] for m in raw.seen if "event_seq" in m] == [1]
    await raw.close()


async def test_watching_and_cancelling_across_nodes(store_url, begin):
    """Submit on one node, run on another, subscribe on a third, resume on a fourth and cancel from there."""
    front, back, third, fourth = [await begin(store_url, agents=False) for _ in range(4)]
    back.register_agent("waiting", waiting)
    await back._node.membership.announce()
    raw = await connected(front)
    job_id = (await raw.submit("waiting"))["payload"]["job_id"]
    await raw.until("job.event")
    watcher = await connected(third)
    request = await watcher.send("job.subscribe", {"job_id": job_id, "history": True})
    assert (await watcher.answer(request))["payload"]["current_status"] == "running"
    await watcher.until("job.event")
    await raw.close()
    raw2 = dial(fourth)
    assert (await raw2.hello(resume=raw.resume_block()))["type"] == "session.welcome"
    request = await raw2.send("job.cancel", {"reason": "from afar"}, job_id=job_id)
    assert (await raw2.answer(request))["type"] == "job.cancelled"
    end, seen = await raw2.end(job_id), await watcher.end(job_id)
    assert end["payload"] == seen["payload"]
    assert end["payload"]["details"] == {"reason": "from afar"}
    assert end["event_seq"] == 2
    await asyncio.gather(raw2.close(), watcher.close())


async def test_delegating_to_another_node(store_url, begin):
    """The child runs on the node with its agent; the parent's session gets its events, the parent gets its result."""
    from tests.arcp.agents import delegating, spending

    front, back = await begin(store_url, agents=False), await begin(store_url, agents=False)
    front.register_agent("delegating", delegating)
    back.register_agent("spending", spending)
    await back._node.membership.announce()
    await asyncio.sleep(0)
    raw = await connected(front)
    lease = {"agent.delegate": ["*"], "tool.call": ["*"], "cost.budget": ["USD:1.00"]}
    child = {"agent": "spending", "input": {"amounts": [0.25]}, "lease": {"tool.call": ["*"]}}
    end = await raw.run("delegating", child, lease_request=lease)
    assert end["payload"]["result"] == {"result": {"USD": "0.75"}, "budget": {"USD": "0.75"}}
    accepted = [m for m in raw.seen if m["type"] == "job.accepted"]
    assert len(accepted) == 2
    child_id = accepted[1]["job_id"]
    if not [m for m in raw.seen if m["type"] == "job.result" and m["job_id"] == child_id]:
        await raw.end(child_id)
    assert raw.events(child_id, "metric")
    await raw.close()


async def test_a_node_that_wakes_up_late_finishes_nothing(store_url, begin):
    """Another node has ended the job: the suspended node cannot write its end, and its subscribers get the other one."""
    awake = await begin(store_url, limits={"node_lease": 0.4})
    woken = asyncio.Event()

    async def sleeper(input, ctx):
        await ctx.log("asleep")
        await woken.wait()
        await ctx.log("awake")
        return "late"

    # Its own lease is long: only the deletion below makes the other node consider it dead.
    sleeping = Runtime(store_url, tokens=TOKENS, limits=Limits(node_lease=30.0, cancel_grace=0.1, drain=0.0))
    sleeping.register_agent("sleeper", sleeper)
    async with sleeping:
        raw = await connected(sleeping)
        job_id = (await raw.submit("sleeper", idempotency_key="k"))["payload"]["job_id"]
        await raw.until("job.event")
        # As if the process had been suspended, the node does not renew its row.
        node = sleeping._node

        async def silent():
            pass

        node.membership.announce = silent
        await node.store.table("arcp.nodes").delete(node.id)
        watcher = await connected(awake)
        request = await watcher.send("job.subscribe", {"job_id": job_id})
        await watcher.answer(request)
        end = await watcher.end(job_id)
        assert end["payload"]["details"]["in_doubt"] is True
        woken.set()
        # The subscriber of the suspended node gets the same end.
        mine = await raw.end(job_id)
        assert mine["payload"] == end["payload"]
        assert job_id not in node.jobs
        entries = [entry async for _, entry in node.ledger.history(job_id)]
        assert [entry.kind for entry in entries].count("error") == 1
        assert not any(b"awake" in bytes(entry.payload) for entry in entries)
        assert entries[-1].kind == "error"
        await asyncio.gather(raw.close(), watcher.close())


async def test_a_suspended_node_drops_lost_jobs(store_url, begin):
    """After a pause longer than its lease, a node checks every job that it runs."""
    runtime = await begin(store_url)
    raw = await connected(runtime)
    mine = (await raw.submit("waiting"))["payload"]["job_id"]
    lost = (await raw.submit("waiting"))["payload"]["job_id"]
    node = runtime._node
    spec, tail = await node.ledger.spec(lost), await node.ledger.tail(lost)
    while tail[1].kind != "event":
        await asyncio.sleep(0.01)
        tail = await node.ledger.tail(lost)
    await node.ledger.requeue(spec, tail)
    await node.takeover.drop_lost_jobs()
    assert [job.spec.job_id for job in node.jobs] == [mine]
    await raw.close()


async def test_rolling_restart(store_url, begin):
    """A node that stops requeues repeatable jobs, and another node runs them; no job fails."""
    release = asyncio.Event()

    async def patient(input, ctx):
        await ctx.status("started")
        await release.wait()
        return input

    second = await begin(store_url, limits={"running": 0})
    second.register_agent("patient", patient, repeatable=True)
    first = Runtime(store_url, tokens=TOKENS, limits=Limits(drain=0.0))
    first.register_agent("patient", patient, repeatable=True)
    async with first:
        raw = await connected(first)
        job_id = (await raw.submit("patient", 5))["payload"]["job_id"]
        await raw.until("job.event")
    assert (await raw.until("session.bye"))["payload"]
    third = await begin(store_url)
    third.register_agent("patient", patient, repeatable=True)
    raw2 = dial(third)
    await raw2.hello(resume=raw.resume_block())
    release.set()
    end = await raw2.end(job_id)
    assert end["payload"]["result"] == 5
    numbers = [m["event_seq"] for m in raw.seen + raw2.seen if "event_seq" in m]
    assert numbers == list(range(1, len(numbers) + 1))
    await raw2.close()


async def test_an_agent_stops_before_its_job_is_requeued(store_url, begin):
    """A run is requeued after its agent has stopped, so that it never runs twice at the same time."""
    at_work, most, cleaned = 0, 0, []

    async def tidy(input, ctx):
        nonlocal at_work, most
        at_work += 1
        most = max(most, at_work)
        try:
            await ctx.status("started")
            if not cleaned:
                await asyncio.Event().wait()
            return "done"
        finally:
            # Cleaning up takes a while.
            for _ in range(20):
                await asyncio.sleep(0.01)
            cleaned.append(ctx.run)
            at_work -= 1

    second = await begin(store_url, limits={"running": 0})
    second.register_agent("tidy", tidy, repeatable=True)
    first = Runtime(store_url, tokens=TOKENS, limits=Limits(drain=0.0))
    first.register_agent("tidy", tidy, repeatable=True)
    third = await begin(store_url)
    async with first:
        raw = await connected(first)
        job_id = (await raw.submit("tidy"))["payload"]["job_id"]
        await raw.until("job.event")
        third.register_agent("tidy", tidy, repeatable=True)
    watcher = await connected(third)
    await watcher.send("job.subscribe", {"job_id": job_id, "history": True})
    assert (await watcher.end(job_id))["payload"]["result"] == "done"
    assert (most, cleaned) == (1, [1, 1])
    await watcher.close()


async def test_a_new_node_is_not_considered_dead(store_url, begin, monkeypatch):
    """Jobs are read before nodes, and a node writes its row before it takes a job, so a new node appears alive."""
    old = await begin(store_url)
    node = old.node
    refresh, active = node.membership.refresh_peers, node.ledger.active

    async def start_another():
        """Start another node, with a job."""
        raw = await connected(await begin(store_url))
        job_id = (await raw.submit("waiting"))["payload"]["job_id"]
        await raw.until("job.event")
        return raw, job_id

    async def refreshing():
        await refresh()
        read.set()
        await started.wait()

    async def scanning(owner=None):
        async for row in active(owner):
            yield row
        read.set()
        await started.wait()

    for name, where, replacement in (
        ("refresh_peers", node.membership, refreshing),
        ("active", node.ledger, scanning),
    ):
        read, started = asyncio.Event(), asyncio.Event()
        with monkeypatch.context() as patch:
            patch.setattr(where, name, replacement)
            recovering = asyncio.ensure_future(node.takeover.recover_orphans())
            await read.wait()
            raw, job_id = await start_another()
            started.set()
            await recovering
        tail = await node.ledger.tail(job_id)
        assert not tail[1].ended
        assert tail[1].epoch == 1
        await raw.close()


async def test_ended_jobs_are_deleted_in_time(store_url, begin):
    """Ended jobs are deleted by age and by number, also those of stopped nodes, and session logs as well."""
    first = await begin(store_url, limits={"finished_for": 0.3, "node_lease": 0.3, "resume_window": 0.3})
    raw = await connected(first)
    for _ in range(5):
        await raw.run("echo", 1)
    await raw.close()
    await first.stop()
    second = await begin(store_url, limits={"finished_for": 0.3, "node_lease": 0.3, "resume_window": 0.3})
    store = second._node.store
    async with asyncio.timeout(100):
        while True:
            names = await store.names()
            rows = [row async for row in store.table("arcp.jobs").scan()]
            if not rows and not [name for name in names["logs"] if name.startswith("arcp.job/")]:
                break
            await asyncio.sleep(0.05)
    third = await begin(store_url, limits={"node_lease": 0.3})
    assert not third._node.ended.plain.kept
    names = await store.names()
    assert not [name for name in names["logs"] if name.startswith("arcp.session/")]
