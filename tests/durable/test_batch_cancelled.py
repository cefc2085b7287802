"""Work that is completed although its caller is cancelled."""

import asyncio
import gc

import pytest

from amends.durable.batch import complete, in_background, wait_for_background


async def test_a_write_is_completed_although_its_caller_is_cancelled():
    """The caller ends at once; the work goes on to its end, also if nothing else refers to it."""
    begun, go, done = asyncio.Event(), asyncio.Event(), []

    async def work():
        begun.set()
        await go.wait()
        done.append(1)

    calling = asyncio.ensure_future(complete(work()))
    await begun.wait()
    calling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await calling
    gc.collect()
    assert done == []
    go.set()
    await wait_for_background()
    assert done == [1]


async def test_the_caller_gets_the_result_or_the_error():
    """As if it had awaited the work itself; an error that no caller gets is not reported by asyncio."""

    async def work(value):
        await asyncio.sleep(0)
        if isinstance(value, Exception):
            raise value
        return value

    assert await complete(work(7)) == 7
    with pytest.raises(KeyError):
        await complete(work(KeyError("k")))
    in_background(work(ValueError("not reported")))
    await wait_for_background()
    await wait_for_background()
