"""What a node does for as long as it lives goes on, also after a failure that nobody thought of."""

import asyncio

import pytest

from amends.arcp import Limits, Runtime, connect
from amends.arcp.runtime import dispatch, maintenance, runtime
from amends.arcp.runtime.ledger import Ledger
from amends.stores.nats.queue import NatsQueue
from tests.failing import first_failing


async def echo(input, ctx):
    return input


@pytest.fixture
def failing(monkeypatch):
    """Makes a function fail the first few times."""
    monkeypatch.setattr("amends.arcp.runtime.node._AGAIN", 0.01)
    return lambda owner, name, times=1: first_failing(monkeypatch, owner, name, times)


async def until(happened):
    async with asyncio.timeout(30):
        while not happened():
            await asyncio.sleep(0.01)


async def test_a_worker_takes_jobs_after_its_wait_at_a_queue_failed(failing, nats_server, caplog):
    """One exception at the wrong place must not leave a node that is alive, offers its agent and takes nothing."""
    url = f"{nats_server.url}/duties"
    failed = failing(NatsQueue, "take", times=3)
    worker, front = Runtime(url, tokens=["t"]), Runtime(url, tokens=["t"])
    worker.register_agent("echo", echo)
    async with worker, front:
        await until(failed)
        async with asyncio.timeout(30), connect(front, token="t") as client:
            assert await client.submit_with_recovery("echo", "hello") == "hello"
    assert "begun anew" in caplog.text


@pytest.mark.parametrize(
    ("owner", "name"),
    [(maintenance, "evict"), (dispatch, "_round"), (runtime.Node, "announce"), (maintenance, "_hear")],
    ids=["maintain", "dispatch", "heartbeat", "listen"],
)
async def test_every_duty_is_taken_up_again(failing, tmp_path, owner, name):
    """Whatever failed in it, the node goes on tending, vouching, listening and taking."""
    url = f"sqlite:///{tmp_path}/jobs.db"
    limits = Limits(node_lease=2.0)
    other, front = (Runtime(url, tokens=["t"], limits=limits) for _ in range(2))
    other.register_agent("echo", echo)
    async with other, front:
        failed = failing(owner, name, times=4)
        async with asyncio.timeout(60), connect(front, token="t") as client:
            await until(failed)
            await asyncio.sleep(limits.node_lease)
            assert await client.submit_with_recovery("echo", "hello") == "hello"
            await until(lambda: other.node.id in front.node.peers)


async def test_whoever_waits_for_a_job_that_cannot_be_followed_comes_again(failing, tmp_path, caplog):
    """The session goes on over another connection, and nobody waits for ever."""
    url = f"sqlite:///{tmp_path}/jobs.db"
    other, front = Runtime(url, tokens=["t"]), Runtime(url, tokens=["t"])
    other.register_agent("echo", echo)
    async with other, front:
        failed = failing(Ledger, "entries")
        async with asyncio.timeout(60), connect(front, token="t") as client:
            handle = await client.submit("echo", "hello")
            assert await handle.done == "hello"
    assert failed()
    assert "cannot be followed" in caplog.text
