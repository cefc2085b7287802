"""A worker takes messages, handles several at once, and stops in a bounded time."""

import asyncio
import logging

import pytest

from amends import stores
from amends.durable import worker as worker_module
from amends.durable.worker import Worker
from amends.stores import StoreClosedError, StoreUnavailableError
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


class Broken:
    """A queue whose takes fail in the given order, and then wait for ever; None is a take that found nothing."""

    def __init__(self, *failures):
        self.failures = list(failures)
        self.idle = asyncio.Event()

    async def take(self, wait=0.0):
        if self.failures:
            failure = self.failures.pop(0)
            if failure is not None:
                raise failure
            return
        self.idle.set()
        await asyncio.Event().wait()


async def nothing(lease=None):
    pass


async def test_failures_of_the_store_and_unexpected_ones_are_logged(caplog, monkeypatch):
    """Each is followed by a pause and another try, which prepares again; the level shows which is a bug."""
    pauses, sleep = [], asyncio.sleep

    async def pause(seconds):
        pauses.append(seconds)
        await sleep(0)

    monkeypatch.setattr(worker_module.asyncio, "sleep", pause)
    queue, prepared = Broken(StoreUnavailableError("away"), RuntimeError("a bug")), []

    async def prepare():
        prepared.append(1)

    worker = Worker(queue, nothing, nothing, concurrency=4, every=1.0, log=LOG)
    serving = asyncio.ensure_future(worker.serve(prepare))
    await queue.idle.wait()
    serving.cancel()
    await asyncio.gather(serving, return_exceptions=True)
    first, second = caplog.records
    assert (first.levelname, first.exc_info) == ("WARNING", None)
    assert "the store does not answer; trying again in 1.0 s" in first.getMessage()
    assert "away" in first.getMessage()
    assert (second.levelname, second.exc_info[0]) == ("ERROR", RuntimeError)
    assert (len(prepared), pauses) == (3, [1.0, 1.0])


async def test_a_closed_store_ends_the_worker(caplog):
    """Without a pause, and without a line in the log."""
    worker = Worker(Broken(StoreClosedError("closed")), nothing, nothing, concurrency=1, every=1.0, log=LOG)
    async with asyncio.timeout(20):
        await worker.serve()
    assert caplog.records == []


async def test_messages_are_taken_together_under_load():
    """With two under way, up to eight more are taken at once, but no more than there is room for; one failure loses none."""
    for concurrency, failing, running in ((20, False, 10), (5, False, 5), (20, True, 9), (2, False, 2)):
        async with await stores.open("memory:") as memory:
            queue, most, waiting = memory.queue("q", lease=30), [0, 0], asyncio.Event()

            class Counting:
                async def take(self, wait=0.0, queue=queue, most=most, failing=failing):
                    if wait is None:
                        return await queue.take(wait=None)
                    most[0] += 1
                    most[1] = max(most[1], most[0])
                    await asyncio.sleep(0)
                    most[0] -= 1
                    if failing and most[0] == 3:
                        raise StoreUnavailableError("away")
                    return await queue.take()

            async def handle(lease, waiting=waiting):
                await waiting.wait()
                await lease.done()

            for number in range(30):
                await queue.put(b"%d" % number)
            worker = Worker(Counting(), handle, nothing, concurrency=concurrency, every=60.0, log=LOG)
            await worker._take()
            assert (len(worker.running), most[1]) == (1, 0)
            if failing:
                with pytest.raises(StoreUnavailableError):
                    await worker._take()
            else:
                await worker._take()
            assert (len(worker.running), most[1]) == (running, min(8, concurrency - 2))
            waiting.set()
            await worker.stop(20.0)
            assert not worker.running


async def test_takes_that_find_nothing_start_no_handler():
    """A message may have been taken by another worker."""
    worker = Worker(Broken(None, None), nothing, nothing, concurrency=4, every=1.0, log=LOG)
    await worker._take()
    assert not worker.running


async def test_handlers_get_the_grace_to_end():
    """With none they are cancelled at once; those that end in time are not."""
    for grace, expected in ((0, "cancelled"), (0.0, "cancelled"), (20.0, "ended"), (0.5, "ended")):
        async with await stores.open("memory:") as memory:
            found, begun = [], asyncio.Event()

            async def handle(lease, found=found, begun=begun):
                begun.set()
                try:
                    await asyncio.sleep(0.01)
                except asyncio.CancelledError:
                    found.append("cancelled")
                    raise
                found.append("ended")

            await memory.queue("q").put(b"a")
            worker = worker_of(memory, handle)
            await worker._take()
            await begun.wait()
            async with asyncio.timeout(5):
                await worker.stop(grace)
            assert found == [expected]
            assert worker._ticking.done()


async def test_a_handler_that_was_cancelled_is_no_unexpected_error(caplog):
    """One that raised is logged with its exception, and its message is taken again."""
    async with await stores.open("memory:") as memory:

        async def handle(lease):
            raise KeyError("a bug") if lease.value == b"bad" else asyncio.CancelledError

        for value in (b"gone", b"bad"):
            await memory.queue("q").put(value)
        assert await worker_of(memory, handle).drain() == 2
    (record,) = caplog.records
    assert (record.levelname, record.exc_info[0]) == ("ERROR", KeyError)
    assert "taken again" in record.getMessage()


async def test_ticks_go_on_while_messages_are_handled():
    """They stop with the last handler and start again with the next one."""
    async with await stores.open("memory:") as memory:
        ticks, enough = [], asyncio.Event()

        async def tick():
            ticks.append(1)
            if len(ticks) >= 3:
                enough.set()

        async def handle(lease):
            await enough.wait()
            await lease.done()

        worker = worker_of(memory, handle, tick=tick)
        for _ in range(2):
            await memory.queue("q").put(b"a")
            async with asyncio.timeout(20):
                assert await worker.drain() == 1
                await worker._ticking
            ticks.clear()
            enough.clear()
        assert not worker.running


async def test_without_grace_handlers_get_no_turn():
    """One that could end at once is cancelled; with any grace it ends."""
    for grace, expected in ((0, "cancelled"), (0.1, "ended")):
        async with await stores.open("memory:") as memory:
            found, begun, go = [], asyncio.Event(), asyncio.Event()

            async def handle(lease, found=found, begun=begun, go=go):
                begun.set()
                try:
                    await go.wait()
                    found.append("ended")
                except asyncio.CancelledError:
                    found.append("cancelled")
                    raise

            await memory.queue("q").put(b"a")
            worker = worker_of(memory, handle)
            await worker._take()
            await begun.wait()
            asyncio.get_running_loop().call_soon(go.set)
            await worker.stop(grace)
            assert found == [expected]
