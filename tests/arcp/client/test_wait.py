"""Waiting for a job and reading its events, also slowly; results in chunks."""

import asyncio

import pytest

from amends.core.enums import Executed
from amends.errors.arcp import (
    InternalError,
)
from tests.arcp.client.scripted_client import scripted_client


async def test_several_tasks_can_wait_and_each_can_be_cancelled():
    """Cancelling one waiter does not affect the others."""
    go = asyncio.Event()

    async def script(peer):
        await peer.welcome()
        await peer.accept()
        await go.wait()
        await peer.result(1, "fine")
        await peer.goodbye()

    async with scripted_client(script) as (client, _):
        handle = await client.submit("echo")
        waiting = [asyncio.ensure_future(handle.done) for _ in range(3)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(handle.done, 0.01)
        go.set()
        assert await asyncio.gather(*waiting[1:], handle.done) == ["fine"] * 3
        assert waiting[0].cancelled()


async def test_iterators_that_start_early_and_late():
    """Every iterator gets all events kept; unknown kinds are included, unreadable events are not."""

    async def script(peer):
        await peer.welcome()
        await peer.accept()
        await peer.event(1, {"message": "a"})
        await peer.event(2, {"x": 1}, kind="x-vendor.new")
        await peer.send("job.event", {"kind": 5}, job_id="job_1", event_seq=3)
        await peer.event(4, kind="progress", job_id="job_unknown")
        await peer.send(
            "job.event", {"kind": "log", "body": {"message": "b"}, "run": 2}, job_id="job_1", event_seq=5
        )
        await peer.result(6, run=2)
        await peer.goodbye()

    async with scripted_client(script) as (client, _):
        handle = await client.submit("echo")
        early = [(event.seq, event.kind, event.body, event.run) async for event in handle.events()]
        assert early == [
            (1, "log", {"message": "a"}, 1),
            (2, "x-vendor.new", {"x": 1}, 1),
            (5, "log", {"message": "b"}, 2),
        ]
        late = [event async for event in handle.events()]
        assert [event.seq for event in late] == [1, 2, 5]
        assert late[0].job_id == "job_1"
        assert late[0].ts == "2026-05-13T19:42:13Z"
        assert (handle.missed, handle.run) == (0, 2)


async def test_the_buffer_is_limited_without_iterators():
    """The oldest events are removed, and the handle has their number."""

    async def script(peer):
        await peer.welcome()
        await peer.accept()
        for seq in range(1, 11):
            await peer.event(seq)
        await peer.result(11, 1)
        await peer.accept("job_2")
        for seq in range(12, 22):
            await peer.event(seq, {"message": "x" * 1000}, job_id="job_2")
        await peer.result(22, 1, job_id="job_2")
        await peer.goodbye()

    async with scripted_client(script, buffer=4, buffer_bytes=3000) as (client, _):
        handle = await client.submit("echo")
        await handle.done
        assert [event.seq async for event in handle.events()] == [7, 8, 9, 10]
        assert handle.missed == 6
        large = await client.submit("echo")
        await large.done
        assert [event.seq async for event in large.events()] == [20, 21]


async def test_a_slow_reader_blocks_the_connection_and_misses_nothing():
    """Back-pressure: the runtime can only send as fast as the slowest iterator reads."""
    sent = 0

    async def script(peer):
        nonlocal sent
        await peer.welcome()
        await peer.accept()
        for seq in range(1, 101):
            await peer.event(seq)
            sent = seq
        await peer.result(101, 1)
        await peer.goodbye()

    async with scripted_client(script, buffer=4, frames=2) as (client, _):
        handle = await client.submit("echo")
        seen = []
        async for event in handle.events():
            seen.append(event.seq)
            for _ in range(5):
                await asyncio.sleep(0)
            assert sent - event.seq < 12
        assert seen == list(range(1, 101))
        assert await handle.done == 1


async def test_a_reader_that_stops_reading_raises_and_blocks_only_for_a_while():
    """The code that iterates may wait for something else on the same connection, so events continue without it."""

    reading = asyncio.Event()

    async def script(peer):
        await peer.welcome()
        await peer.accept()
        await peer.event(1)
        await reading.wait()
        for seq in range(2, 21):
            await peer.event(seq)
        await peer.result(21, 1)
        await peer.goodbye()

    async with scripted_client(script, buffer=4, slow_reader_timeout=0.01) as (client, _):
        handle = await client.submit("echo")
        events = handle.events()
        assert (await anext(events)).seq == 1
        reading.set()
        assert await handle.done == 1
        with pytest.raises(InternalError) as caught:
            await anext(events)
        assert caught.value.details == {"reason": "slow_reader", "missed": 15}
        assert not caught.value.retryable


def chunk(number, data, encoding="utf8", more=True, result_id="res_1"):
    return {"result_id": result_id, "chunk_seq": number, "data": data, "encoding": encoding, "more": more}


CHUNKS = [
    ([chunk(0, "hé"), chunk(1, "llo", more=False)], 6, "héllo"),
    ([chunk(0, "aGk=", "base64"), chunk(1, "!")], 3, b"hi!"),
    ([chunk(0, "a"), chunk(0, "a"), chunk(1, "b")], None, "ab"),
    ([chunk(0, "x", result_id="res_2"), chunk(0, "a")], 1, "a"),
    ([], 0, ""),
]


@pytest.mark.parametrize(("chunks", "size", "result"), CHUNKS)
async def test_a_result_in_chunks(chunks, size, result):
    """8.4: text stays text; with one chunk of bytes the result is bytes."""

    async def script(peer):
        await peer.welcome()
        await peer.accept()
        for number, body in enumerate(chunks, 1):
            await peer.event(number, body, kind="result_chunk")
        more = {} if size is None else {"result_size": size}
        await peer.result(len(chunks) + 1, result_id="res_1", **more)
        await peer.goodbye()

    async with scripted_client(script) as (client, _):
        handle = await client.submit("echo")
        assert await handle.done == result
        assert len([event async for event in handle.events()]) == len(chunks)


UNUSABLE = [
    ([chunk(0, "a"), chunk(2, "c")], "gap"),
    ([chunk(0, "a" * 101)], "too_large"),
    ([chunk(0, "a" * 60), chunk(1, "a" * 60), chunk(2, "a")], "too_large"),
    ([chunk(0, "???", "base64")], "malformed"),
    ([chunk("0", "a")], "malformed"),
    ([chunk(True, "a")], "malformed"),
    ([chunk(0, 5)], "malformed"),
    ([chunk(0, "a", result_id=5)], "malformed"),
    ([chunk(0, "", result_id=f"res_x{number}") for number in range(9)], "too_many_results"),
    ([], "missing"),
    ([chunk(0, "abc")], "incomplete"),
]


@pytest.mark.parametrize(("chunks", "reason"), UNUSABLE)
async def test_a_result_that_cannot_be_assembled(chunks, reason):
    """Section 14: INTERNAL_ERROR with `executed` yes, because repeating the job would repeat the work."""

    async def script(peer):
        await peer.welcome()
        await peer.accept()
        for number, body in enumerate(chunks, 1):
            await peer.event(number, body, kind="result_chunk")
        await peer.result(len(chunks) + 1, result_id="res_1", result_size=2)
        await peer.goodbye()

    async with scripted_client(script, max_result=100) as (client, _):
        with pytest.raises(InternalError) as caught:
            await (await client.submit("echo")).done
        fault = caught.value.fault
        assert fault.details == {"reason": reason, "result_id": "res_1"}
        assert (fault.executed, fault.retryable) == (Executed.YES, False)
