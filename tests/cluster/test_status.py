"""What a node looks at now and then must not grow with what the others do, nor with what was done long ago."""

from __future__ import annotations

import asyncio

from amends.arcp.runtime.ledger import Ledger
from tests.arcp.raw import connected


async def test_ended_jobs_leave_nothing_to_be_scanned(begin, nats_url):
    """A row that is gone is no message in the way of whoever scans the table, a moment later."""
    runtime = await begin(nats_url)
    raw = await connected(runtime)
    for number in range(20):
        await raw.run("echo", number)
    streams = runtime.node.store._streams
    async with asyncio.timeout(20):
        while (await streams.info("table", "arcp.active"))["state"]["messages"]:
            await asyncio.sleep(0.1)
    await raw.close()


async def test_a_row_that_is_on_its_way_out_is_passed_over(begin, nats_url):
    """By the server's clock it is gone; by a clock that is behind, it is empty."""
    runtime = await begin(nats_url)
    node = runtime.node
    await node.store.table("arcp.active").put(f"{node.id}/job_1", b"", expires_in=60)
    assert [row async for row in node.ledger.active()] == []


async def test_a_node_looks_at_its_own_and_at_who_is_gone(begin, nats_url, monkeypatch):
    """Its own jobs and those that wait, every time; all of them first and now and then; another's when that one is gone."""
    asked = {}
    active = Ledger.active

    def noted(self, node=None):
        asked.setdefault(self.node, []).append(node)
        return active(self, node)

    monkeypatch.setattr(Ledger, "active", noted)
    first, second = [await begin(nats_url, limits={"node_lease": 0.6}) for _ in range(2)]
    one, two = first.node.id, second.node.id
    async with asyncio.timeout(20):
        while asked.get(one, []).count(one) < 3 or two not in first.node.peers:
            await asyncio.sleep(0.05)
    assert asked[one][0] is None
    assert set(asked[one]) == {None, one, ""}
    assert asked[one].count(None) < asked[one].count(one)
    await second.abandon()
    async with asyncio.timeout(20):
        while two not in asked[one]:
            await asyncio.sleep(0.05)
