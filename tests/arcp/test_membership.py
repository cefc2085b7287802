"""The nodes that share a store, and their agents."""

from __future__ import annotations

import asyncio

from tests.arcp.agents import echo
from tests.arcp.raw import connected


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
