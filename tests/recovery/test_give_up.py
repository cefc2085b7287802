"""Tests of what recovery raises or returns when it gives up: the option `raises`."""

import asyncio
import pickle

import pytest

from amends import FaultError, Policy, Upstream, arecover, recover
from amends.errors import RateLimitedError, ServiceUnavailableError
from amends.recovery import attempts, recovering
from amends.testing import Script


def on_thread(script, *args, **options):
    return recover(script, *args, **options)


def on_loop(script, *args, **options):
    return asyncio.run(arecover(script.acall, *args, **options))


@pytest.fixture(params=[on_thread, on_loop], ids=["recover", "arecover"])
def run(request):
    return request.param


def test_the_original_exception_is_raised_with_the_fault(run, clock):
    """`raises="original"`: the last exception itself, with what recovery knows about it."""
    last = ConnectionRefusedError("last")
    with pytest.raises(ConnectionRefusedError) as caught:
        run(Script(OSError(), *[ConnectionRefusedError()] * 3, last), raises="original", read_only=True)
    assert caught.value is last
    assert (last.fault.code, last.decision.reason) == ("SERVICE_UNAVAILABLE", "attempts")
    assert len(last.history) == 5
    assert last.__cause__ is None


def test_an_original_exception_without_room_for_attributes(run, clock):
    """It is raised with notes only."""

    class ClosedError(Exception):
        def __setattr__(self, name, value):
            raise AttributeError(name)

    with pytest.raises(ClosedError):
        run(Script(ClosedError()), raises="original")


def test_a_failed_response_is_returned(run, clock):
    """`raises="nothing"` returns the last response in which `examine` found a failure."""
    busy = {"status": 503, "headers": {}, "body": ""}
    script = Script(busy, repeat=True)
    assert run(script, examine=True, raises="nothing", read_only=True) == busy
    assert script.count == 5
    with pytest.raises(ConnectionRefusedError):
        run(Script(ConnectionRefusedError(), repeat=True), raises="nothing")
    with pytest.raises(ServiceUnavailableError):
        run(script, examine=True, raises="original", read_only=True)


def test_a_call_that_was_not_sent_raises_a_fault(run, clock):
    """There is neither an exception nor a response, if the upstream held the call back."""
    upstream = Upstream()
    hint = RateLimitedError(retry_after=20).fault
    upstream.failed(hint, clock.now(), clock.now(), 0.0)
    for raises in ("fault", "original", "nothing"):
        with pytest.raises(FaultError):
            run(Script("x"), upstream=upstream, raises=raises, policy=Policy(max_wait=5))


def test_decorator_and_block_raise_the_original_too(clock):
    """The option has the same meaning there."""
    with pytest.raises(ConnectionRefusedError) as caught:
        recovering(raises="original")(Script(ConnectionRefusedError(), repeat=True))()
    assert caught.value.decision.reason == "attempts"
    with pytest.raises(KeyError) as bug:
        for attempt in attempts(raises="original", read_only=True):
            with attempt:
                raise KeyError
    assert bug.value.decision.reason == "bug"


def test_the_final_error_keeps_its_history_when_pickled(clock):
    """Also with the option `raises`."""
    with pytest.raises(ConnectionRefusedError) as caught:
        recover(Script(ConnectionRefusedError(), repeat=True), raises="original")
    assert len(pickle.loads(pickle.dumps(caught.value)).history) == 5
