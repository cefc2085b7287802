"""Deliveries over a wire that hangs for a while and goes on: what comes late is nobody else's."""

import asyncio
import uuid
from contextlib import asynccontextmanager

from amends.stores import open as open_store
from tests.cluster.machines import Wire


@asynccontextmanager
async def hanging(server):
    """A wire that can hang, a store at its end, and the same store by a way of its own."""
    name = f"late{uuid.uuid4().hex[:8]}"
    async with (
        Wire(server.port) as wire,
        await open_store(f"{server.url}/{name}") as other,
        await open_store(f"nats://127.0.0.1:{wire.port}/{name}") as store,
    ):
        yield wire, store, other


async def at_the_server(store, queue):
    """Until the server has somebody's wish for a task of a queue."""
    streams = store._streams
    async with asyncio.timeout(60):
        while True:
            name = f"CONSUMER.INFO.{streams.stream('queue', queue)}.workers"
            if (await streams.link.api(name))["num_waiting"]:
                return
            await asyncio.sleep(0.01)


async def test_a_late_task_is_not_taken_for_one_of_another_queue(nats_server):
    """The wish for it was given up, and whoever waits by then waits for something else: it goes back to its queue."""
    async with hanging(nats_server) as (wire, store, other):
        mine, foreign = store.queue("mine"), store.queue("foreign")
        assert await mine.take() is None
        assert await foreign.take() is None

        given_up = asyncio.ensure_future(foreign.take(wait=0.5))
        await at_the_server(other, "foreign")
        wire.cut()
        await other.queue("foreign").put(b"foreign")
        assert await given_up is None
        # By now every place where the late task could arrive may be used again.
        await asyncio.sleep(2.0)
        waiting = [asyncio.ensure_future(mine.take(wait=2.0)) for _ in range(3)]
        await asyncio.sleep(0.1)
        wire.restore()

        assert await asyncio.gather(*waiting) == [None, None, None]
        lease = await other.queue("foreign").take(wait=20)
        assert lease is not None
        assert lease.value == b"foreign"


async def test_a_late_word_is_not_taken_for_an_answer(nats_server):
    """The server's "nothing came" to a wish that was given up ends no other wait."""
    async with hanging(nats_server) as (wire, store, other):
        queue = store.queue("q", lease=300.0)
        assert await queue.take() is None
        given_up = asyncio.ensure_future(queue.take(wait=0.5))
        await at_the_server(other, "q")
        wire.cut()
        assert await given_up is None
        await asyncio.sleep(2.0)
        waiting = asyncio.ensure_future(queue.take(wait=30.0))
        await asyncio.sleep(0.1)
        wire.restore()
        await at_the_server(other, "q")
        await other.queue("q").put(b"a task")
        lease = await waiting
        assert lease is not None
        assert (lease.value, lease.attempt) == (b"a task", 1)
        # The task was delivered once: nobody had let go of a wish that still stood.
        info = await other._streams.link.api(f"CONSUMER.INFO.{other._streams.stream('queue', 'q')}.workers")
        assert info["delivered"]["consumer_seq"] == 1
