"""The background tasks of a node are restarted after unexpected failures."""

import asyncio

import pytest

from amends.arcp import Limits, Runtime, connect
from amends.arcp.runtime.cluster.dispatch import Dispatcher
from amends.arcp.runtime.cluster.membership import Membership
from amends.arcp.runtime.cluster.retention import EndedJobs
from amends.arcp.runtime.jobs import cancel as control
from amends.arcp.runtime.ledger import Ledger
from amends.stores.nats.queue import NatsQueue
from tests.failing import first_failing


async def echo(input, ctx):
    return input


@pytest.fixture
def failing(monkeypatch):
    """Makes a function fail the first few times."""
    monkeypatch.setattr("amends.arcp.runtime.tasks._RESTART_PAUSE", 0.01)
    return lambda owner, name, times=1: first_failing(monkeypatch, owner, name, times)


async def until(happened):
    async with asyncio.timeout(30):
        while not happened():
            await asyncio.sleep(0.01)


async def renewed(node, times=1):
    """Wait until a node has renewed its row."""
    revisions = set()
    async with asyncio.timeout(30):
        while len(revisions) <= times:
            row = await node.store.table("arcp.nodes").get(node.id)
            if row is not None:
                revisions.add(row.revision)
            await asyncio.sleep(0.01)


async def test_a_worker_takes_jobs_after_a_failed_take(failing, nats_server, caplog):
    """After one exception the node still takes jobs of the agent that it offers."""
    url = f"{nats_server.url}/duties"
    failed = failing(NatsQueue, "take", times=3)
    worker, front = Runtime(url, tokens=["t"]), Runtime(url, tokens=["t"])
    worker.register_agent("echo", echo)
    async with worker, front:
        await until(failed)
        async with asyncio.timeout(30), connect(front, token="t") as client:
            assert await client.submit_with_recovery("echo", "hello") == "hello"
    assert "it is restarted" in caplog.text


@pytest.mark.parametrize(
    ("owner", "name"),
    [
        (EndedJobs, "expire"),
        (Dispatcher, "take_one_of_each"),
        (Membership, "announce"),
        (control, "_follow"),
    ],
    ids=["maintain", "dispatch", "heartbeat", "control"],
)
async def test_every_background_task_is_restarted(failing, tmp_path, owner, name):
    """After a failure in any of them, the node still renews its row, maintains, reads requests and takes jobs."""
    url = f"sqlite:///{tmp_path}/jobs.db"
    limits = Limits(node_lease=6.0)
    other, front = (Runtime(url, tokens=["t"], limits=limits) for _ in range(2))
    other.register_agent("echo", echo)
    async with other, front:
        failed = failing(owner, name, times=4)
        async with asyncio.timeout(60), connect(front, token="t") as client:
            await until(failed)
            await renewed(other.node)
            assert await client.submit_with_recovery("echo", "hello") == "hello"
            await until(lambda: other.node.id in front.node.membership.peers)


async def test_a_session_reconnects_when_a_feed_fails(failing, tmp_path, caplog):
    """The session is resumed on another connection, and the client gets the job's end."""
    url = f"sqlite:///{tmp_path}/jobs.db"
    other, front = Runtime(url, tokens=["t"]), Runtime(url, tokens=["t"])
    other.register_agent("echo", echo)
    async with other, front:
        failed = failing(Ledger, "entries")
        async with asyncio.timeout(60), connect(front, token="t") as client:
            handle = await client.submit("echo", "hello")
            assert await handle.done == "hello"
    assert failed()
    assert "could not be followed" in caplog.text
