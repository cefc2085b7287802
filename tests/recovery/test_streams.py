"""Recovery around something that answers piece by piece."""

import asyncio

import pytest

from amends import FaultError, Operation, Policy, Upstream
from amends.errors import RateLimitedError, ServiceUnavailableError, UnauthenticatedError, ValidationError
from amends.recovery import current_operation, time_left
from amends.recovery.streams import arecover_stream
from amends.testing import FakeClock

SLOW = RateLimitedError("Slow down", retry_after=2)


class Source:
    """Attempts by script: pieces are handed on, exceptions raised."""

    def __init__(self, *attempts):
        self.attempts = list(attempts)
        self.begun = self.closed = 0

    async def __call__(self):
        self.begun += 1
        try:
            for piece in self.attempts.pop(0):
                await asyncio.sleep(0)
                if isinstance(piece, BaseException):
                    raise piece
                yield piece
        finally:
            self.closed += 1


async def pieces(source, bound=lambda: False, **options):
    return [piece async for piece in arecover_stream(source, bound=bound, **options)]


async def test_pieces_are_handed_on_as_they_come():
    """No piece waits for the next one."""
    source = Source(["a", "b"])
    stream = arecover_stream(source, bound=lambda: False)
    assert await anext(stream) == "a"
    assert source.closed == 0
    assert [piece async for piece in stream] == ["b"]
    assert (source.begun, source.closed) == (1, 1)


async def test_a_failure_begins_it_again():
    """After the wait that was asked for; what was handed on stays handed on."""
    source = Source(["a", SLOW], [SLOW], ["a", "b"])
    with FakeClock() as clock:
        assert await pieces(source) == ["a", "a", "b"]
    assert clock.waits == [2, 2]
    assert source.closed == 3


async def test_bounds_and_classes_hold():
    """Everything `recover` promises: attempts, a request that has to change, an effect nobody knows."""
    with FakeClock(), pytest.raises(RateLimitedError) as caught:
        await pieces(Source(*[[SLOW]] * 9), policy=Policy(attempts=2))
    assert (len(caught.value.history), caught.value.decision.reason) == (2, "attempts")
    for error, action in ((ValidationError("x"), "fix"), (ServiceUnavailableError("x"), "verify")):
        source = Source([error])
        with pytest.raises(FaultError) as caught:
            await pieces(source)
        assert (source.begun, caught.value.decision.action) == (1, action)
    with FakeClock():
        source = Source([ServiceUnavailableError("x")], ["a"])
        assert await pieces(source, operation=Operation(idempotent=True)) == ["a"]


async def test_what_is_bound_is_not_begun_again():
    """Not by waiting, not by new credentials, not by looking."""
    asked = []

    def hook():
        asked.append(1)

    for error in (SLOW, UnauthenticatedError("x"), ServiceUnavailableError("x")):
        source = Source(["a", error])
        with pytest.raises(type(error)):
            await pieces(source, bound=lambda: True, refresh=hook, verify=hook)
        assert source.begun == 1
    assert not asked


async def test_new_credentials():
    """As in `recover`: once, then the same again."""
    renewed = []
    source = Source([UnauthenticatedError("x")], ["a"])
    assert await pieces(source, refresh=lambda: renewed.append(1)) == ["a"]
    assert renewed == [1]


@pytest.mark.parametrize("seen", ["found", False, None])
async def test_looking_for_what_became_of_it(seen):
    """The pieces that are still to come, a new beginning, or nobody can tell."""
    rest = Source(["b", "c"])
    source = Source(["a", ServiceUnavailableError("x")], ["d"])

    async def verify():
        return rest() if seen == "found" else seen

    with FakeClock():
        if seen is None:
            with pytest.raises(ServiceUnavailableError):
                await pieces(source, verify=verify)
        else:
            assert await pieces(source, verify=verify) == (["a", "b", "c"] if seen else ["a", "d"])
    assert rest.closed == (1 if seen else 0)


async def test_who_gets_a_piece_is_not_inside_the_operation():
    """The source knows the operation and its deadline; the reader has its own."""
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
    """Also one that is cancelled while it waits; the upstream is not blamed."""
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

    task = asyncio.ensure_future(pieces(hanging, upstream=upstream))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert closed == [1]
    assert upstream.open


async def test_an_upstream_holds_back_the_next_one():
    """A hint told to one holds for all."""
    upstream = Upstream("service")
    with FakeClock() as clock:
        first = asyncio.ensure_future(pieces(Source([SLOW], ["a"]), upstream=upstream))
        await asyncio.sleep(0)
        assert await first == ["a"]
        assert await pieces(Source(["b"]), upstream=upstream) == ["b"]
    assert clock.waited >= 2
