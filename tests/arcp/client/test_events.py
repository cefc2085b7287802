"""The buffer of a job's events: bounded, for any number of iterators, with back-pressure that ends."""

import asyncio

import pytest

from amends.arcp.client.events import Event, Events
from amends.errors.arcp import InternalError


def filled(count, *, limit=4, size=1, limit_bytes=1000):
    events = Events(limit, limit_bytes)
    for number in range(count):
        events.put(Event("log", {"n": number}), size)
    return events


async def numbers(events):
    return [event.body["n"] async for event in events.read()]


async def test_every_iterator_starts_with_the_first_event():
    events = filled(3)
    events.end()
    assert await numbers(events) == await numbers(events) == [0, 1, 2]


async def test_without_an_iterator_the_oldest_are_removed():
    """By number or by bytes; the newest is always kept."""
    events = filled(6)
    events.end()
    assert (await numbers(events), events.missed) == ([2, 3, 4, 5], 2)
    large = filled(3, size=900)
    large.end()
    assert (await numbers(large), large.missed) == ([2], 2)


async def test_an_iterator_waits_for_events():
    events = Events(4, 1000)
    reading = asyncio.create_task(numbers(events))
    await asyncio.sleep(0)
    events.put(Event("log", {"n": 0}), 1)
    events.end()
    assert await reading == [0]


async def test_a_slow_iterator_blocks_and_then_misses_events():
    events = filled(4)
    iterator = events.read()
    assert (await anext(iterator)).body == {"n": 0}
    assert not events.full
    events.put(Event("log", {"n": 4}), 1)
    assert events.full
    await events.wait_for_space(0.01)
    for number in (5, 6):
        events.put(Event("log", {"n": number}), 1)
    with pytest.raises(InternalError) as caught:
        await anext(iterator)
    assert caught.value.details == {"reason": "slow_reader", "missed": 2}
    assert not events.full


async def test_space_is_free_as_soon_as_an_event_is_read():
    events = filled(4)
    iterator = events.read()
    await anext(iterator)
    events.put(Event("log", {"n": 4}), 1)
    waiting = asyncio.create_task(events.wait_for_space(100))
    await asyncio.sleep(0)
    await anext(iterator)
    await asyncio.wait_for(waiting, 10)
    await iterator.aclose()


async def test_waiting_for_the_first_event():
    events = Events(4, 1000)
    assert not await events.started(0.001)
    waiting = asyncio.create_task(events.started(100))
    await asyncio.sleep(0)
    events.end()
    assert await waiting
    assert await filled(1).started(0)
