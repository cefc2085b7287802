"""Tests of the change signal: who is woken by which change."""

import asyncio

from amends.stores.signal import Signal


async def _waits(signal, seen, **options):
    """Whether a waiter still waits after all that is ready has run."""
    waiter = asyncio.ensure_future(signal.wait(seen, **options))
    for _ in range(3):
        await asyncio.sleep(0)
    waits = not waiter.done()
    waiter.cancel()
    await asyncio.gather(waiter, return_exceptions=True)
    return waits


async def test_a_change_between_the_reading_and_the_wait_is_not_missed():
    """A waiter with an older count returns at once."""
    signal = Signal()
    seen = signal.count
    signal.notify()
    assert not await _waits(signal, seen)
    assert await _waits(signal, signal.count)
    assert not signal.has_waiters


async def test_a_change_of_another_queue_does_not_wake():
    """A change that names queues wakes those who wait for them, and those who wait for any change."""
    signal = Signal()
    seen = signal.count
    signal.notify(["a"])
    assert not await _waits(signal, seen)
    assert not await _waits(signal, seen, queue="a")
    assert await _waits(signal, seen, queue="b")
    signal.notify([])
    assert await _waits(signal, seen, queue="b")
    signal.notify()
    assert not await _waits(signal, seen, queue="b")


async def test_waiters_are_woken_by_the_next_change_of_their_queue():
    """Also if they began to wait before it."""
    signal = Signal()
    first = asyncio.ensure_future(signal.wait(signal.count, queue="a"))
    every = asyncio.ensure_future(signal.wait(signal.count))
    await asyncio.sleep(0)
    signal.notify(["b"])
    await asyncio.wait_for(every, 10)
    assert not first.done()
    signal.notify(["a"])
    await asyncio.wait_for(first, 10)


async def test_a_queue_has_a_message_only_if_it_was_named():
    """A change that may be of any queue says nothing about a message."""
    signal = Signal()
    seen = signal.count
    signal.notify()
    assert not signal.has_message("a", seen)
    signal.notify(["a"])
    assert signal.has_message("a", seen)
    assert not signal.has_message("a", signal.count)
    assert not signal.has_message("b", seen)


async def test_a_wait_ends_after_its_time():
    """Without a change."""
    signal = Signal()
    await asyncio.wait_for(signal.wait(signal.count, 0.01, queue="a"), 10)
    assert not signal.has_waiters
