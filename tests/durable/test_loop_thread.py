"""Plain functions await on an event loop in a thread of its own."""

import asyncio
import os
import threading

import pytest

from amends.durable.loop_thread import LoopThread


@pytest.fixture
def loop():
    made = LoopThread(5.0, "test-loop")
    yield made
    made.stop()


async def where():
    return threading.current_thread().name, id(asyncio.get_running_loop())


def test_it_starts_with_the_first_coroutine(loop):
    """All coroutines run on one loop, in a thread that does not keep the process alive."""
    assert not loop.started
    first, second = loop.run(where()), loop.start(where()).result(5)
    assert first == second
    assert first[0] == "test-loop"
    assert loop.started
    assert all(thread.daemon for thread in threading.enumerate() if thread.name == "test-loop")


def test_a_result_that_does_not_come(loop):
    """The coroutine is cancelled, and the caller gets TimeoutError."""
    ended, impatient = threading.Event(), LoopThread(0.01)

    async def forever():
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()

    with pytest.raises(TimeoutError):
        impatient.run(forever())
    assert ended.wait(5)
    impatient._seconds = 5
    impatient.stop()
    with pytest.raises(ZeroDivisionError):
        loop.run(fails())


async def fails():
    return 1 / 0


def test_stopping_cancels_what_is_left(loop):
    """The loop is closed, and a later use starts another."""
    begun, cancelled = threading.Event(), threading.Event()

    async def forever():
        begun.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.set()
            raise

    loop.start(forever())
    assert begun.wait(5)
    loop.stop()
    assert cancelled.is_set()
    assert not loop.started
    loop.stop()
    assert loop.run(where())[0] == "test-loop"


def test_a_fork_starts_its_own_thread(loop):
    """The parent's thread does not exist in the child."""
    loop.run(where())
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            before = loop.started
            os.write(writer, repr((before, loop.run(where())[0])).encode())
        finally:
            os._exit(0)
    os.close(writer)
    assert os.read(reader, 100) == repr((False, "test-loop")).encode()
    os.close(reader)
    os.waitpid(child, 0)
