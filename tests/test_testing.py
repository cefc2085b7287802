"""`amends.testing`: FakeClock, Script, recorded_events, and the pytest fixtures."""

import asyncio
import threading
import time
from importlib.metadata import entry_points

import pytest

from amends import Fault, FaultError, Operation, Upstream, arecover, recover
from amends.errors import RateLimitedError
from amends.recovery.clock import CLOCK
from amends.testing import FakeClock, Script, ScriptEndedError, recorded_events

pytest_plugins = ["pytester"]
READ = Operation(read_only=True)


def test_waits_take_no_time_and_are_recorded():
    """Waits advance the fake clock and are recorded, without sleeping."""
    began = time.monotonic()
    with FakeClock() as clock:
        before = clock.now()
        recover(
            Script(RateLimitedError(retry_after=120), Fault(code="SERVICE_UNAVAILABLE"), 1), operation=READ
        )
        assert clock.now() - before == 122
    assert clock.waits == [120, 2]
    assert clock.waited == 122
    assert time.monotonic() - began < 100
    assert abs(CLOCK.now() - time.monotonic()) < 1


def test_jitter_can_be_set():
    """`draw` is a number or a function."""
    for draw in (0.5, lambda: 0.5):
        with FakeClock(draw=draw) as clock:
            recover(Script(Fault(code="SERVICE_UNAVAILABLE"), 1), operation=READ)
        assert clock.waits == [0.75]


def test_advance():
    """`advance` simulates a slow call."""
    with FakeClock() as clock:
        history = []
        recover(lambda: clock.advance(3), history=history)
    assert history[0].duration == 3


async def test_tasks_wait_concurrently():
    """Two concurrent waits of ten seconds take ten seconds, and a shorter one ends first."""
    order = []

    async def work(name, hint):
        await arecover(Script(RateLimitedError(retry_after=hint), name).acall)
        order.append(name)

    with FakeClock() as clock:
        before = clock.now()
        await asyncio.gather(work("slow", 10), work("slow too", 10), work("fast", 2))
        assert clock.now() - before == 10
    assert order[0] == "fast"


async def test_parked_calls_wait_in_fake_time():
    """Calls that wait for their turn at an upstream use the fake clock, in threads and tasks."""
    upstream = Upstream()
    with FakeClock() as clock:
        upstream.failed(Fault(code="RATE_LIMITED", retry_after=30), clock.now(), clock.now(), 0.0)
        results = await asyncio.gather(*(arecover(Script(n).acall, upstream=upstream) for n in range(5)))
        assert results == [0, 1, 2, 3, 4]
        upstream.failed(Fault(code="RATE_LIMITED", retry_after=30), clock.now(), clock.now(), 0.0)
        assert await asyncio.to_thread(recover, Script("x"), upstream=upstream) == "x"
        assert await asyncio.to_thread(recover, Script("y"), upstream=upstream) == "y"
    assert 30 in clock.waits


def test_a_parked_thread_can_be_woken_by_another():
    """The clock does not advance if another thread wakes the waiter."""
    from amends.recovery.async_library import ThreadWaiter

    waiter = ThreadWaiter()
    with FakeClock() as clock:
        before = clock.now()
        thread = threading.Thread(target=waiter.wake)
        thread.start()
        thread.join()
        CLOCK.park(waiter, 60.0)
        assert clock.now() == before


def test_the_outcomes_of_a_script():
    """A script raises exceptions and faults, returns other values, and records the arguments."""
    script = Script(OSError, ValueError("x"), Fault(code="NOT_FOUND"), 7)
    for expected in (OSError, ValueError, FaultError):
        with pytest.raises(expected):
            script(1, two=2)
    assert script() == 7
    assert (script.count, script.calls[0]) == (4, ((1,), {"two": 2}))


def test_the_end_of_a_script():
    """One call too many raises ScriptEndedError, which recovery does not catch; `repeat` repeats the last outcome."""
    with FakeClock(), pytest.raises(ScriptEndedError):
        recover(Script(RateLimitedError(retry_after=1)))
    forever = Script(1, repeat=True)
    assert [forever(), forever(), forever()] == [1, 1, 1]


def test_events_are_recorded_inside_the_block():
    """Events after the block are not recorded."""
    with FakeClock():
        with recorded_events() as seen:
            recover(Script(RateLimitedError(retry_after=1), 1))
        recover(Script(RateLimitedError(retry_after=1), 1))
    assert [event.kind for event in seen] == ["retry", "recovered"]


def test_the_fixtures(pytester):
    """The fixtures work in a separate pytest run, as in a user's project."""
    pytester.makepyfile(
        """
        from amends import recover
        from amends.errors import RateLimitedError

        def test_it(amends_clock, amends_events, amends_script):
            fetch = amends_script(RateLimitedError(retry_after=90), "page")
            assert recover(fetch) == "page"
            assert amends_clock.waits == [90]
            assert [event.kind for event in amends_events] == ["retry", "recovered"]
        """
    )
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function")
    known = {each.value for each in entry_points(group="pytest11")}
    plugin = () if "amends.testing_plugin" in known else ("-p", "amends.testing_plugin")
    pytester.runpytest_inprocess(*plugin, "-p", "no:cacheprovider").assert_outcomes(passed=1)
