"""A worker takes messages, handles several at once, and stops in a bounded time."""

import asyncio
import logging

from amends.durable import worker as worker_module
from amends.durable.worker import Worker

LOG = logging.getLogger("tests.worker")


def worker_of(store, handle, *, concurrency=4, tick=None):
    async def nothing():
        pass

    queue = store.queue("q", lease=30)
    return Worker(queue, handle, tick or nothing, concurrency=concurrency, every=0.01, log=LOG)


async def test_drain(store):
    """Every message is handled once, no more of them at a time than allowed."""
    handled, most, now = [], 0, 0

    async def handle(lease):
        nonlocal most, now
        now += 1
        most = max(most, now)
        await asyncio.sleep(0.01)
        now -= 1
        handled.append(lease.value)
        await lease.done()

    for number in range(12):
        await store.queue("q").put(b"%d" % number)
    worker = worker_of(store, handle)
    assert await worker.drain() == 12
    assert sorted(handled) == sorted(b"%d" % number for number in range(12))
    assert 1 < most <= 4
    assert not worker.running


async def test_serving_and_stopping(store, caplog, monkeypatch):
    """`tick` is called while messages are handled; a handler that ignores its cancellation does not hold up the stop."""
    monkeypatch.setattr(worker_module, "_STOPPING", 0.1)
    ticks, begun, go = [], asyncio.Event(), asyncio.Event()

    async def handle(lease):
        if lease.value == b"bad":
            raise RuntimeError("unexpected")
        begun.set()
        while not go.is_set():
            try:
                await go.wait()
            except asyncio.CancelledError:
                continue
        await lease.done()

    async def tick():
        ticks.append(1)

    worker = worker_of(store, handle, tick=tick)
    prepared = []

    async def prepare():
        prepared.append(1)

    serving = asyncio.ensure_future(worker.serve(prepare))
    await store.queue("q").put(b"bad")
    await store.queue("q").put(b"good")
    async with asyncio.timeout(20):
        await begun.wait()
        while len(ticks) < 3 or "unexpected error" not in caplog.text:
            await asyncio.sleep(0.01)
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)
        await worker.stop(0)
    assert prepared
    assert len(worker.running) == 1
    go.set()
    await asyncio.wait(worker.running)
