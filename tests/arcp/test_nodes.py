"""Several nodes on one store: submit here, run there, watch elsewhere; and what a dead node leaves behind."""

from __future__ import annotations

import asyncio

import pytest

from amends.arcp import Limits, Runtime
from tests.arcp.agents import echo, waiting
from tests.arcp.raw import TOKENS, connected, dial

pytestmark = pytest.mark.parametrize("store_url", ["memory", "sqlite", "nats"], indirect=True)


async def test_agents_of_other_nodes(store_url, begin):
    """Submitted on a node that does not have the agent, run by the one that does; nobody has it: not available."""
    front, back = await begin(store_url, agents=False), await begin(store_url, agents=False)
    back.register_agent("echo", echo, version="2")
    await back._node.announce()
    raw = await connected(front)
    agents = [agent["name"] for agent in raw.welcome["capabilities"].get("agents", [])]
    assert agents == ["echo"]
    end = await raw.run("echo", {"x": 1})
    assert end["payload"]["result"] == {"x": 1}
    assert (await raw.submit("echo@1", 1))["payload"]["code"] == "AGENT_VERSION_NOT_AVAILABLE"
    assert (await raw.submit("nobody", 1))["payload"]["code"] == "AGENT_NOT_AVAILABLE"
    assert [m["event_seq"] for m in raw.seen if "event_seq" in m] == [1]
    await raw.close()


async def test_watching_and_cancelling_across_nodes(store_url, begin):
    """Submit on one, run on another, subscribe on a third, resume on a fourth, cancel from there."""
    front, back, third, fourth = [await begin(store_url, agents=False) for _ in range(4)]
    back.register_agent("waiting", waiting)
    await back._node.announce()
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
    """The child runs where its agent is; its events come to the session of the parent, its result to the parent."""
    from tests.arcp.agents import delegating, spending

    front, back = await begin(store_url, agents=False), await begin(store_url, agents=False)
    front.register_agent("delegating", delegating)
    back.register_agent("spending", spending)
    await back._node.announce()
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
    """Fenced: another node has ended the job; the sleeper's end is not written, and its listeners hear the other's."""
    awake = await begin(store_url, limits={"node_lease": 0.4})
    woken = asyncio.Event()

    async def sleeper(input, ctx):
        await ctx.log("asleep")
        await woken.wait()
        await ctx.log("awake")
        return "late"

    sleeping = Runtime(store_url, tokens=TOKENS, limits=Limits(node_lease=0.4, cancel_grace=0.1, drain=0.0))
    sleeping.register_agent("sleeper", sleeper)
    async with sleeping:
        raw = await connected(sleeping)
        job_id = (await raw.submit("sleeper", idempotency_key="k"))["payload"]["job_id"]
        await raw.until("job.event")
        # As if the process had been stopped: it says nothing for longer than its lease.
        node = sleeping._node

        async def silent():
            pass

        node.announce = silent
        await node.store.table("arcp.nodes").delete(node.id)
        watcher = await connected(awake)
        request = await watcher.send("job.subscribe", {"job_id": job_id})
        await watcher.answer(request)
        end = await watcher.end(job_id)
        assert end["payload"]["details"]["in_doubt"] is True
        woken.set()
        # The sleeper's own listener gets the one end there is.
        mine = await raw.end(job_id)
        assert mine["payload"] == end["payload"]
        assert job_id not in node.jobs
        entries = [mark async for _, mark in node.ledger.history(job_id)]
        assert [mark.kind for mark in entries].count("error") == 1
        assert not any(b"awake" in bytes(mark.payload) for mark in entries)
        assert entries[-1].kind == "error"
        await asyncio.gather(raw.close(), watcher.close())


async def test_a_late_node_lets_go_by_itself(store_url, begin):
    """After an absence it looks at every job it believes to have."""
    from amends.arcp.runtime.maintenance import _still_mine

    runtime = await begin(store_url)
    raw = await connected(runtime)
    mine = (await raw.submit("waiting"))["payload"]["job_id"]
    lost = (await raw.submit("waiting"))["payload"]["job_id"]
    node = runtime._node
    order, tail = await node.ledger.order(lost), await node.ledger.tail(lost)
    while tail[1].kind != "event":
        await asyncio.sleep(0.01)
        tail = await node.ledger.tail(lost)
    await node.ledger.requeue(order, tail)
    await _still_mine(node)
    assert set(node.jobs) == {mine}
    await raw.close()


async def test_rolling_restart(store_url, begin):
    """A node that stops puts repeatable work back; another one does it; no job fails."""
    release = asyncio.Event()

    async def patient(input, ctx):
        await ctx.status("begun")
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


async def test_who_stops_is_done_before_another_begins(store_url, begin):
    """A run goes back into its queue when its agent has come to rest, not before: nobody works beside it."""
    at_work, most, cleaned = 0, 0, []

    async def tidy(input, ctx):
        nonlocal at_work, most
        at_work += 1
        most = max(most, at_work)
        try:
            await ctx.status("begun")
            if not cleaned:
                await asyncio.Event().wait()
            return "done"
        finally:
            # What it was told to stop for takes it a while.
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


async def test_a_node_that_was_just_born_is_not_taken_for_dead(store_url, begin, monkeypatch):
    """Who has what is read before who lives: a node that begins in between says that it lives before it works."""
    from amends.arcp.runtime.maintenance import recover_orphans

    old = await begin(store_url)
    node = old.node
    meet, active = node.meet, node.ledger.active

    async def born():
        """Another node, with a job."""
        raw = await connected(await begin(store_url))
        job_id = (await raw.submit("waiting"))["payload"]["job_id"]
        await raw.until("job.event")
        return raw, job_id

    async def meeting():
        await meet()
        looked.set()
        await born_by_now.wait()

    async def scanning(owner=None):
        async for row in active(owner):
            yield row
        looked.set()
        await born_by_now.wait()

    for name, where, stand_in in (("meet", node, meeting), ("active", node.ledger, scanning)):
        looked, born_by_now = asyncio.Event(), asyncio.Event()
        with monkeypatch.context() as patch:
            patch.setattr(where, name, stand_in)
            looking = asyncio.ensure_future(recover_orphans(node))
            await looked.wait()
            raw, job_id = await born()
            born_by_now.set()
            await looking
        tail = await node.ledger.tail(job_id)
        assert not tail[1].ended
        assert tail[1].epoch == 1
        await raw.close()


async def test_what_is_kept_is_forgotten_in_time(store_url, begin):
    """Ended jobs go by age and by number, also those of nodes that are gone; sessions' logs go with them."""
    first = await begin(store_url, limits={"finished_for": 0.3, "node_lease": 0.3, "resume_window": 0.3})
    raw = await connected(first)
    for _ in range(5):
        await raw.run("echo", 1)
    await raw.close()
    await first.stop()
    second = await begin(store_url, limits={"finished_for": 0.3, "node_lease": 0.3, "resume_window": 0.3})
    store = second._node.store
    async with asyncio.timeout(10):
        while True:
            names = await store.names()
            rows = [row async for row in store.table("arcp.jobs").scan()]
            if not rows and not [name for name in names["logs"] if name.startswith("arcp.job/")]:
                break
            await asyncio.sleep(0.05)
    third = await begin(store_url, limits={"node_lease": 0.3})
    assert third._node.ended == type(third._node.ended)()
    names = await store.names()
    assert not [name for name in names["logs"] if name.startswith("arcp.session/")]
