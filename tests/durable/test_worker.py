"""A worker takes messages, handles several at once, and stops in a bounded time."""

import asyncio
import logging

import pytest

from amends import stores
from amends.durable import worker as worker_module
from amends.durable.worker import Worker
from amends.stores.values import QueueSize
from tests.durable.faulty import HOWS, Faulty
from tests.stores.clocks import SetClock

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


@pytest.mark.parametrize("how", HOWS)
async def test_every_interruption_and_every_failure(monkeypatch, how):
    """Whichever operation fails or is interrupted, each message is handled, and none is left."""
    monkeypatch.setattr(worker_module, "_PAUSE", 0.0)
    tried = 0
    for point in range(60):
        clock, handled = SetClock(), []
        async with await stores.open("memory:", clock=clock) as memory:
            faults = Faulty(memory, transactions=False)
            for number in range(3):
                await memory.queue("q").put(b"%d" % number)

            async def handle(lease, handled=handled):
                handled.append(lease.value)
                await lease.done()

            worker = worker_of(faults, handle)
            faults.point, faults.how = point, how
            serving = faults.caller = asyncio.ensure_future(worker.serve())
            for _ in range(100):  # by then it has handled everything, and waits for further messages
                await asyncio.sleep(0)
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)
            await worker.stop(1.0)
            tried += faults.count > point
            clock.pass_(31)
            await worker_of(memory, handle).drain()
            assert set(handled) == {b"0", b"1", b"2"}, point
            assert await memory.queue("q").size() == QueueSize(0, 0, 0, 0), point
        if faults.count <= point:
            break
    assert tried >= 6
