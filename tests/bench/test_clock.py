"""Virtual time: it jumps forward, all clocks agree, and blocking code takes part."""

import asyncio
import random
import time

import pytest
from bench.recovery.blocking import BlockingThreads, block_on
from bench.recovery.clock import EPOCH, run_virtual


def virtually(main, seed="x"):
    return run_virtual(main, seed=seed, sleep=lambda s: block_on(lambda: asyncio.sleep(s)))


def test_sleeping_moves_every_clock():
    """Sleeping moves the loop's, the monotonic and the wall clock together, but not the real one."""
    real = time.perf_counter

    async def main(loop):
        await asyncio.sleep(3600)
        return loop.time(), time.monotonic(), time.time()

    before = real()
    assert virtually(main) == (3600, 3600, EPOCH + 3600)
    assert real() - before < 5
    assert time.time() != EPOCH + 3600


def test_timers_run_in_order_of_time_and_ties_in_order_of_scheduling():
    """Two sleeps with the same end wake in the order they were scheduled."""

    async def main(loop):
        seen = []

        async def sleeper(name, seconds):
            await asyncio.sleep(seconds)
            seen.append((name, loop.time()))

        await asyncio.gather(sleeper("late", 2), sleeper("first", 1), sleeper("second", 1))
        return seen

    assert virtually(main) == [("first", 1), ("second", 1), ("late", 2)]


def test_blocking_code_sleeps_in_virtual_time():
    """Threads interleave by virtual time, one at a time; results and exceptions are passed on."""

    async def main(loop):
        threads, seen = BlockingThreads(), []

        def job(name, seconds):
            for _ in range(2):
                time.sleep(seconds)
                seen.append((name, time.monotonic()))
            if name == "b":
                raise ValueError(name)
            return name

        results = await asyncio.gather(
            threads.run(lambda: job("a", 3)), threads.run(lambda: job("b", 2)), return_exceptions=True
        )
        threads.close()
        return seen, results

    seen, (a, b) = virtually(main)
    assert seen == [("b", 2), ("a", 3), ("b", 4), ("a", 6)]
    assert a == "a"
    assert isinstance(b, ValueError)


def test_a_deadlock_is_reported():
    """A future that nothing can resolve raises instead of hanging."""

    async def main(loop):
        await loop.create_future()

    with pytest.raises(RuntimeError, match="deadlock"):
        virtually(main)


def test_the_random_module_is_seeded_and_restored():
    """Libraries that use the random module get the same numbers for the same seed."""

    async def main(loop):
        return random.random()

    state = random.getstate()
    assert virtually(main, "s") == virtually(main, "s") != virtually(main, "t")
    assert random.getstate() == state
