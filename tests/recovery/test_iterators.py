"""`for attempt in attempts(…): with attempt: …`, plain and async."""

import asyncio

import pytest

from amends import Fault, FaultError, Operation, Policy, Upstream, recover
from amends.errors import RateLimitedError, UnauthenticatedError, ValidationError
from amends.recovery import attempts, current_operation, time_left
from amends.testing import Script

READ = Operation(name="read", read_only=True)
LIMITED = Fault(code="RATE_LIMITED", retry_after=1.5)


def test_the_block_runs_until_it_works(clock):
    """Attempts are numbered from 1; the history is there."""
    script, numbers = Script(LIMITED, LIMITED, "page"), []
    for attempt in attempts():
        with attempt:
            numbers.append((attempt.number, len(attempt.history)))
            page = script()
    assert page == "page"
    assert numbers == [(1, 0), (2, 1), (3, 2)]
    assert clock.waits == [1.5, 1.5]
    assert len(attempt.history) == 3


async def test_the_async_block_runs_until_it_works(clock):
    """The same with `async for`."""
    script = Script(LIMITED, "page")
    async for attempt in attempts():
        with attempt:
            page = await script.acall()
    assert page == "page"
    assert clock.waits == [1.5]


def test_giving_up_raises_from_the_block(clock):
    """Typed, with its history."""
    script = Script(LIMITED, repeat=True)
    with pytest.raises(RateLimitedError) as caught:
        for attempt in attempts(policy=Policy(attempts=2)):
            with attempt:
                script()
    assert (len(caught.value.history), script.count) == (2, 2)


async def test_giving_up_raises_from_the_async_block(clock):
    """Also after a hook ran in between."""
    with pytest.raises(UnauthenticatedError):
        async for attempt in attempts(refresh=lambda: False):
            with attempt:
                raise UnauthenticatedError


def test_hooks_run_between_the_runs(clock):
    """Credentials are renewed, then the block runs again; a hook that does not work ends it."""
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
    """`return` and `break` are reported to the upstream."""
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
    """And leave the upstream's books straight."""
    upstream = Upstream()
    with pytest.raises(KeyboardInterrupt):
        for attempt in attempts(upstream=upstream):
            with attempt:
                raise KeyboardInterrupt
    assert upstream.open


async def test_cancelling_passes_through():
    """While the block runs, and while it waits."""
    for hint in (None, 60):

        async def work(hint=hint):
            async for attempt in attempts():
                with attempt:
                    if hint:
                        raise RateLimitedError(retry_after=hint)
                    await asyncio.sleep(60)

        task = asyncio.create_task(work())
        await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


def test_an_interrupt_ends_a_wait(clock):
    """Between the runs, too."""
    from amends.recovery.clock import CLOCK

    def interrupted(seconds):
        raise KeyboardInterrupt

    with CLOCK.using(sleep=interrupted), pytest.raises(KeyboardInterrupt):
        for attempt in attempts():
            with attempt:
                raise RateLimitedError(retry_after=1)


async def test_an_attempt_has_to_be_entered(clock):
    """A loop without `with` would run once and mean nothing."""
    with pytest.raises(RuntimeError, match="with attempt"):
        for _ in attempts():
            pass
    with pytest.raises(RuntimeError, match="with attempt"):
        async for _ in attempts():
            pass


def test_a_correctable_failure_ends_it_at_once(clock):
    """The block cannot change itself."""
    with pytest.raises(ValidationError):
        for attempt in attempts():
            with attempt:
                raise ValidationError


def test_key_and_deadline_are_known_inside_and_gone_outside(clock):
    """All runs share the key; a recovery inside does not outlive the deadline."""
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
    """Left in the middle it closes cleanly."""

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


def test_history_is_left_in_a_list(clock):
    """As with `recover`."""
    history, script = [], Script(LIMITED, "page")
    for attempt in attempts(history=history):
        with attempt:
            script()
    assert [each.number for each in history] == [1, 2]
