"""Tests of `recover` and `arecover`: the same flow on a thread and on an event loop."""

import asyncio
import contextvars
import gc
import pickle
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest

from amends import Fault, FaultError, Operation, Policy, Upstream, arecover, extract, recover
from amends.core.enums import Action
from amends.errors import (
    ConflictError,
    PermissionDeniedError,
    RateLimitedError,
    ServiceUnavailableError,
    UnauthenticatedError,
    ValidationError,
)
from amends.errors import TimeoutError as TimedOut
from amends.recovery import current_operation, recovering, time_left
from amends.recovery.call_errors import LOOP_CHECK
from amends.recovery.clock import CLOCK
from amends.testing import FakeClock, Script

READ = Operation(name="read", read_only=True)
DOWN = Fault(code="SERVICE_UNAVAILABLE")


def on_thread(script, *args, **options):
    """Run the script with `recover`."""
    return recover(script, *args, **options)


def on_loop(script, *args, **options):
    """Run the script with `arecover`, on an event loop of its own."""
    return asyncio.run(arecover(script.acall if isinstance(script, Script) else script, *args, **options))


@pytest.fixture(params=[on_thread, on_loop], ids=["recover", "arecover"])
def run(request):
    """Run with `recover` and with `arecover`."""
    return request.param


def failure(run, script, *args, **options):
    """Return the FaultError of an operation that fails."""
    with pytest.raises(FaultError) as caught:
        run(script, *args, **options)
    return caught.value


def test_a_call_that_succeeds_is_made_once(run, clock):
    """The call gets its arguments, nothing waits, and `policy=None` means the default."""
    script = Script("page")
    assert run(script, 1, two=2, policy=None) == "page"
    assert script.calls == [((1,), {"two": 2})]
    assert clock.waits == []


def test_subclasses_are_accepted(run, clock):
    """A subclass of Policy, Operation or Upstream is used like the class itself, by direct calls and by retries."""

    class TwoAttempts(Policy, frozen=True, kw_only=True):
        attempts: int | None = 2

    class Reading(Operation, frozen=True, kw_only=True):
        read_only: bool = True

    class Shop(Upstream):
        pass

    upstream = Shop("shop")
    options = {"policy": TwoAttempts(), "operation": Reading(), "upstream": upstream}
    assert run(Script("page"), **options) == "page"
    assert len(failure(run, Script(DOWN, repeat=True), **options).history) == 2
    assert upstream.snapshot().calls == 3


@pytest.mark.parametrize(("hint", "wait"), [(1.5, 1.5), (0, None), (3600.0, "escalate"), (-5, 1.0)])
def test_hints_outside_adcp(run, clock, hint, wait):
    """A hint of 1.5 s waits 1.5 s, a negative one is ignored, and an hour is escalated at once."""
    script = Script(RateLimitedError(retry_after=hint), "page")
    if wait == "escalate":
        error = failure(run, script)
        assert (error.decision.reason, error.decision.resume_in, clock.waits) == ("wait-too-long", 3600.0, [])
    else:
        assert run(script) == "page"
        assert clock.waits == ([] if wait is None else [wait])


def test_the_final_error_has_fault_decision_history_and_cause(run, clock):
    """After five attempts the error is typed, and its cause is the last exception."""
    first, last = ConnectionRefusedError("one"), ServiceUnavailableError("five")
    script = Script(first, DOWN, DOWN, DOWN, last)
    error = failure(run, script, operation=READ)
    assert type(error) is ServiceUnavailableError
    assert error.__cause__ is last
    assert (error.decision.action, error.decision.reason, error.fault.attempt) == (
        Action.ESCALATE,
        "attempts",
        5,
    )
    assert [attempt.number for attempt in error.history] == [1, 2, 3, 4, 5]
    assert error.history[0].error is first
    assert [attempt.wait for attempt in error.history] == [1, 2, 4, 8, 0]
    assert clock.waits == [1, 2, 4, 8]


def test_history_contains_the_successful_attempt(run, clock):
    """The `history` list gets every attempt, also the one that succeeded."""
    history = []
    assert run(Script(DOWN, "page"), operation=READ, history=history) == "page"
    assert [(attempt.number, attempt.fault) for attempt in history] == [(1, DOWN), (2, None)]
    again = []
    assert run(Script("page"), history=again) == "page"
    assert len(again) == 1


def test_a_call_that_may_have_had_its_effect_is_not_repeated(run, clock):
    """Without a declared operation the decision is `verify`."""
    script = Script(TimedOut("lost"))
    assert failure(run, script).decision.action is Action.VERIFY
    assert script.count == 1


def test_foreign_exceptions_are_classified(run, clock):
    """A refused connection had no effect, so it is repeated; the exception stays the cause."""
    error = failure(run, Script(ConnectionRefusedError("x"), repeat=True))
    assert isinstance(error.__cause__, ConnectionRefusedError)
    assert len(error.history) == 5


def test_the_final_error_has_the_class_of_the_last_exception(run, clock):
    """`except OutOfStock` keeps working, and the attributes are kept."""

    class SoldOutError(ValidationError):
        """A subclass without a code of its own."""

    original = SoldOutError("gone")
    original.shelf = 7
    original.add_note("as raised")
    error = failure(run, Script(original))
    assert type(error) is SoldOutError
    assert error is not original
    assert error.shelf == 7
    assert error.__cause__ is original
    assert type(failure(run, Script(FaultError("x", code="CONFLICT")))) is ConflictError


def test_the_final_error_can_be_pickled(run, clock):
    """The history is kept."""
    error = failure(run, Script(*[OSError("x")] * 3), operation=READ)
    back = pickle.loads(pickle.dumps(error))
    assert back.fault == error.fault
    assert [attempt.decision for attempt in back.history] == [attempt.decision for attempt in error.history]


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, SystemExit, GeneratorExit])
@pytest.mark.parametrize("shared", [False, True])
def test_interrupts_pass_through_at_once(clock, interrupt, shared):
    """This holds for the first call and for a later one; the upstream counts both."""
    upstream = Upstream() if shared else None
    for script in (Script(interrupt()), Script(DOWN, interrupt())):
        with pytest.raises(interrupt):
            recover(script, operation=READ, upstream=upstream)
    if upstream is not None:
        assert upstream.snapshot().calls == 3


def test_patched_standard_sleeps_are_used(run, monkeypatch):
    """Patching `time.sleep` or `asyncio.sleep` is enough, and the bounds hold although no time passes."""
    waits = []

    async def asleep(seconds):
        waits.append(seconds)

    monkeypatch.setattr(time, "sleep", waits.append)
    monkeypatch.setattr(asyncio, "sleep", asleep)
    error = failure(run, Script(Fault(code="RATE_LIMITED", retry_after=100), repeat=True))
    assert error.decision.reason == "wait-too-long"
    assert len(waits) == 2
    assert sum(waits) >= 200


def test_an_interrupt_ends_a_wait(clock):
    """An interrupt during a sleep is raised at once."""

    def interrupted(seconds):
        raise KeyboardInterrupt

    with CLOCK.using(sleep=interrupted), pytest.raises(KeyboardInterrupt):
        recover(Script(DOWN), operation=READ)


async def test_cancelling_ends_a_wait():
    """The task ends long before its hint of 60 s has passed."""
    waiting = asyncio.Event()

    async def wait(seconds):
        waiting.set()
        await asyncio.sleep(seconds)

    with CLOCK.using(asleep=wait):
        task = asyncio.create_task(arecover(Script(RateLimitedError(retry_after=60)).acall))
        await waiting.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


async def test_cancelling_ends_a_call():
    """The upstream counts the call without an outcome."""
    upstream = Upstream()

    async def hang(called):
        called.set()
        await asyncio.sleep(60)

    for options in ({}, {"examine": True}):
        called = asyncio.Event()
        task = asyncio.create_task(arecover(hang, called, upstream=upstream, **options))
        await called.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert upstream.snapshot().calls == 2
    assert upstream.open


# Hooks and fallbacks --------------------------------------------------------------------------------------------


def test_a_fallback_gets_the_same_arguments(run, clock, seen):
    """Fallbacks run in order where repeating cannot help."""

    def broken(query):
        raise LookupError(query)

    def cached(query):
        return f"old {query}"

    assert run(Script(PermissionDeniedError()), "q", fallback=cached) == "old q"
    assert run(Script(PermissionDeniedError()), "q", fallback=[broken, cached]) == "old q"
    assert [event.kind for event in seen] == ["fallback", "fallback", "fallback"]


def test_a_fallback_gets_the_fault_if_it_takes_it(run, clock):
    """By the name `fault`, as one argument more than the call has, or as the only argument."""

    def keyword(query, *, fault):
        return query, fault.code

    def by_name(query, fault=None):
        return query, fault.code

    def last(query, failed):
        return query, failed.code

    def only(failed):
        return failed.code

    def anything(*args, **kwargs):
        return args, kwargs

    refused = Script(PermissionDeniedError(), repeat=True)
    for fallback in (keyword, by_name, last):
        assert run(refused, "q", fallback=fallback) == ("q", "PERMISSION_DENIED")
    assert run(refused, "q", "r", fallback=lambda fault: fault.code) == "PERMISSION_DENIED"
    assert run(refused, fallback=only) == "PERMISSION_DENIED"
    assert run(refused, "q", page=2, fallback=anything) == (("q",), {"page": 2})
    assert run(refused, fallback=dict) == {}


def test_a_failed_fallback_keeps_the_first_failure(run, clock):
    """A note on the error names the class of the fallback's exception, without its text."""

    def broken():
        raise LookupError("secret")

    error = failure(run, Script(PermissionDeniedError()), fallback=broken)
    assert error.decision.action is Action.FALLBACK
    assert error.__notes__[-1] == "fallback did not work: LookupError"
    assert "secret" not in "".join(error.__notes__)


def test_a_missing_connection_is_set_up_once(run, clock):
    """T7: MCP_NOT_CONNECTED is retried only after `setup` worked, and only once."""
    missing = Fault(code="MCP_NOT_CONNECTED", vocabulary="task")
    done = []
    assert run(Script(missing, "ok"), setup=done.append) == "ok"
    assert done == [missing]
    error = failure(run, Script(missing, missing), setup=lambda: None)
    assert (error.decision.action, len(error.history)) == (Action.FIX, 2)
    assert failure(run, Script(missing), setup=lambda: False).decision.action is Action.FIX


def test_credentials_are_renewed_once(run, clock, seen):
    """UNAUTHENTICATED, AUTH_* and MCP_AUTH_FAILED get one more call after `refresh` worked."""
    for refused in (
        Fault(code="UNAUTHENTICATED"),
        Fault(code="AUTH_INVALID", vocabulary="adcp"),
        Fault(code="MCP_AUTH_FAILED", vocabulary="task"),
    ):
        renewals = []
        assert run(Script(refused, "ok"), refresh=lambda: renewals.append(1)) == "ok"  # noqa: B023
        error = failure(run, Script(refused, refused), refresh=lambda: renewals.append(1))  # noqa: B023
        assert (renewals, len(error.history)) == ([1, 1], 2)
    assert clock.waits == []
    assert [event.kind for event in seen][:3] == ["refresh", "retry", "recovered"]


def test_a_failed_renewal_keeps_the_refusal(run, clock):
    """The refusal is raised with a note that names the class of the hook's exception."""

    def broken():
        raise RuntimeError("secret")

    error = failure(run, Script(UnauthenticatedError()), refresh=broken)
    assert isinstance(error, UnauthenticatedError)
    assert error.__notes__[-1] == "refresh did not work: RuntimeError"


def test_on_fix_returns_the_call_to_make_instead(run, clock):
    """The hook gets a fault with field and suggestions."""
    wrong = ValidationError("too long", field="nights", suggestions=["book fewer nights"])
    fixed = Script("booked")

    def shorten(fault):
        assert (fault.field, fault.suggestions) == ("nights", ("book fewer nights",))
        return lambda: fixed(nights=2)

    assert run(Script(wrong), 9, on_fix=shorten) == "booked"
    again = Script(PermissionDeniedError())
    assert run(Script(wrong), 9, on_fix=lambda fault: again, fallback=lambda nights: f"{nights}?") == "9?"
    assert fixed.calls == [((), {"nights": 2})]
    assert failure(run, Script(wrong), on_fix=lambda fault: None).decision.action is Action.FIX


def test_fixes_are_bounded_by_the_attempts(run, clock):
    """An `on_fix` that never helps ends with the policy's attempts."""
    script = Script(ValidationError(), repeat=True)
    error = failure(run, script, on_fix=lambda fault: script)
    assert (error.decision.reason, len(error.history)) == ("attempts", 5)


def test_verify_decides_about_an_unknown_effect(run, clock, seen):
    """False repeats the call, None escalates, any other value is the result."""
    lost = TimedOut("lost")
    assert run(Script(lost, "new"), verify=lambda: False) == "new"
    assert run(Script(lost), verify=lambda: {"id": 7}) == {"id": 7}
    assert failure(run, Script(lost), verify=lambda: None).decision.action is Action.VERIFY

    def broken():
        raise OSError("secret")

    assert failure(run, Script(lost), verify=broken).__notes__[-1] == "verify did not work: OSError"
    assert clock.waits == [1.0]
    assert seen[0].kind == "verify"


async def test_hooks_may_be_async():
    """`arecover` awaits async hooks and fallbacks."""

    async def refresh():
        await asyncio.sleep(0)

    async def cached():
        return "old"

    assert await arecover(Script(UnauthenticatedError(), "ok").acall, refresh=refresh) == "ok"
    assert await arecover(Script(PermissionDeniedError()).acall, fallback=cached) == "old"


# Failed responses ----------------------------------------------------------------------------------------------


def test_a_failed_response_counts_if_it_is_examined(run, clock):
    """Without `examine` only exceptions count; `examine=True` reads what `extract` reads."""
    bad, good = {"status": 503, "headers": {"Retry-After": "2"}}, {"status": 200, "headers": {}}
    assert run(Script(bad), operation=READ) == bad
    assert run(Script(bad, good), operation=READ, examine=True) == good
    assert clock.waits == [2.0]
    error = failure(run, Script({"status": 404, "headers": {}}), examine=True)
    assert (error.fault.code, error.history[0].result["status"], error.__cause__) == ("NOT_FOUND", 404, None)


def test_examine_may_be_any_function(run, clock):
    """It returns a Fault or None."""

    def empty(answer):
        return None if answer else Fault(code="SERVICE_UNAVAILABLE")

    assert run(Script([], [1]), operation=READ, examine=empty) == [1]


def test_a_failed_response_without_a_structured_error(run, clock):
    """A failed MCP result without a structured error is a failure with a general code."""
    result = {"content": [{"type": "text", "text": "boom"}], "isError": True}
    assert failure(run, Script(result), examine=True).fault.code in {"INTERNAL_ERROR", "MCP_ERROR"}


# What a call can read ------------------------------------------------------------------------------------------


def test_the_layer_that_declares_the_operation_repeats(run, clock):
    """An inner layer without an operation makes one call; the outer one, which is read-only, repeats it."""
    seen = []

    def search():
        seen.append(current_operation())
        if len(seen) == 1:
            raise TimedOut
        return "found"

    async def asearch():
        return await arecover(search_async)

    async def search_async():
        return search()

    below = asearch if run is on_loop else lambda: recover(search)
    assert run(below, operation=Operation(name="search", read_only=True)) == "found"
    assert seen == [None, None]


def test_a_key_is_made_once_per_operation(run, clock):
    """All attempts share the key, the next operation has another, and outside there is none."""
    keys = []

    def pay(*args):
        keys.append(current_operation().key)
        if len(keys) % 2:
            raise TimedOut
        return "paid"

    async def apay(*args):
        return pay(*args)

    for _ in range(2):
        assert run(apay if run is on_loop else pay, operation=Operation(name="pay", keyed=True)) == "paid"
    assert keys[0] == keys[1] != keys[2] == keys[3]
    assert current_operation() is None
    assert time_left() is None


def test_a_key_that_is_given_is_kept(run, clock):
    """No other key is made."""
    found = []

    def call(*args):
        found.append(current_operation().key)

    async def acall(*args):
        call()

    run(acall if run is on_loop else call, operation=Operation(key="mine"))
    assert found == ["mine"]


def test_a_call_can_read_the_time_left(run, clock):
    """A call can use `time_left` for its own time-out."""
    left = []

    def call(*args):
        left.append(time_left())
        clock.advance(4)
        if len(left) < 2:
            raise RateLimitedError(retry_after=1)

    async def acall(*args):
        call()

    run(acall if run is on_loop else call, policy=Policy(deadline=10))
    assert left == [10.0, 5.0]


def test_every_attempt_runs_in_the_context_of_the_caller(run, clock):
    """Values that an attempt sets are visible in the next one."""
    name = contextvars.ContextVar("name", default="")
    found = []

    def call():
        found.append(name.get())
        name.set(f"{name.get()}!")
        if len(found) < 3:
            raise RateLimitedError(retry_after=1)

    async def acall():
        call()

    name.set("anna")
    run(acall if run is on_loop else call)
    assert found == ["anna", "anna!", "anna!!"]


def test_a_generator_that_recovers_can_be_left_and_resumed(clock):
    """Two generators do not disturb each other, and one can be closed in the middle."""

    def pages():
        for number in range(3):
            yield recover(Script(RateLimitedError(retry_after=1), number))

    first, second = pages(), pages()
    assert [next(first), next(second), next(first)] == [0, 0, 1]
    second.close()
    assert list(first) == [2]


def test_recover_refuses_an_async_function(clock):
    """The error asks for `arecover`, with every kind of options."""

    async def fetch():
        return 1

    for options in ({}, {"upstream": Upstream()}, {"policy": Policy(deadline=5)}):
        with pytest.raises(TypeError, match="arecover"):
            recover(fetch, **options)


def test_a_failure_leaves_no_reference_cycles(clock):
    """No cycle keeps the caller's locals alive after a failure was handled."""
    gc.collect()
    gc.disable()
    try:
        before = len(gc.get_objects())
        for _ in range(50):
            with pytest.raises(FaultError):
                recover(Script(ValidationError()))
        gc.collect()
        assert len(gc.get_objects()) - before < 500
    finally:
        gc.enable()


# Layers --------------------------------------------------------------------------------------------------------


def test_layers_do_not_multiply_attempts(run, clock):
    """Five attempts in two layers are five calls."""
    script = Script(DOWN, repeat=True)

    def inner(*args):
        return recover(script, operation=READ)

    async def ainner(*args):
        return await arecover(script.acall, operation=READ)

    error = failure(run, ainner if run is on_loop else inner, operation=READ)
    assert script.count == 5
    assert error.fault.attempt == 5
    assert len(error.history) == 1
    assert len(error.history[0].error.history) == 5


def test_waits_of_an_inner_recovery_count_for_the_outer_one(run, clock):
    """They count towards the outer policy's `max_wait`."""
    script = Script(Fault(code="RATE_LIMITED", retry_after=100), repeat=True)

    def inner(*args):
        return recover(script, policy=Policy(attempts=2))

    async def ainner(*args):
        return await arecover(script.acall, policy=Policy(attempts=2))

    error = failure(run, ainner if run is on_loop else inner, policy=Policy(max_wait=150, attempts=9))
    assert clock.waits == [100]
    assert error.decision.reason == "wait-too-long"


def test_the_outer_deadline_bounds_the_inner_policy(run, clock):
    """The inner policy would wait for an hour; the outer deadline ends it."""
    patient = Policy(attempts=None, max_wait=None, deadline=3600)
    script = Script(Fault(code="RATE_LIMITED", retry_after=4), repeat=True)

    def inner(*args):
        return recover(script, policy=patient)

    async def ainner(*args):
        return await arecover(script.acall, policy=patient)

    error = failure(run, ainner if run is on_loop else inner, policy=Policy(attempts=None, deadline=10))
    assert error.decision.reason == "deadline"
    assert clock.waits == [4, 4]


def test_the_deadline_is_reset_afterwards(run, clock):
    """`time_left` is None after the operation."""
    run(Script("x"), policy=Policy(deadline=5))
    assert time_left() is None


def test_a_call_without_an_operation_belongs_to_the_outer_one(clock):
    """It gets the outer key; a call with an operation of its own does not."""
    keys = []

    def look():
        keys.append(current_operation().key)

    def outer():
        look()
        recover(look, policy=Policy(deadline=5))
        recover(look, policy=Policy(deadline=5), operation=READ)

    recover(outer, operation=Operation(key="k"))
    assert keys == ["k", "k", None]


async def test_key_and_deadline_are_reset_within_a_task():
    """In the same context both are gone when the operation has ended, after success and failure."""
    operation, policy = Operation(keyed=True), Policy(deadline=5)
    await arecover(Script("x").acall, operation=operation, policy=policy)
    with pytest.raises(FaultError):
        await arecover(Script(ValidationError()).acall, operation=operation, policy=policy)
    assert time_left() is None
    assert current_operation() is None


def test_hooks_get_the_fault_only_if_they_need_an_argument(clock):
    """A builtin without a signature, keyword-only parameters and defaults get no argument."""
    flags = SimpleNamespace(count=0)

    def bump(*, amount=1):
        flags.count += amount

    assert recover(Script(UnauthenticatedError(), "ok"), refresh=bump) == "ok"
    assert recover(Script(UnauthenticatedError(), "ok"), refresh=dict) == "ok"
    assert flags.count == 1

    def renew(force=False):
        flags.force = force

    assert recover(Script(UnauthenticatedError(), "ok"), refresh=renew) == "ok"
    assert flags.force is False


def test_recover_does_not_import_asyncio():
    """Importing recovery and recovering on a thread imports no asyncio, socket or random."""
    code = (
        "import sys\nfrom amends import recover\nassert recover(lambda: 1) == 1\n"
        "print([name for name in ('asyncio', 'socket', 'random') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_plain_call_inside_an_event_loop_warns_once(clock, monkeypatch):
    """The warning names the alternatives and points to the caller; a thread and a program without a loop get none."""
    monkeypatch.setattr(LOOP_CHECK, "warned", False)
    monkeypatch.setattr(LOOP_CHECK, "left", 9)

    async def main():
        await asyncio.to_thread(recover, Script("x"))
        assert await arecover(Script(DOWN, "x").acall, operation=READ) == "x"
        assert await recovering(lambda: Script("x").acall())() == "x"
        with pytest.warns(RuntimeWarning, match="arecover") as caught:
            assert recover(Script("x")) == "x"
        assert caught[0].filename == __file__
        assert recover(Script("x")) == "x"

    assert recover(Script(DOWN, "x"), operation=READ) == "x"
    asyncio.run(main())
    monkeypatch.setattr(LOOP_CHECK, "warned", False)
    monkeypatch.setattr(LOOP_CHECK, "left", 9)

    async def failing():
        with pytest.warns(RuntimeWarning, match="event loop"):
            assert recover(Script(DOWN, "x"), operation=READ) == "x"

    asyncio.run(failing())


def test_a_remark_on_a_success_is_no_failure():
    """M6: `examine` that finds an error which is not fatal leaves the call successful."""
    result = {"isError": False, "structuredContent": {"errors": [{"code": "RATE_LIMITED", "retry_after": 5}]}}
    call = Script(result)
    assert recover(call, examine=extract) == result
    assert call.count == 1
    with FakeClock() as clock, pytest.raises(FaultError) as caught:
        recover(
            Script(Fault(code="UNAUTHENTICATED", fatal=False)),
            refresh=lambda: True,
            operation=Operation(read_only=True),
        )
    assert (caught.value.decision.action, clock.waits) == ("none", [])


def test_native_failures_are_read_from_responses():
    """`examine=True` reads MCP and A2A failures that carry no AdCP error: their number or state decides."""
    unknown = {"jsonrpc": "2.0", "id": 1, "error": {"code": -32601, "message": "Method not found"}}
    waits = {"id": "t", "status": {"state": "auth-required"}}
    for response, code, action in ((unknown, "NOT_FOUND", "fix"), (waits, "UNAUTHENTICATED", "fix")):
        call = Script(response, repeat=True)
        with pytest.raises(FaultError) as caught:
            recover(call, examine=True, operation=Operation(read_only=True))
        assert (caught.value.fault.code, caught.value.decision.action, call.count) == (code, action, 1)
