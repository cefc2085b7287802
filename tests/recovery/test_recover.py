"""`recover` and `arecover`: the same flow on a thread and on an event loop."""

import asyncio
import contextvars
import gc
import pickle
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest

from amends import Fault, FaultError, Operation, Policy, Upstream, arecover, recover
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
from amends.recovery import current_operation, time_left
from amends.testing import Script

READ = Operation(name="read", read_only=True)
DOWN = Fault(code="SERVICE_UNAVAILABLE")


def on_thread(script, *args, **options):
    """Run it with `recover`."""
    return recover(script, *args, **options)


def on_loop(script, *args, **options):
    """Run it with `arecover`, on an event loop of its own."""
    return asyncio.run(arecover(script.acall if isinstance(script, Script) else script, *args, **options))


@pytest.fixture(params=[on_thread, on_loop], ids=["recover", "arecover"])
def run(request):
    """Both drivers, one after the other."""
    return request.param


def failure(run, script, *args, **options):
    """The FaultError of an operation that fails."""
    with pytest.raises(FaultError) as caught:
        run(script, *args, **options)
    return caught.value


def test_a_call_that_succeeds_is_just_called(run, clock):
    """With its arguments, and nothing else happens; no policy is the default one."""
    script = Script("page")
    assert run(script, 1, two=2, policy=None) == "page"
    assert script.calls == [((1,), {"two": 2})]
    assert clock.waits == []


@pytest.mark.parametrize(("hint", "wait"), [(1.5, 1.5), (0, None), (3600.0, "escalate"), (-5, 1.0)])
def test_hints_outside_adcp(run, clock, hint, wait):
    """1.5 waits 1.5; a negative one is absent; an hour is not slept but handed back at once."""
    script = Script(RateLimitedError(retry_after=hint), "page")
    if wait == "escalate":
        error = failure(run, script)
        assert (error.decision.reason, error.decision.resume_in, clock.waits) == ("wait-too-long", 3600.0, [])
    else:
        assert run(script) == "page"
        assert clock.waits == ([] if wait is None else [wait])


def test_bounds_end_it_with_everything_that_was_tried(run, clock):
    """Typed, with fault, decision, the whole history, the last exception as its cause."""
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


def test_the_history_of_a_success_can_be_had(run, clock):
    """Every attempt, the good one included."""
    history = []
    assert run(Script(DOWN, "page"), operation=READ, history=history) == "page"
    assert [(attempt.number, attempt.fault) for attempt in history] == [(1, DOWN), (2, None)]
    again = []
    assert run(Script("page"), history=again) == "page"
    assert len(again) == 1


def test_what_may_have_happened_is_not_repeated(run, clock):
    """Without a promise the decision is to look first."""
    script = Script(TimedOut("lost"))
    assert failure(run, script).decision.action is Action.VERIFY
    assert script.count == 1


def test_foreign_exceptions_are_classified(run, clock):
    """A refused connection surely had no effect; it stays the cause."""
    error = failure(run, Script(ConnectionRefusedError("x"), repeat=True))
    assert isinstance(error.__cause__, ConnectionRefusedError)
    assert len(error.history) == 5


def test_a_class_of_ones_own_stays_what_it_is(run, clock):
    """`except OutOfStock` keeps working, with its attributes."""

    class SoldOutError(ValidationError):
        """A refinement without a code of its own."""

    original = SoldOutError("gone")
    original.shelf = 7
    original.add_note("as raised")
    error = failure(run, Script(original))
    assert type(error) is SoldOutError
    assert error is not original
    assert error.shelf == 7
    assert error.__cause__ is original
    assert type(failure(run, Script(FaultError("x", code="CONFLICT")))) is ConflictError


def test_the_error_travels(run, clock):
    """Pickled and back, history included."""
    error = failure(run, Script(OSError("x"), OSError("x")), operation=READ)
    back = pickle.loads(pickle.dumps(error))
    assert back.fault == error.fault
    assert [attempt.decision for attempt in back.history] == [attempt.decision for attempt in error.history]


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, SystemExit, GeneratorExit])
@pytest.mark.parametrize("shared", [False, True])
def test_interrupts_pass_through_at_once(clock, interrupt, shared):
    """From the call, at the first and at a later attempt."""
    upstream = Upstream() if shared else None
    for script in (Script(interrupt()), Script(DOWN, interrupt())):
        with pytest.raises(interrupt):
            recover(script, operation=READ, upstream=upstream)
    if upstream is not None:
        assert upstream.snapshot().calls == 3


def test_replaced_standard_clocks_are_ours_too(run, monkeypatch):
    """Patching `time.sleep` or `asyncio.sleep` is enough for a test, and bounds hold although no time passes."""
    waits = []

    async def asleep(seconds):
        waits.append(seconds)

    monkeypatch.setattr(time, "sleep", waits.append)
    monkeypatch.setattr(asyncio, "sleep", asleep)
    monkeypatch.setattr(time, "monotonic", lambda: 5.0)
    error = failure(run, Script(Fault(code="RATE_LIMITED", retry_after=100), repeat=True))
    assert error.decision.reason == "wait-too-long"
    assert len(waits) == 2
    assert error.history[0].started == 5.0


def test_an_interrupt_ends_a_wait(clock):
    """Also while sleeping."""
    from amends.recovery.clock import CLOCK

    def interrupted(seconds):
        raise KeyboardInterrupt

    with CLOCK.using(sleep=interrupted), pytest.raises(KeyboardInterrupt):
        recover(Script(DOWN), operation=READ)


async def test_cancelling_ends_a_wait():
    """In real time: the task is gone long before its hint is over."""
    task = asyncio.create_task(arecover(Script(RateLimitedError(retry_after=60)).acall))
    await asyncio.sleep(0.02)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_cancelling_ends_a_call():
    """And is reported to the upstream as no outcome."""
    upstream = Upstream()

    async def hang():
        await asyncio.sleep(60)

    for options in ({}, {"examine": True}):
        task = asyncio.create_task(arecover(hang, upstream=upstream, **options))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert upstream.snapshot().calls == 2
    assert upstream.open


# Other ways out ------------------------------------------------------------------------------------------------


def test_a_fallback_is_taken_with_the_same_arguments(run, clock, seen):
    """Where repeating cannot help; several are tried in order."""

    def broken(query):
        raise LookupError(query)

    def cached(query):
        return f"old {query}"

    assert run(Script(PermissionDeniedError()), "q", fallback=cached) == "old q"
    assert run(Script(PermissionDeniedError()), "q", fallback=[broken, cached]) == "old q"
    assert [event.kind for event in seen] == ["fallback", "fallback", "fallback"]


def test_a_fallback_that_fails_leaves_the_first_failure(run, clock):
    """With a note that names the kind of exception and none of its text."""

    def broken():
        raise LookupError("secret")

    error = failure(run, Script(PermissionDeniedError()), fallback=broken)
    assert error.decision.action is Action.FALLBACK
    assert error.__notes__ == ["fallback did not work: LookupError"]


def test_a_missing_connection_is_set_up_once(run, clock):
    """T7: MCP_NOT_CONNECTED only after the hook worked, and only once."""
    missing = Fault(code="MCP_NOT_CONNECTED", vocabulary="task")
    done = []
    assert run(Script(missing, "ok"), setup=done.append) == "ok"
    assert done == [missing]
    error = failure(run, Script(missing, missing), setup=lambda: None)
    assert (error.decision.action, len(error.history)) == (Action.FIX, 2)
    assert failure(run, Script(missing), setup=lambda: False).decision.action is Action.FIX


def test_credentials_are_renewed_once(run, clock, seen):
    """UNAUTHENTICATED, AUTH_* and MCP_AUTH_FAILED: one more try after the hook worked."""
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


def test_a_renewal_that_fails_leaves_the_refusal(run, clock):
    """The refusal is raised; what went wrong with the hook is noted by its class."""

    def broken():
        raise RuntimeError("secret")

    error = failure(run, Script(UnauthenticatedError()), refresh=broken)
    assert isinstance(error, UnauthenticatedError)
    assert error.__notes__ == ["refresh did not work: RuntimeError"]


def test_a_fix_makes_another_call(run, clock):
    """The hook sees field and suggestions, and returns the call to make instead."""
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
    """A hook that never gets it right ends with the policy."""
    script = Script(ValidationError(), repeat=True)
    error = failure(run, script, on_fix=lambda fault: script)
    assert (error.decision.reason, len(error.history)) == ("attempts", 5)


def test_looking_decides_what_may_have_happened(run, clock, seen):
    """Not: again. Yes: its result. Nobody knows: handed back."""
    lost = TimedOut("lost")
    assert run(Script(lost, "new"), verify=lambda: False) == "new"
    assert run(Script(lost), verify=lambda: {"id": 7}) == {"id": 7}
    assert failure(run, Script(lost), verify=lambda: None).decision.action is Action.VERIFY

    def broken():
        raise OSError("secret")

    assert failure(run, Script(lost), verify=broken).__notes__ == ["verify did not work: OSError"]
    assert clock.waits == [1.0]
    assert seen[0].kind == "verify"


async def test_hooks_may_be_async():
    """Each is awaited where it wants to be."""

    async def refresh():
        await asyncio.sleep(0)

    async def cached():
        return "old"

    assert await arecover(Script(UnauthenticatedError(), "ok").acall, refresh=refresh) == "ok"
    assert await arecover(Script(PermissionDeniedError()).acall, fallback=cached) == "old"


# Answers that are failures -------------------------------------------------------------------------------------


def test_a_failed_answer_counts_when_it_is_examined(run, clock):
    """By default only exceptions do; `examine=True` reads what `extract` reads."""
    bad, good = {"status": 503, "headers": {"Retry-After": "2"}}, {"status": 200, "headers": {}}
    assert run(Script(bad), operation=READ) == bad
    assert run(Script(bad, good), operation=READ, examine=True) == good
    assert clock.waits == [2.0]
    error = failure(run, Script({"status": 404, "headers": {}}), examine=True)
    assert (error.fault.code, error.history[0].result["status"], error.__cause__) == ("NOT_FOUND", 404, None)


def test_ones_own_reading_of_an_answer(run, clock):
    """Any function from an answer to a fault or None."""

    def empty(answer):
        return None if answer else Fault(code="SERVICE_UNAVAILABLE")

    assert run(Script([], [1]), operation=READ, examine=empty) == [1]


def test_an_answer_that_failed_without_words(run, clock):
    """A failed MCP result without a structured error is a failure nobody knows more about."""
    result = {"content": [{"type": "text", "text": "boom"}], "isError": True}
    assert failure(run, Script(result), examine=True).fault.code in {"INTERNAL_ERROR", "MCP_ERROR"}


# What a call may know ------------------------------------------------------------------------------------------


def test_who_has_the_promise_repeats(run, clock):
    """A layer below that says nothing hands the doubt up after one call; the one that may repeat does."""
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
    """The same in every attempt, another for the next operation, none outside."""
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
    """Nobody makes another."""
    found = []

    def call(*args):
        found.append(current_operation().key)

    async def acall(*args):
        call()

    run(acall if run is on_loop else call, operation=Operation(key="mine"))
    assert found == ["mine"]


def test_a_call_can_ask_how_much_time_it_has(run, clock):
    """For its own time-out."""
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


def test_context_variables_survive(run, clock):
    """A call runs in its caller's context, at every attempt."""
    name = contextvars.ContextVar("name", default="nobody")
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
    """Its state is its own; closing it in the middle of a recovered loop is fine."""

    def pages():
        for number in range(3):
            yield recover(Script(RateLimitedError(retry_after=1), number))

    first, second = pages(), pages()
    assert [next(first), next(second), next(first)] == [0, 0, 1]
    second.close()
    assert list(first) == [2]


def test_a_coroutine_is_no_result(clock):
    """Calling an async function with the wrong driver is said at once."""

    async def fetch():
        return 1

    for options in ({}, {"upstream": Upstream()}, {"policy": Policy(deadline=5)}):
        with pytest.raises(TypeError, match="arecover"):
            recover(fetch, **options)


def test_nothing_is_left_behind(clock):
    """No reference cycle keeps the caller's locals alive after a failure was handled."""
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
    """Five inside and five outside are five calls."""
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


def test_waiting_below_counts_above(run, clock):
    """A nested recovery that waited uses up the patience of the one around it."""
    script = Script(Fault(code="RATE_LIMITED", retry_after=100), repeat=True)

    def inner(*args):
        return recover(script, policy=Policy(attempts=2))

    async def ainner(*args):
        return await arecover(script.acall, policy=Policy(attempts=2))

    error = failure(run, ainner if run is on_loop else inner, policy=Policy(max_wait=150, attempts=9))
    assert clock.waits == [100]
    assert error.decision.reason == "wait-too-long"


def test_an_inner_policy_never_outlives_the_outer_one(run, clock):
    """The inner one would go on for an hour; the outer deadline ends it."""
    patient = Policy(attempts=None, max_wait=None, deadline=3600)
    script = Script(Fault(code="RATE_LIMITED", retry_after=4), repeat=True)

    def inner(*args):
        return recover(script, policy=patient)

    async def ainner(*args):
        return await arecover(script.acall, policy=patient)

    error = failure(run, ainner if run is on_loop else inner, policy=Policy(attempts=None, deadline=10))
    assert error.decision.reason == "deadline"
    assert clock.waits == [4, 4]


def test_the_outer_deadline_is_gone_afterwards(run, clock):
    """Nothing leaks into what comes later."""
    run(Script("x"), policy=Policy(deadline=5))
    assert time_left() is None


def test_a_call_that_says_nothing_is_part_of_the_operation_around_it(clock):
    """It knows that one's key; one that says what it is has its own."""
    keys = []

    def look():
        keys.append(current_operation().key)

    def outer():
        look()
        recover(look, policy=Policy(deadline=5))
        recover(look, policy=Policy(deadline=5), operation=READ)

    recover(outer, operation=Operation(key="k"))
    assert keys == ["k", "k", None]


async def test_nothing_leaks_within_a_task():
    """Key and deadline are gone when the operation is over, in the very same context."""
    operation, policy = Operation(keyed=True), Policy(deadline=5)
    await arecover(Script("x").acall, operation=operation, policy=policy)
    with pytest.raises(FaultError):
        await arecover(Script(ValidationError()).acall, operation=operation, policy=policy)
    assert time_left() is None
    assert current_operation() is None


def test_hooks_get_the_fault_only_if_they_need_an_argument(clock):
    """A builtin that does not say, one with only keywords and one with a default get nothing."""
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


def test_who_never_awaits_does_not_load_asyncio():
    """Importing recovery, and recovering on a thread, stays cheap."""
    code = (
        "import sys\nfrom amends import recover\nassert recover(lambda: 1) == 1\n"
        "print([name for name in ('asyncio', 'socket', 'random') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
