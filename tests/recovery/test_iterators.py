"""Tests of `for attempt in attempts(…): with attempt: …`, plain and async."""

import asyncio

import pytest
import trio

from amends import Fault, FaultError, Operation, Policy, Upstream, recover
from amends.core.backoff import Backoff
from amends.errors import RateLimitedError, UnauthenticatedError, ValidationError
from amends.recovery import attempts, current_operation, time_left
from amends.recovery.clock import CLOCK
from amends.testing import Script

READ = Operation(name="read", read_only=True)
LIMITED = Fault(code="RATE_LIMITED", retry_after=1.5)


def test_the_block_runs_until_it_succeeds(clock):
    """Attempts are numbered from 1, and each has the history so far."""
    script, numbers = Script(LIMITED, LIMITED, "page"), []
    for attempt in attempts():
        with attempt:
            numbers.append((attempt.number, len(attempt.history)))
            page = script()
    assert page == "page"
    assert numbers == [(1, 0), (2, 1), (3, 2)]
    assert clock.waits == [1.5, 1.5]
    assert len(attempt.history) == 3


async def test_the_async_block_runs_until_it_succeeds(clock):
    """`async for` does the same."""
    script = Script(LIMITED, "page")
    async for attempt in attempts():
        with attempt:
            page = await script.acall()
    assert page == "page"
    assert clock.waits == [1.5]


def test_giving_up_raises_from_the_block(clock):
    """The error is typed and has its history."""
    script = Script(LIMITED, repeat=True)
    with pytest.raises(RateLimitedError) as caught:
        for attempt in attempts(policy=Policy(attempts=2)):
            with attempt:
                script()
    assert (len(caught.value.history), script.count) == (2, 2)


async def test_giving_up_raises_from_the_async_block(clock):
    """This holds also if a hook ran between two runs."""
    with pytest.raises(UnauthenticatedError):
        async for attempt in attempts(refresh=lambda: False):
            with attempt:
                raise UnauthenticatedError


def test_hooks_run_between_the_runs(clock):
    """The block runs again after `refresh` worked; if it failed, the error is raised."""
    renewed, script = [], Script(UnauthenticatedError(), "in")
    for attempt in attempts(refresh=lambda: renewed.append(1)):
        with attempt:
            result = script()
    assert (result, renewed) == ("in", [1])
    with pytest.raises(UnauthenticatedError):
        for attempt in attempts(refresh=lambda: False):
            with attempt:
                raise UnauthenticatedError


def test_leaving_the_loop_from_a_good_block_is_a_success(clock):
    """`return` and `break` are reported to the upstream as successes."""
    upstream = Upstream()

    def fetch():
        for attempt in attempts(upstream=upstream):
            with attempt:
                return "page"
        return None

    assert fetch() == "page"
    for attempt in attempts(upstream=upstream):
        with attempt:
            break
    assert upstream.snapshot().calls == 2
    assert upstream.open


def test_interrupts_pass_through(clock):
    """The upstream stays open."""
    upstream = Upstream()
    with pytest.raises(KeyboardInterrupt):
        for attempt in attempts(upstream=upstream):
            with attempt:
                raise KeyboardInterrupt
    assert upstream.open


async def test_cancelling_passes_through():
    """Cancelling works while the block runs and while the loop waits."""
    reached = asyncio.Event()

    async def wait(seconds):
        reached.set()
        await asyncio.sleep(seconds)

    async def work(hint):
        async for attempt in attempts():
            with attempt:
                if hint:
                    raise RateLimitedError(retry_after=hint)
                await wait(60)

    with CLOCK.using(asleep=wait):
        for hint in (None, 60):
            reached.clear()
            task = asyncio.create_task(work(hint))
            await reached.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task


def test_an_interrupt_ends_a_wait(clock):
    """An interrupt between two runs is raised at once."""

    def interrupted(seconds):
        raise KeyboardInterrupt

    with CLOCK.using(sleep=interrupted), pytest.raises(KeyboardInterrupt):
        for attempt in attempts():
            with attempt:
                raise RateLimitedError(retry_after=1)


async def test_an_attempt_has_to_be_entered(clock):
    """A loop without `with` raises RuntimeError."""
    with pytest.raises(RuntimeError, match="with attempt"):
        for _ in attempts():
            pass
    with pytest.raises(RuntimeError, match="with attempt"):
        async for _ in attempts():
            pass


def test_a_correctable_failure_is_raised_at_once(clock):
    """The block cannot change its request, so it is not repeated."""
    with pytest.raises(ValidationError):
        for attempt in attempts():
            with attempt:
                raise ValidationError


def test_key_and_deadline_are_set_inside_the_block_only(clock):
    """All runs share the key, and a recovery inside the block ends by the deadline."""
    keys = []
    with pytest.raises(FaultError) as caught:
        for attempt in attempts(policy=Policy(deadline=10), operation=Operation(keyed=True)):
            with attempt:
                keys.append((attempt.operation.key, current_operation().key, time_left()))
                recover(Script(Fault(code="RATE_LIMITED", retry_after=4), repeat=True))
    assert len({key for pair in keys for key in pair[:2]}) == 1
    assert keys[0][2] == 10
    assert caught.value.decision.reason == "deadline"
    assert current_operation() is None
    assert time_left() is None


def test_a_generator_may_yield_from_the_block(clock):
    """Closing the generator inside the block resets the scope."""

    def stream():
        for attempt in attempts(policy=Policy(deadline=5)):
            with attempt:
                yield 1
                yield 2

    reading = stream()
    assert next(reading) == 1
    reading.close()
    assert time_left() is None
    assert list(stream()) == [1, 2]


def test_history_is_added_to_the_list(clock):
    """The `history` list gets every attempt, as with `recover`."""
    history, script = [], Script(LIMITED, "page")
    for attempt in attempts(history=history):
        with attempt:
            script()
    assert [each.number for each in history] == [1, 2]


async def test_a_run_of_an_async_block_is_cancelled_when_its_time_is_over():
    """The failure is a TIMEOUT, and the next run has its own time."""
    numbers = []
    async for attempt in attempts(timeout=0.02, read_only=True, policy=Policy(backoff=Backoff(first=0.01))):
        with attempt:
            numbers.append(attempt.number)
            assert time_left() is not None
            if attempt.number < 3:
                await asyncio.sleep(60)
    assert numbers == [1, 2, 3]
    assert [each.fault.code for each in attempt.history if each.fault] == ["TIMEOUT", "TIMEOUT"]


async def test_a_cancelled_block_is_not_taken_for_a_late_one():
    """Cancellation and the block's own TimeoutError pass through."""

    async def run():
        async for attempt in attempts(timeout=30, policy=Policy(attempts=1)):
            with attempt:
                await asyncio.sleep(60)

    task = asyncio.ensure_future(run())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    with pytest.raises(FaultError):
        async for attempt in attempts(timeout=30, policy=Policy(attempts=1)):
            with attempt:
                raise TimeoutError
    assert asyncio.current_task().cancelling() == 0


def test_a_block_on_trio_is_cancelled_when_its_time_is_over():
    """The same on trio."""

    async def main():
        async for attempt in attempts(
            timeout=0.02, read_only=True, policy=Policy(backoff=Backoff(first=0.01))
        ):
            with attempt:
                if attempt.number < 2:
                    await trio.sleep(60)
        return attempt.number

    assert trio.run(main) == 2


def test_a_plain_block_sees_its_limit(clock, caplog):
    """It cannot be stopped: its result is used, and a warning is logged once."""
    for attempt in attempts(timeout=5):
        with attempt:
            assert time_left() == 5
            clock.advance(6)
    assert attempt.number == 1
    assert "took longer than timeout=5" in caplog.text
