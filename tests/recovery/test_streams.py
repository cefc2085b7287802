"""Tests of `recover_stream` and `arecover_stream`."""

import asyncio

import pytest

from amends import FaultError, Operation, Policy, Upstream
from amends.errors import RateLimitedError, ServiceUnavailableError, UnauthenticatedError, ValidationError
from amends.errors import TimeoutError as TimedOut
from amends.recovery import arecover_stream, current_operation, recover_stream, time_left
from amends.testing import FakeClock

SLOW = RateLimitedError("Slow down", retry_after=2)


def collect(source, *args, **options):
    """Return the items of a plain source, read with `recover_stream`."""
    return list(recover_stream(plain(source), *args, **options))


def acollect(source, *args, **options):
    """Return the items of an async source, read with `arecover_stream`."""

    async def main():
        return [item async for item in arecover_stream(source, *args, **options)]

    return asyncio.run(main())


def plain(source):
    """Return a plain generator function with the script of an async source."""

    def start(*args, **kwargs):
        source.started += 1
        try:
            for item in source.attempts.pop(0):
                if isinstance(item, BaseException):
                    raise item
                yield item
        finally:
            source.closed += 1

    return start


@pytest.fixture(params=[collect, acollect], ids=["recover_stream", "arecover_stream"])
def read(request):
    """Read with each of the two functions."""
    return request.param


def test_a_failure_before_the_first_item_is_repeated(read, clock):
    """If a repeat is safe: after a failure without effect, for a source that only reads, and for a named exception."""
    assert read(Source([SLOW], [SLOW], ["a", "b"])) == ["a", "b"]
    assert clock.waits == [2, 2]
    assert read(Source([TimeoutError()], ["a"]), read_only=True) == ["a"]
    assert read(Source([TimeoutError()], ["a"]), on=TimeoutError) == ["a"]
    source = Source([TimeoutError()], ["a"])
    with pytest.raises(TimedOut) as caught:
        read(source)
    assert (source.started, caught.value.delivered) == (1, 0)
    assert read(Source([])) == []


def test_a_failure_after_the_first_item_says_what_was_delivered(read, clock):
    """The error is typed and has the number of items; the source is not started again."""
    source = Source(["a", "b", SLOW])
    with pytest.raises(RateLimitedError) as caught:
        read(source, read_only=True, on=RateLimitedError)
    assert (source.started, source.closed, caught.value.delivered) == (1, 1, 2)
    assert "2 items were delivered before the failure" in caught.value.__notes__
    with pytest.raises(ConnectionResetError) as original:
        read(Source(["a", ConnectionResetError()]), raises="original")
    assert original.value.delivered == 1


def test_the_wrong_kind_of_source_is_refused(clock):
    """The error names the function to use; nothing is repeated."""
    with pytest.raises(TypeError, match="arecover_stream"):
        list(recover_stream(Source(["a"])))
    with pytest.raises(TypeError, match="recover_stream"):
        acollect(plain(Source(["a"])))

    async def opened():
        return []

    with pytest.raises(TypeError, match="arecover_stream"):
        list(recover_stream(opened))


def test_a_reader_of_a_plain_stream_that_stops_closes_the_source():
    """The upstream counts no failure, and the reader is outside the scope of the source."""
    upstream, source = Upstream(), Source(["a", "b"])
    stream = recover_stream(plain(source), upstream=upstream, timeout=60)
    assert next(stream) == "a"
    assert time_left() is None
    stream.close()
    assert (source.closed, upstream.open) == (1, True)


async def test_a_coroutine_that_returns_a_stream():
    """The streaming calls of LLM clients: an awaitable of an async iterable with `close`."""
    closed = []

    class Tokens:
        def __init__(self):
            self.left = ["a", "b"]

        def __aiter__(self):
            return self

        async def __anext__(self):
            if not self.left:
                raise StopAsyncIteration
            return self.left.pop(0)

        async def close(self):
            closed.append(1)

    outcomes = [SLOW, Tokens()]

    async def create(prompt, *, model):
        outcome = outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    with FakeClock():
        stream = arecover_stream(create, "hello", model="small")
        assert [item async for item in stream] == ["a", "b"]
    assert closed == [1]


async def test_an_item_that_takes_too_long_is_cancelled():
    """`timeout` is for each item: a stall before the first one is repeated, a later one is raised."""
    stalls = [0]

    async def source():
        at = stalls.pop(0) if stalls else 2
        for number in range(3):
            if number == at:
                await asyncio.Event().wait()
            yield number

    found = []
    with FakeClock(), pytest.raises(TimedOut) as caught:
        async for item in arecover_stream(source, timeout=0.02, read_only=True):
            found.append(item)
    assert (found, caught.value.delivered) == ([0, 1], 2)


class Source:
    """A scripted source: items are yielded, exceptions are raised."""

    def __init__(self, *attempts):
        self.attempts = list(attempts)
        self.started = self.closed = 0

    async def __call__(self, *args, **kwargs):
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


def test_a_late_item_is_logged(clock, caplog):
    """A thread cannot be stopped: an item that takes longer than the time-out is delivered and logged."""

    def source(seconds):
        for each in seconds:
            clock.advance(each)
            yield each

    assert list(recover_stream(source, [1.0, 2.0], timeout=2.0)) == [1.0, 2.0]
    assert caplog.records == []
    assert list(recover_stream(source, [1.0, 2.5], timeout=2.0)) == [1.0, 2.5]
    assert len(caplog.records) == 1


def test_the_time_left_for_an_item(clock):
    """It is that of the item, or the deadline if that is earlier."""

    def source():
        yield time_left()
        clock.advance(1.0)
        yield time_left()

    assert list(recover_stream(source, timeout=2.0)) == [2.0, 1.0]
    assert list(recover_stream(source, timeout=9.0, policy=Policy(deadline=5.0))) == [5.0, 4.0]


class Unclosable:
    """A source, plain and async, that fails at the first `failures` starts, and cannot be closed."""

    def __init__(self, *items, failures=0):
        self.items, self.failures, self.started = items, failures, 0

    def __call__(self):
        self.started += 1
        self.left = iter(self.items)
        return self

    def __iter__(self):
        return self

    def __next__(self):
        if self.started <= self.failures:
            raise ConnectionRefusedError
        return next(self.left)

    def __aiter__(self):
        return self

    async def __anext__(self):
        try:
            return next(self)
        except StopIteration:
            raise StopAsyncIteration from None

    def close(self):
        raise BrokenPipeError("secret")


def test_an_error_of_closing_the_source_decides_nothing(clock, caplog):
    """It neither hides the failure of the source, nor starts a source again that came to its end."""
    for read in (lambda source: list(recover_stream(source)), acollect):
        for items in ((), ("a", "b")):
            source = Unclosable(*items)
            assert (read(source), source.started) == (list(items), 1)
        source = Unclosable("a", failures=2)
        assert (read(source), source.started) == (["a"], 3)
    assert "a stream could not be closed: BrokenPipeError" in caplog.text
    assert "secret" not in caplog.text


async def test_an_exception_of_the_reader_is_not_one_of_the_source():
    """It is raised as it is, the source is closed, and the upstream learns nothing from it."""
    for _ in range(3):
        upstream, source = Upstream("s", concurrency=1), Source(["a", "b"], ["a", "b"])
        stream = recover_stream(plain(source), upstream=upstream, read_only=True)
        next(stream)
        with pytest.raises(ConnectionRefusedError) as caught:
            stream.throw(ConnectionRefusedError())
        assert not hasattr(caught.value, "fault")
        stream = arecover_stream(source, upstream=upstream, read_only=True, bound=lambda: False)
        await anext(stream)
        with pytest.raises(ConnectionRefusedError) as caught:
            await stream.athrow(ConnectionRefusedError())
        assert not hasattr(caught.value, "fault")
        assert (source.started, source.closed) == (2, 2)
        assert upstream.snapshot().state == "open"
        assert [item async for item in arecover_stream(Source(["c"]), upstream=upstream)] == ["c"]


def test_a_source_that_cannot_be_called_like_this(clock):
    """As in `recover`: a TypeError that says how to fix it, and no further start."""

    def lines(name):
        yield name

    async def tokens(name):
        yield name

    for source, args, text in (
        (lines("a"), (), "the function to call"),
        (lines, (), "lines cannot be called"),
    ):
        with pytest.raises(TypeError, match=text) as caught:
            list(recover_stream(source, *args, read_only=True))
        assert not isinstance(caught.value, FaultError)
    for source, text in ((tokens("a"), "the function to call"), (tokens, "tokens cannot be called")):
        with pytest.raises(TypeError, match=text):
            acollect(source, read_only=True)
    with pytest.raises(TypeError, match="verify returns"):
        collect(Source([TimeoutError()]), verify=lambda: True)
    with pytest.raises(TypeError, match="verify returns"):
        acollect(Source([TimeoutError()]), verify=lambda: True)


def test_the_reason_after_the_first_item(read, clock):
    """More attempts would not help, so the notes do not advise them; the wait that was asked for is kept."""
    for options, action in (({"read_only": True}, "escalate"), ({}, "verify")):
        with pytest.raises(TimedOut) as caught:
            read(Source(["a", TimeoutError()]), **options)
        assert (caught.value.decision.action, caught.value.decision.reason) == (action, "delivered")
        assert "attempts=" not in "".join(caught.value.__notes__)
    with pytest.raises(RateLimitedError) as caught:
        read(Source(["a", SLOW]))
    assert (caught.value.decision.reason, caught.value.decision.resume_in) == ("delivered", 2)
