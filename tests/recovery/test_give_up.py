"""Tests of what recovery raises when it gives up, and of the notes on it."""

import asyncio
import copy
import pickle
import traceback

import pytest

from amends import Fault, FaultError, Operation, Policy, Upstream, arecover, recover
from amends.core.decision import REASONS
from amends.errors import PermissionDeniedError, RateLimitedError, ServiceUnavailableError
from amends.recovery import History, attempts, recovering
from amends.recovery.give_up import ADVICE
from amends.testing import FakeClock, Script


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


FOLLOWED_BY_A_CALL = {
    "hint",
    "row-wait",
    "backoff",
    "uncertain",
    "queued",
    "refreshed",
    "next-target",
    "set-up",
    "changed",
    "not-happened",
}
NOT_OF_RECOVERY = {"non-fatal", "nothing-found"}


def failure(script, **options):
    with pytest.raises(FaultError) as caught:
        recover(script, **options)
    return caught.value


def test_an_uncaught_error_says_what_to_do(clock):
    """What was called, the status, tries and waits, what to do, where to read; and no text of the failing service."""
    failed = Fault(
        code="SERVICE_UNAVAILABLE", vocabulary="http", status=503, message="s3cret", trace_id="abc"
    )
    operation = Operation.of_http("GET", name="orders", url="https://shop.example/orders?s3cret")
    error = failure(Script(failed, repeat=True), operation=operation)
    assert error.__notes__ == [
        "amends: called orders GET https://shop.example/orders, got SERVICE_UNAVAILABLE (HTTP 503), trace id abc",
        f"amends: 5 calls in 15 s, waits 1, 2, 4, 8 s; gave up: {REASONS['attempts']}",
        f"amends: to do: {ADVICE['attempts']}",
        "amends: read: amends explain SERVICE_UNAVAILABLE --vocabulary http",
    ]
    printed = "".join(traceback.format_exception(error, chain=False))
    assert all(note in printed for note in error.__notes__)


def test_the_advice_fits_the_reason(clock):
    """Every reason that ends an operation has advice; a terminal failure names who has to act."""
    assert set(ADVICE) == set(REASONS) - FOLLOWED_BY_A_CALL - NOT_OF_RECOVERY
    assert "read_only=True" in "".join(failure(Script(ServiceUnavailableError())).__notes__)
    assert "amends.register" in "".join(failure(Script(KeyError()), read_only=True).__notes__)
    late = failure(Script(RateLimitedError(retry_after=900), repeat=True))
    assert "a call can succeed in 900 s" in late.__notes__[2]
    terminal = failure(Script(PermissionDeniedError(doc_uri="https://docs.example/permissions")))
    assert "has to act" in terminal.__notes__[2]
    assert terminal.__notes__[3].startswith("amends: read: https://docs.example/permissions, amends explain ")


def test_a_call_that_was_not_sent(clock):
    """The notes say that there was no call."""
    upstream = Upstream()
    upstream.failed(Fault(code="RATE_LIMITED", retry_after=20), clock.now(), clock.now(), 0.0)
    error = failure(Script("x"), upstream=upstream, policy=Policy(max_wait=5))
    assert "no call was sent" in error.__notes__[1]


def test_an_outer_recovery_does_not_repeat_the_notes(clock):
    """The outer error has notes of its own; those of the inner one stay on the inner one."""
    error = failure(lambda: recover(Script(PermissionDeniedError())))
    assert len(error.__notes__) == len(error.__cause__.__notes__) == 4


def test_the_history_prints_as_a_table(clock):
    """It is a tuple in every other respect, also when it is pickled or copied."""
    script = Script(RateLimitedError(retry_after=1.5, status=429), ServiceUnavailableError())
    history = failure(script).history
    assert str(history).splitlines() == [
        "#  took  failure              decision                 waited",
        "1  0 s   RATE_LIMITED 429     retry (hint)             1.5 s",
        "2  0 s   SERVICE_UNAVAILABLE  verify (effect-unknown)",
    ]
    assert history == tuple(history)
    for again in (pickle.loads(pickle.dumps(history)), copy.copy(history)):
        assert isinstance(again, History)
        assert str(again) == str(history)
    assert str(History()) == "#  took  failure  decision  waited"


def test_an_exception_that_is_raised_again_has_its_notes_once():
    """A program may keep one exception and raise it for each call: the notes do not grow."""
    error = ConnectionResetError()

    def call():
        raise error

    for _ in range(5):
        with pytest.raises(ConnectionResetError), FakeClock():
            recover(call, raises="original")
    assert len(error.__notes__) == 4


@pytest.mark.parametrize("promise", [{"keyed": True}, {"idempotent": True}, {"key": "order-17"}])
def test_a_refused_repeat_does_not_undo_an_earlier_call(run, clock, promise):
    """A lost answer, then a refusal: the operation may have happened, so a caller that promises nothing must verify."""
    lost, refused = Fault(code="TIMEOUT"), Fault(code="VALIDATION_ERROR")
    assert (lost.executed, refused.executed) == ("maybe", "no")
    script = Script(FaultError.from_fault(lost), FaultError.from_fault(refused))
    with pytest.raises(FaultError) as caught:
        run(script, operation=Operation(name="pay", **promise))
    assert (caught.value.fault.code, caught.value.fault.executed) == ("VALIDATION_ERROR", "maybe")
    assert [each.fault.executed for each in caught.value.history] == ["maybe", "no"]


def test_a_refused_repeat_of_a_recovery_around(run, clock):
    """Two layers: the outer one, without a promise, does not repeat what the inner one left open."""
    calls = []

    def pay():
        calls.append(1)
        raise (ServiceUnavailableError() if len(calls) == 1 else RateLimitedError(retry_after=1))

    def inner():
        return recover(pay, operation=Operation(name="pay", keyed=True), policy=Policy(attempts=2))

    with pytest.raises(FaultError) as caught:
        recover(inner, policy=Policy(attempts=9))
    assert (len(calls), caught.value.fault.executed, caught.value.decision.action) == (2, "maybe", "verify")


def test_a_read_has_no_effect_and_a_check_settles_earlier_calls(run, clock):
    """`executed` stays "no" for reads, and after `verify` found that nothing had happened."""
    lost, refused = Fault(code="TIMEOUT"), Fault(code="VALIDATION_ERROR")
    for options in ({"read_only": True}, {"verify": lambda *_: False}):
        script = Script(FaultError.from_fault(lost), FaultError.from_fault(refused))
        with pytest.raises(FaultError) as caught:
            run(script, **options)
        assert (caught.value.fault.code, caught.value.fault.executed) == ("VALIDATION_ERROR", "no")
        assert len(caught.value.history) == 2


def test_what_may_have_happened_is_called_again_with_its_key(clock):
    """A later call without this key would send another one, and it may happen twice."""
    keyed = Operation(name="pay", key="order-17")
    lost = Fault(code="TIMEOUT", executed="maybe")
    error = failure(Script(lost, repeat=True), operation=keyed)
    assert "call again later with the same key (error.key)" in error.__notes__[2]
    assert error.key == "order-17"
    refused = failure(Script(lost, Fault(code="VALIDATION_ERROR"), repeat=True), operation=keyed)
    assert "find out whether an earlier call happened" in refused.__notes__[2]
