"""The queue, with the same tests for every backend."""

from __future__ import annotations

import asyncio
import time

import pytest

from amends.stores import LeaseLostError, QueueSize
from tests.stores.odd import ODD_KEYS

WAIT = 10


async def test_put_take_done(store):
    queue = store.queue("q")
    assert await queue.take() is None
    assert await queue.put(b"work")
    start = time.monotonic()
    lease = await queue.take(wait=WAIT)
    assert (lease.value, lease.key, lease.attempt) == (b"work", None, 1)
    assert lease.expires_in + (time.monotonic() - start) > 29.9
    assert lease.expires_in <= 30
    assert await queue.take() is None
    assert await queue.size() == QueueSize(0, 0, 1, 0)
    await lease.done()
    assert await queue.size() == QueueSize(0, 0, 0, 0)
    with pytest.raises(LeaseLostError):
        await lease.done()


async def test_a_waiting_worker_is_woken(store, other):
    taking = asyncio.ensure_future(other.queue("q").take(wait=3600))
    await asyncio.sleep(0.1)
    await store.queue("q").put(b"x")
    assert (await asyncio.wait_for(taking, 100)).value == b"x"


async def test_a_waiting_worker_of_the_same_store_is_woken(store):
    """By every way in which a message comes to the queue or back to it; changes of other queues and tables do not hide it."""
    queue = store.queue("q")

    async def taken_after(change):
        taking = asyncio.ensure_future(queue.take(wait=3600))
        await asyncio.sleep(0.05)
        await store.queue("other").put(b"y")
        await store.table("t").put("k", b"v")
        await change()
        return await asyncio.wait_for(taking, 100)

    lease = await taken_after(lambda: queue.put(b"x", key="x"))
    lease = await taken_after(lease.give_back)
    held = lease
    lease = await taken_after(lambda: held.give_back(delay=0.05))
    await lease.dead_letter("broken")
    (dead,) = await queue.dead()
    lease = await taken_after(lambda: queue.revive(dead.id))
    if store.traits.transactions:
        held = lease
        lease = await taken_after(lambda: store.transaction(lambda tx: tx.give_back(held)))
        lease = await taken_after(lambda: store.transaction(lambda tx: tx.queue("q").put(b"z")))
        assert lease.value == b"z"
    else:
        assert lease.value == b"x"


async def test_take_returns_none_after_the_wait(store):
    start = time.monotonic()
    assert await store.queue("q").take(wait=0.2) is None
    assert time.monotonic() - start > 0.15


async def test_each_message_goes_to_one_worker(store, other):
    for i in range(60):
        await store.queue("q").put(b"%d" % i)
    seen = []

    async def work(queue):
        while (lease := await queue.take(wait=0.4)) is not None:
            seen.append(int(lease.value))
            await lease.done()

    await asyncio.gather(*(work((store if i % 2 else other).queue("q")) for i in range(6)))
    assert sorted(seen) == list(range(60))


async def test_delay(store):
    queue = store.queue("q")
    await queue.put(b"much later", delay=3600)
    assert await queue.take() is None
    assert await queue.size() == QueueSize(0, 1, 0, 0)
    start = time.monotonic()
    await queue.put(b"later", delay=0.6)
    lease = await queue.take() or await queue.take(wait=WAIT)
    assert time.monotonic() - start > 0.55
    assert (lease.value, lease.attempt) == (b"later", 1)
    assert await queue.take() is None
    messages = {message.value: message async for message in queue.messages()}
    assert messages[b"later"].leased
    assert 3590 < messages[b"much later"].due_in <= 3600
    assert messages[b"much later"].attempts == 0


async def test_give_back_with_delay(store):
    queue = store.queue("q")
    await queue.put(b"x")
    lease = await queue.take(wait=WAIT)
    start = time.monotonic()
    await lease.give_back(delay=0.5)
    with pytest.raises(LeaseLostError):
        await lease.done()
    again = await queue.take() or await queue.take(wait=WAIT)
    assert time.monotonic() - start > 0.45
    assert again.attempt == 2
    assert again.epoch > lease.epoch
    await again.give_back()
    third = await queue.take(wait=WAIT)
    assert third.attempt == 3
    await third.done()


async def test_an_expired_message_is_delivered_again_and_its_old_lease_is_fenced_out(store, other):
    queue = store.queue("q", lease=0.7)
    await queue.put(b"x", key="k")
    start = time.monotonic()
    lost = await queue.take(wait=WAIT)
    behind = other.queue("q", lease=0.7)
    taken = await behind.take() or await behind.take(wait=WAIT)
    assert time.monotonic() - start > 0.65
    assert (taken.attempt, taken.key, taken.id) == (2, "k", lost.id)
    assert taken.epoch > lost.epoch
    assert lost.expires_in == 0
    for act in (lost.done, lost.extend, lost.give_back, lambda: lost.dead_letter("no")):
        with pytest.raises(LeaseLostError):
            await act()
    await taken.done()


async def test_extend_keeps_the_message(store, other):
    # Long enough that a busy machine extends it in time.
    queue = store.queue("q", lease=4)
    await queue.put(b"x")
    lease = await queue.take(wait=WAIT)
    for _ in range(2):
        await asyncio.sleep(2.1)
        await lease.extend()
        assert await other.queue("q", lease=4).take() is None
        assert lease.expires_in > 0
    await lease.done()
    assert await queue.size() == QueueSize(0, 0, 0, 0)


async def test_an_expired_lease_can_finish_if_the_message_was_not_taken_again(store):
    queue = store.queue("q", lease=0.2)
    await queue.put(b"x")
    lease = await queue.take(wait=WAIT)
    await asyncio.sleep(0.25)
    await lease.done()
    assert await queue.take(wait=0.3) is None


async def test_a_key_belongs_to_one_message(store, other):
    queue = store.queue("q")
    assert await queue.put(b"1", key="k")
    assert not await other.queue("q").put(b"2", key="k")
    assert await queue.put(b"3", key="other")
    lease = await queue.take(wait=WAIT)
    assert lease.key == "k"
    assert not await queue.put(b"4", key="k")
    await lease.done()
    assert await queue.put(b"5", key="k")


async def test_of_many_puts_with_one_key_one_wins(store, other):
    results = await asyncio.gather(
        *((store if i % 2 else other).queue("q").put(b"%d" % i, key="k") for i in range(30))
    )
    assert results.count(True) == 1


@pytest.mark.parametrize("key", [*ODD_KEYS, ""])
async def test_keys_and_names_may_be_any_text(store, key):
    queue = store.queue(key or "q")
    await queue.put(b"x", key=key)
    assert not await queue.put(b"x", key=key)
    lease = await queue.take(wait=WAIT)
    assert lease.key == key
    await lease.done()


async def test_dead_letters_after_too_many_attempts(store):
    queue = store.queue("q", lease=5, max_attempts=2)
    await queue.put(b"x", key="k")
    for attempt in (1, 2):
        lease = await queue.take(wait=WAIT)
        assert lease.attempt == attempt
        await lease.give_back()
    assert await queue.take(wait=0.3) is None
    (dead,) = await queue.dead()
    assert (dead.key, dead.value, dead.attempts) == ("k", b"x", 2)
    assert "2 times" in dead.reason
    assert await queue.size() == QueueSize(0, 0, 0, 1)
    assert await queue.put(b"y", key="k")
    assert not await queue.revive(dead.id)
    await (await queue.take(wait=WAIT)).done()
    assert await queue.revive(dead.id)
    assert await queue.dead() == []
    lease = await queue.take(wait=WAIT)
    assert (lease.value, lease.attempt) == (b"x", 1)
    await lease.done()


async def test_dead_lettering_and_discarding(store):
    queue = store.queue("q")
    await queue.put(b"1", key="a")
    await queue.put(b"2")
    for _ in range(2):
        lease = await queue.take(wait=WAIT)
        await lease.dead_letter("no such ünit")
        with pytest.raises(LeaseLostError):
            await lease.done()
    assert await queue.take() is None
    dead = await queue.dead()
    assert sorted(d.value for d in dead) == [b"1", b"2"]
    assert {d.reason for d in dead} == {"no such ünit"}
    assert len(await queue.dead(limit=1)) == 1
    assert await queue.discard(dead[0].id)
    assert not await queue.discard(dead[0].id)
    assert not await queue.revive(dead[0].id)
    assert not await queue.revive("no such id")
    assert len(await queue.dead()) == 1


async def test_a_megabyte(store):
    queue = store.queue("q")
    await queue.put(b"x" * 1_000_000)
    lease = await queue.take(wait=WAIT)
    assert lease.value == b"x" * 1_000_000
    await lease.dead_letter("large")
    assert (await queue.dead())[0].value == b"x" * 1_000_000


async def test_a_cancelled_take_holds_no_message(store):
    queue = store.queue("q", lease=30)
    for i in range(20):
        taking = asyncio.ensure_future(queue.take(wait=WAIT))
        await asyncio.sleep(0.002 * (i % 3))
        await queue.put(b"%d" % i)
        await asyncio.sleep(0.0004 * i)
        taking.cancel()
        try:
            lease = await taking
        except asyncio.CancelledError:
            lease = await queue.take(wait=5)
            assert lease is not None, i
        assert (lease.value, lease.attempt) == (b"%d" % i, 1)
        await lease.done()


async def test_bad_arguments(store):
    for lease in (0, -1, float("inf")):
        with pytest.raises(ValueError):
            store.queue("q", lease=lease)
    with pytest.raises(ValueError):
        store.queue("q", max_attempts=0)
    with pytest.raises(ValueError):
        await store.queue("q").put(b"", delay=-1)
    with pytest.raises(TypeError):
        await store.queue("q").put("text")


async def test_queues_are_separate_and_can_be_dropped(store):
    await store.queue("one").put(b"1")
    await store.queue("two").put(b"2")
    assert "one" in (await store.names())["queues"]
    await store.queue("one").drop()
    assert await store.queue("one").take() is None
    assert (await store.queue("two").take(wait=WAIT)).value == b"2"


async def test_a_queue_dropped_by_another_can_be_used_again(store, other):
    mine, theirs = store.queue("q"), other.queue("q")
    await mine.put(b"1", key="k")
    assert (await mine.take(wait=WAIT)).value == b"1"
    await theirs.drop()
    assert await mine.take() is None
    assert await theirs.put(b"2", key="k")
    lease = await mine.take(wait=WAIT)
    assert (lease.value, lease.attempt) == (b"2", 1)
    await lease.done()


async def test_extensions_at_the_same_time(store):
    """As after a pause, when a worker extends all leases, and also checks one before a call: neither loses the lease."""
    queue = store.queue("q")
    await queue.put(b"x")
    lease = await queue.take(wait=WAIT)
    await asyncio.gather(*(lease.extend() for _ in range(5)))
    assert lease.expires_in > 0
    await lease.done()
    assert await queue.size() == QueueSize(0, 0, 0, 0)
