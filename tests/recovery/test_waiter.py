"""Threads and tasks that sleep until they are woken."""

import asyncio
import threading

from amends.recovery.waiter import TaskWaiter, ThreadWaiter, Waiter


def test_a_new_waiter():
    """It has made no call, has no grant, and may be looked at once."""
    for waiter in (Waiter(), ThreadWaiter()):
        assert (waiter.fresh, waiter.granted, waiter.look_at) == (True, False, 0.0)
        assert waiter.wake() is None
        assert waiter.clear() is None


def test_threads():
    """A wake ends the next sleep too; `clear` discards it."""
    waiter = ThreadWaiter()
    waiter.wake()
    assert waiter.event.wait(0)
    waiter.clear()
    assert not waiter.event.is_set()


async def test_tasks():
    """A task is woken from its own loop at once, and from another thread through its loop."""
    waiter = TaskWaiter()
    assert (waiter.fresh, waiter.granted) == (True, False)
    waiter.wake()
    assert waiter.event.is_set()
    waiter.clear()
    assert not waiter.event.is_set()
    thread = threading.Thread(target=waiter.wake)
    thread.start()
    await asyncio.wait_for(waiter.event.wait(), 30)
    thread.join()


def test_a_closed_loop():
    """Waking a task whose loop is closed does nothing."""

    async def make():
        return TaskWaiter()

    waiter = asyncio.run(make())
    thread = threading.Thread(target=waiter.wake)
    thread.start()
    thread.join()
    assert not waiter.event.is_set()
