"""Tests of `arecover_stream`."""

import asyncio

import pytest

from amends import FaultError, Operation, Policy, Upstream
from amends.errors import RateLimitedError, ServiceUnavailableError, UnauthenticatedError, ValidationError
from amends.recovery import current_operation, time_left
from amends.recovery.streams import arecover_stream
from amends.testing import FakeClock

SLOW = RateLimitedError("Slow down", retry_after=2)


class Source:
    """A scripted source: items are yielded, exceptions are raised."""

    def __init__(self, *attempts):
        self.attempts = list(attempts)
        self.started = self.closed = 0

    async def __call__(self):
        self.started += 1
        try:
            for item in self.attempts.pop(0):
                await asyncio.sleep(0)
                if isinstance(item, BaseException):
                    raise item
                yield item
        finally:
            self.closed += 1


async def items(source, bound=lambda: False, **options):
    return [item async for item in arecover_stream(source, bound=bound, **options)]


async def test_items_are_yielded_as_they_arrive():
    """No item waits for the next one."""
    source = Source(["a", "b"])
    stream = arecover_stream(source, bound=lambda: False)
    assert await anext(stream) == "a"
    assert source.closed == 0
    assert [item async for item in stream] == ["b"]
    assert (source.started, source.closed) == (1, 1)


async def test_a_failure_starts_the_source_again():
    """The repeat waits as the hint asks; the items of the failed attempt stay yielded."""
    source = Source(["a", SLOW], [SLOW], ["a", "b"])
    with FakeClock() as clock:
        assert await items(source) == ["a", "a", "b"]
    assert clock.waits == [2, 2]
    assert source.closed == 3


async def test_bounds_and_recovery_classes_hold():
    """The rules of `recover` apply: attempts, correctable failures, unknown effects."""
    with FakeClock(), pytest.raises(RateLimitedError) as caught:
        await items(Source(*[[SLOW]] * 9), policy=Policy(attempts=2))
    assert (len(caught.value.history), caught.value.decision.reason) == (2, "attempts")
    for error, action in ((ValidationError("x"), "fix"), (ServiceUnavailableError("x"), "verify")):
        source = Source([error])
        with pytest.raises(FaultError) as caught:
            await items(source)
        assert (source.started, caught.value.decision.action) == (1, action)
    with FakeClock():
        source = Source([ServiceUnavailableError("x")], ["a"])
        assert await items(source, operation=Operation(idempotent=True)) == ["a"]


async def test_a_bound_source_is_not_started_again():
    """Neither a wait, nor `refresh`, nor `verify` leads to a repeat."""
    asked = []

    def hook():
        asked.append(1)

    for error in (SLOW, UnauthenticatedError("x"), ServiceUnavailableError("x")):
        source = Source(["a", error])
        with pytest.raises(type(error)):
            await items(source, bound=lambda: True, refresh=hook, verify=hook)
        assert source.started == 1
    assert not asked


async def test_refresh_leads_to_one_repeat():
    """As in `recover`."""
    renewed = []
    source = Source([UnauthenticatedError("x")], ["a"])
    assert await items(source, refresh=lambda: renewed.append(1)) == ["a"]
    assert renewed == [1]


@pytest.mark.parametrize("seen", ["found", False, None])
async def test_verify_returns_the_remaining_items(seen):
    """False starts the source again, None raises."""
    rest = Source(["b", "c"])
    source = Source(["a", ServiceUnavailableError("x")], ["d"])

    async def verify():
        return rest() if seen == "found" else seen

    with FakeClock():
        if seen is None:
            with pytest.raises(ServiceUnavailableError):
                await items(source, verify=verify)
        else:
            assert await items(source, verify=verify) == (["a", "b", "c"] if seen else ["a", "d"])
    assert rest.closed == (1 if seen else 0)


async def test_the_reader_is_outside_the_scope_of_the_source():
    """The source sees the operation and its deadline; the code that reads the items does not."""
    inside = []

    async def source():
        inside.append((current_operation().key, time_left() is not None))
        yield "a"
        inside.append((current_operation().key, time_left() is not None))

    options = {"operation": Operation(key="k"), "policy": Policy(deadline=60)}
    async for _ in arecover_stream(source, bound=lambda: False, **options):
        assert current_operation() is None
        assert time_left() is None
    assert inside == [("k", True)] * 2


async def test_a_reader_that_stops_closes_the_source():
    """This holds also for one that is cancelled while it waits; the upstream counts no failure."""
    upstream = Upstream("service")
    source = Source(["a", "b"])
    stream = arecover_stream(source, bound=lambda: False, upstream=upstream)
    await anext(stream)
    await stream.aclose()
    assert source.closed == 1

    closed = []

    async def hanging():
        try:
            await asyncio.Event().wait()
            yield
        finally:
            closed.append(1)

    task = asyncio.ensure_future(items(hanging, upstream=upstream))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert closed == [1]
    assert upstream.open


async def test_a_hint_holds_back_the_next_stream():
    """Streams share an upstream like calls."""
    upstream = Upstream("service")
    with FakeClock() as clock:
        first = asyncio.ensure_future(items(Source([SLOW], ["a"]), upstream=upstream))
        await asyncio.sleep(0)
        assert await first == ["a"]
        assert await items(Source(["b"]), upstream=upstream) == ["b"]
    assert clock.waited >= 2
