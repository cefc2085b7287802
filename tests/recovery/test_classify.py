"""Tests of what a failure means to recovery."""

import asyncio
import doctest
from datetime import timedelta

import pytest

import amends
from amends import Fault, FaultError, Operation, Policy, Upstream, arecover, recover
from amends.core.enums import Executed, Recovery
from amends.errors import PermissionDeniedError, RateLimitedError, UnauthenticatedError
from amends.recovery import attempts, classify, recovering
from amends.recovery.classify import Signal, fault_in_response, fault_of, signal_of, waited_below
from amends.recovery.history import Attempt
from amends.testing import Script


def test_its_examples():
    """The examples in the docstrings hold."""
    assert doctest.testmod(classify).failed == 0


def test_exceptions():
    """A typed error has its fault; other exceptions are recognised."""
    error = RateLimitedError(retry_after=3)
    assert fault_of(error) is error.fault
    assert fault_of(ConnectionRefusedError("a")).code == "SERVICE_UNAVAILABLE"


def test_waits_of_an_inner_recovery():
    """The waits of all attempts are added; other exceptions have none."""
    error = RateLimitedError()
    assert waited_below(error) == 0.0
    error.history = tuple(Attempt(number=n, started=0.0, duration=0.0, wait=float(n)) for n in (1, 2))
    assert waited_below(error) == 3.0
    assert waited_below(KeyError("a")) == waited_below(None) == 0.0


@pytest.mark.parametrize(
    ("response", "code"),
    [
        ({"status": 429, "headers": {}}, "RATE_LIMITED"),
        ({"status": 204, "headers": {}}, None),
        ({"jsonrpc": "2.0", "id": 1, "result": {"content": [], "isError": True}}, "INTERNAL_ERROR"),
        ("anything", None),
    ],
)
def test_responses(response, code):
    """A response that reports a failure has a fault, also if it has no structured error."""
    found = fault_in_response(response)
    assert (found.code if isinstance(found, Fault) else None) == code


class BusyError(Exception):
    """An exception of the application."""


class NotYetError(LookupError):
    """An exception of the application that derives from one of the bugs."""


def on_thread(script, *args, **options):
    return recover(script, *args, **options)


def on_loop(script, *args, **options):
    return asyncio.run(arecover(script.acall, *args, **options))


@pytest.fixture(params=[on_thread, on_loop], ids=["recover", "arecover"])
def run(request):
    return request.param


def failure(run, script, **options):
    with pytest.raises(FaultError) as caught:
        run(script, **options)
    return caught.value


def test_named_exceptions_are_repeated(run, clock):
    """A class, a tuple of classes and a function of the exception; five calls and the usual waits."""
    for on in (BusyError, (OSError, BusyError), lambda error: isinstance(error, BusyError)):
        assert run(Script(BusyError("x"), BusyError("x"), "page"), on=on) == "page"
    assert clock.waits == [1, 2] * 3
    error = failure(run, Script(BusyError("x"), repeat=True), on=BusyError)
    assert (len(error.history), error.decision.reason) == (5, "attempts")
    assert isinstance(error.__cause__, BusyError)


def test_a_predicate_may_return_the_wait(run, clock):
    """Seconds or a timedelta replace the wait; 0 repeats at once, and None is no."""
    waits = iter([3, timedelta(seconds=4), 0.0, None])
    script = Script(BusyError(), repeat=True)
    error = failure(run, script, on=lambda error: next(waits))
    assert (clock.waits, script.count, error.decision.reason) == ([3, 4], 4, "not-in-on")


def test_other_exceptions_are_not_repeated(run, clock):
    """An exception that `on` does not name is raised after one call, also one that would be repeated without `on`."""
    for raised in (ConnectionRefusedError(), RateLimitedError(retry_after=1), BusyError()):
        script = Script(raised, repeat=True)
        error = failure(run, script, on=FileNotFoundError, read_only=True)
        assert (script.count, error.decision.reason) == (1, "not-in-on")
    assert run(Script(ConnectionRefusedError()), on=BusyError, fallback=lambda: "cached") == "cached"


def test_on_overrides_what_the_failure_says(run, clock):
    """A named exception is repeated although its own class is correctable or terminal; its wait is kept."""
    assert run(Script(FileNotFoundError(), "there"), on=FileNotFoundError) == "there"
    assert run(Script(PermissionDeniedError(), "ok"), on=PermissionDeniedError) == "ok"
    assert run(Script(RateLimitedError(retry_after=7), "ok"), on=RateLimitedError) == "ok"
    assert clock.waits == [1, 1, 7]


def test_on_does_not_change_what_is_known_about_the_effect(run, clock):
    """The final fault is transient and still says that the call may have had its effect."""
    error = failure(run, Script(BusyError(), repeat=True), on=BusyError)
    assert (error.fault.recovery, error.fault.executed) == (Recovery.TRANSIENT, Executed.MAYBE)


def test_verify_and_refresh_come_before_a_blind_repeat(run, clock):
    """With `verify`, a named exception that may have had its effect is checked; with `refresh`, a 401 is renewed."""
    script = Script(BusyError(), repeat=True)
    assert run(script, on=BusyError, verify=lambda: "it happened") == "it happened"
    assert script.count == 1
    renewed = []
    assert run(Script(UnauthenticatedError(), "ok"), on=Exception, refresh=lambda: renewed.append(1)) == "ok"
    assert renewed == [1]


def test_bugs_are_never_repeated(run, clock):
    """M7: the same call would fail again. A verify that finds no effect changes nothing about that."""
    for bug in (
        KeyError,
        TypeError("x"),
        AttributeError,
        AssertionError,
        ZeroDivisionError,
        NotImplementedError,
    ):
        script = Script(bug, repeat=True)
        assert failure(run, script, read_only=True).decision.reason == "bug"
        assert failure(run, script, verify=lambda: False).decision.reason == "bug"
        assert failure(run, script, on=Exception).decision.reason == "bug"
        assert failure(run, script, on=lambda error: True).decision.reason == "bug"
        assert script.count == 4
    group = ExceptionGroup("several", [ValueError(), KeyError()])
    assert failure(run, Script(group, repeat=True), read_only=True).decision.reason == "bug"
    assert clock.waits == []


def test_a_value_error_is_no_bug_inside_recover(run, clock):
    """M7: a response that was cut off raises it, so a call that only reads is repeated."""
    assert run(Script(ValueError("x"), "page"), read_only=True) == "page"


def test_a_bug_class_that_is_named_is_repeated(run, clock):
    """Naming the class is explicit, as registering it is."""
    assert run(Script(KeyError(), "ok"), on=KeyError) == "ok"
    assert run(Script(NotYetError(), "ok"), on=NotYetError) == "ok"
    assert (
        failure(run, Script(NotImplementedError()), on=RuntimeError, read_only=True).decision.reason == "bug"
    )


def test_registered_exceptions_are_no_bugs(run, clock, monkeypatch):
    """`amends.register` gives a class its meaning; then the usual rules hold."""
    from amends.foreign import registry

    monkeypatch.setattr(registry, "_REGISTERED", {})
    amends.register(NotYetError, code="SERVICE_UNAVAILABLE", executed="no")
    assert run(Script(NotYetError(), "ok")) == "ok"


def test_read_only_on_the_call(run, clock):
    """`read_only=True` is the same as an Operation that says so, and keeps the rest of the operation."""
    assert run(Script(TimeoutError(), "page"), read_only=True) == "page"
    history = []
    named = Operation(name="search", key="k")
    assert run(Script(TimeoutError(), "page"), read_only=True, operation=named, history=history) == "page"
    assert failure(run, Script(TimeoutError())).decision.reason == "effect-unknown"


def test_decorator_and_block_take_the_same_options(clock):
    """The options have one meaning wherever they are given."""
    decorated = recovering(on=BusyError)(Script(BusyError(), "page"))
    assert decorated() == "page"
    script = Script(BusyError(), TimeoutError(), "page")
    for attempt in attempts(on=BusyError, policy=Policy(attempts=2)):
        with attempt, pytest.raises(TimeoutError) if attempt.number == 2 else attempt:
            script()
    for attempt in attempts(read_only=True):
        with attempt:
            found = script()
    assert found == "page"


def test_wrong_options_are_explained():
    """The message shows a correct value."""
    for options, text in (
        ({"on": "ConnectionError"}, "exception class"),
        ({"on": (ConnectionError, 3)}, "exception classes"),
        ({"on": int}, "exception classes"),
        ({"read_only": "yes"}, "True or False"),
        ({"raises": "always"}, '"original"'),
        ({"timeout": 0}, "more than 0"),
    ):
        with pytest.raises((TypeError, ValueError), match=text):
            recovering(**options)


def test_a_predicate_that_fails_is_noted(run, clock):
    """The operation's own failure is raised, with a note."""

    def broken(error):
        raise RuntimeError

    error = failure(run, Script(BusyError()), on=broken)
    assert "on did not work: RuntimeError" in error.__notes__


def test_the_upstream_counts_named_exceptions_as_failures_of_the_service(clock):
    """They are transient, so they count; others count as what they are."""
    upstream = Upstream()
    for _ in range(3):
        with pytest.raises(FaultError):
            recover(
                Script(BusyError(), repeat=True), on=BusyError, upstream=upstream, policy=Policy(attempts=1)
            )
    assert upstream.snapshot().failing > 0


@pytest.mark.parametrize(
    ("fault", "signal"),
    [
        (Fault(code="RATE_LIMITED", retry_after=3), Signal.HINT),
        (Fault(code="RATE_LIMITED"), Signal.REFUSED),
        (Fault(code="SERVICE_UNAVAILABLE"), Signal.PLAIN),
        (Fault(code="TIMEOUT"), Signal.SILENT),
        (Fault(code="NOT_FOUND"), Signal.WELL),
        (Fault(code="PERMISSION_DENIED"), Signal.WELL),
        (Fault(code="CONFLICT", vocabulary="adcp", retry_after=3), Signal.WELL),
        (Fault(code="INTERNAL_ERROR"), Signal.NOTHING),
        (Fault(code="INTERNAL_ERROR", status=500), Signal.PLAIN),
        (Fault(code="INTERNAL_ERROR", recovery=Recovery.TRANSIENT), Signal.PLAIN),
    ],
)
def test_the_signal_of_each_failure(fault, signal):
    """A wait on one thing is no HINT for all calls, and an unclassified exception is NOTHING."""
    assert signal_of(fault) is signal


def test_an_exception_that_on_does_not_name_says_so(run, clock):
    """Also if the call may have had its effect: a repeat would not be made if it were declared safe."""
    error = failure(run, Script(TimeoutError(), repeat=True), on=ConnectionError)
    assert (error.decision.action, error.decision.reason) == ("verify", "not-in-on")


@pytest.mark.parametrize("seconds", [float("nan"), float("inf"), float("-inf"), 10**400])
def test_a_wait_that_is_no_number_ends_the_operation(run, clock, seconds):
    """With the operation's own failure, and a note about `on`; an upstream counts the call as ended."""
    upstream, script = Upstream("s", concurrency=1), Script(ConnectionRefusedError(), repeat=True)
    for _ in range(2):
        error = failure(run, script, on=lambda error: seconds, upstream=upstream)
        assert "on did not work: ValueError" in error.__notes__
    assert script.count == 2


def test_an_async_function_as_on_is_refused(run, clock):
    """Its coroutine would count as True, and every failure would be repeated."""

    async def on(error):
        return False

    script = Script(TimeoutError(), "again")
    with pytest.raises(TypeError, match="plain function"):
        run(script, on=on)
    assert script.count == 1
