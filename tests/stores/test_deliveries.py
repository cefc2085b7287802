"""Deliveries over a connection that hangs and recovers: a late delivery must not reach another request."""

import asyncio
import uuid
from contextlib import asynccontextmanager

from amends.stores import open as open_store
from tests.cluster.machines import Wire


@asynccontextmanager
async def hanging(server):
    """A proxy that can hang, a store behind it, and the same store over a direct connection."""
    name = f"late{uuid.uuid4().hex[:8]}"
    async with (
        Wire(server.port) as wire,
        await open_store(f"{server.url}/{name}") as other,
        await open_store(f"nats://127.0.0.1:{wire.port}/{name}") as store,
    ):
        yield wire, store, other


async def until_requested(store, queue):
    """Wait until the server has a pull request for a message of the queue."""
    streams = store._streams
    async with asyncio.timeout(60):
        while True:
            name = f"CONSUMER.INFO.{streams.stream('queue', queue)}.workers"
            if (await streams.connection.api(name))["num_waiting"]:
                return
            await asyncio.sleep(0.01)


async def test_a_late_message_is_not_delivered_to_another_queue(nats_server):
    """Its request timed out, and the waiting requests are for another queue: the message returns to its own queue."""
    async with hanging(nats_server) as (wire, store, other):
        mine, foreign = store.queue("mine"), store.queue("foreign")
        assert await mine.take() is None
        assert await foreign.take() is None

        timed_out = asyncio.ensure_future(foreign.take(wait=0.5))
        await until_requested(other, "foreign")
        wire.cut()
        await other.queue("foreign").put(b"foreign")
        assert await timed_out is None
        # After this pause, every inbox in which the late message could arrive may have been reused.
        await asyncio.sleep(2.0)
        waiting = [asyncio.ensure_future(mine.take(wait=2.0)) for _ in range(3)]
        await asyncio.sleep(0.1)
        wire.restore()

        assert await asyncio.gather(*waiting) == [None, None, None]
        lease = await other.queue("foreign").take(wait=20)
        assert lease is not None
        assert lease.value == b"foreign"


async def test_a_late_status_does_not_end_another_request(nats_server):
    """The server's "no message" status for a request that timed out must not end a later request."""
    async with hanging(nats_server) as (wire, store, other):
        queue = store.queue("q", lease=300.0)
        assert await queue.take() is None
        timed_out = asyncio.ensure_future(queue.take(wait=0.5))
        await until_requested(other, "q")
        wire.cut()
        assert await timed_out is None
        await asyncio.sleep(2.0)
        waiting = asyncio.ensure_future(queue.take(wait=30.0))
        await asyncio.sleep(0.1)
        wire.restore()
        await until_requested(other, "q")
        await other.queue("q").put(b"a message")
        lease = await waiting
        assert lease is not None
        assert (lease.value, lease.attempt) == (b"a message", 1)
        # The message was delivered once: the open request was not abandoned.
        consumer = f"CONSUMER.INFO.{other._streams.stream('queue', 'q')}.workers"
        info = await other._streams.connection.api(consumer)
        assert info["delivered"]["consumer_seq"] == 1
