"""The periodic scans of a node do not grow with the jobs of other nodes, nor with jobs that have ended."""

from __future__ import annotations

import asyncio

from amends.arcp.runtime.ledger import Ledger
from tests.arcp.raw import connected


async def test_ended_jobs_leave_nothing_to_be_scanned(begin, nats_url):
    """Rows of ended jobs leave no message in the table's stream."""
    runtime = await begin(nats_url)
    raw = await connected(runtime)
    for number in range(20):
        await raw.run("echo", number)
    streams = runtime.node.store._streams
    async with asyncio.timeout(100):
        while (await streams.info("table", "arcp.active"))["state"]["messages"]:
            await asyncio.sleep(0.1)
    await raw.close()


async def test_expiring_rows_are_skipped(begin, nats_url):
    """A row that has expired by the server's clock is empty for a client whose clock is behind."""
    runtime = await begin(nats_url)
    node = runtime.node
    await node.store.table("arcp.active").put(f"{node.id}/job_1", b"", expires_in=60)
    assert [row async for row in node.ledger.active()] == []


async def test_a_node_scans_its_own_jobs_and_those_of_dead_nodes(begin, nats_url, monkeypatch):
    """Each round reads its own and queued jobs, every ninth all jobs, and those of a node as soon as that is dead."""
    owners = {}
    active = Ledger.active

    def recording(self, node=None):
        owners.setdefault(self.node, []).append(node)
        return active(self, node)

    monkeypatch.setattr(Ledger, "active", recording)
    # Long enough that a busy machine does not make a live node look dead.
    first, second = [await begin(nats_url, limits={"node_lease": 3.0}) for _ in range(2)]
    one, two = first.node.id, second.node.id
    async with asyncio.timeout(100):
        while owners.get(one, []).count(one) < 3 or two not in first.node.membership.peers:
            await asyncio.sleep(0.05)
    assert owners[one][0] is None
    assert set(owners[one]) == {None, one, ""}
    assert owners[one].count(None) < owners[one].count(one)
    await second.abandon()
    async with asyncio.timeout(100):
        while two not in owners[one]:
            await asyncio.sleep(0.05)
