"""Several nodes on one store: jobs submitted, run and watched on different nodes, and the takeover of dead nodes."""

from __future__ import annotations

import asyncio

import pytest

from amends.arcp import Limits, Runtime
from tests.arcp.agents import waiting
from tests.arcp.raw import TOKENS, connected, dial

pytestmark = pytest.mark.parametrize("store_url", ["memory", "sqlite", "nats"], indirect=True)


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
