"""The clock of recovery."""

import random
import time

import pytest

from amends.recovery import clock as module
from amends.recovery.async_library import TaskWaiter, ThreadWaiter
from amends.recovery.clock import CLOCK, Clock


def test_the_standard_functions_are_looked_up_at_each_call(monkeypatch):
    """A test that patches `time` or `random` patches this clock."""
    slept = []
    monkeypatch.setattr(time, "monotonic", lambda: 7.0)
    monkeypatch.setattr(time, "time", lambda: 8.0)
    monkeypatch.setattr(time, "sleep", slept.append)
    monkeypatch.setattr(random, "random", lambda: 0.25)
    clock = Clock()
    clock.sleep(3.0)
    assert (clock.now(), clock.wall(), clock.draw(), slept) == (7.0, 8.0, 0.25, [3.0])


def test_parts_are_replaced_for_a_block():
    """`using` restores what was there, also after an exception and after an unknown name."""
    before = CLOCK.now
    with pytest.raises(KeyError), CLOCK.using(now=lambda: 1.0, draw=lambda: 0.5):
        assert (CLOCK.now(), CLOCK.draw()) == (1.0, 0.5)
        raise KeyError
    assert CLOCK.now is before
    with pytest.raises(AttributeError), CLOCK.using(unknown=1):
        pass


def test_parking_a_thread_is_bounded():
    """A thread waits for its waiter, at most a year: more would overflow."""
    waiter, asked = ThreadWaiter(), []
    waiter.event.wait = asked.append
    clock = Clock()
    clock.park(waiter, 2.0)
    clock.park(waiter, float("inf"))
    assert asked == [2.0, module._LONGEST]
    assert module._LONGEST == 365 * 24 * 3600


async def test_parking_a_task():
    """A task that is woken goes on; one that is not goes on after the time."""
    clock, waiter = Clock(), TaskWaiter()
    waiter.wake()
    await clock.apark(waiter, float("inf"))
    waiter.clear()
    await clock.apark(waiter, 0.001)
    await clock.asleep(0.001)
