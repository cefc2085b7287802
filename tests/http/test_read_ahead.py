"""Messages that are read before a handler asks for them."""

import asyncio

from amends.http.read_ahead import ReadAhead


def chunk(size):
    return {"type": "http.request", "body": b"x" * size, "more_body": True}


async def test_the_bytes_that_wait_are_bounded():
    """A message waits for room, and one that is larger than the bound passes alone."""
    messages = ReadAhead(2000)
    await messages.put(chunk(5000))
    waiting = asyncio.ensure_future(messages.put(chunk(1)))
    await asyncio.sleep(0)
    assert not waiting.done()
    assert len((await messages.get())["body"]) == 5000
    await waiting
    assert len((await messages.get())["body"]) == 1


async def test_empty_messages_are_bounded():
    """A message without a body counts too."""
    messages = ReadAhead(2000)
    tasks = [asyncio.ensure_future(messages.put(chunk(0))) for _ in range(10)]
    await asyncio.sleep(0.01)
    assert sum(task.done() for task in tasks) == 4
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_a_disconnect_is_the_last_message():
    """It is repeated, after everything that came before it."""
    messages = ReadAhead(2000)
    await messages.put(chunk(1))
    await messages.put({"type": "http.disconnect"})
    assert [(await messages.get())["type"] for _ in range(3)] == [
        "http.request",
        "http.disconnect",
        "http.disconnect",
    ]
