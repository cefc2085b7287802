"""
`recover` and `arecover`: run an operation on a thread or on an event loop.

Most calls succeed: the first one is made without a flow (`call_first`). If it fails, or if something has to be arranged
before it, `run_flow` and `arun_flow` run the flow of `operation_flow`: `perform` and `aperform` do what each step of it asks
for. Together with the clock this is the only code that waits.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from types import CoroutineType, GeneratorType
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec.structs import replace

from amends.core.fault import Fault
from amends.core.operation import Operation
from amends.core.policy import DEFAULT, Policy
from amends.recovery.async_library import ThreadWaiter, new_task_waiter, within
from amends.recovery.call_errors import (
    LOOP_CHECK,
    MisuseError,
    refuse_coroutine,
    refuse_generator,
    refuse_misuse,
    refuse_plain,
)
from amends.recovery.classify import On, fault_of
from amends.recovery.clock import CLOCK
from amends.recovery.events import EventHook, log_late_call
from amends.recovery.failover import Failover
from amends.recovery.history import Attempt
from amends.recovery.operation_flow import Flow, Outcome
from amends.recovery.plan import UNKNOWN, Hook, Options, Plan, Raises, plan_for
from amends.recovery.process_quota import process_quota
from amends.recovery.scope import SCOPE, Scope
from amends.recovery.steps import Do, Finish, Park, Send, Step, Steps, Wait
from amends.recovery.upstream import Upstream

if TYPE_CHECKING:
    from datetime import timedelta

__all__ = [
    "aadvance",
    "acall_first",
    "advance",
    "aperform",
    "arecover",
    "arun_flow",
    "call_first",
    "perform",
    "recover",
    "run_flow",
]

T = TypeVar("T")


def recover(
    call: Callable[..., T],
    /,
    *args: object,
    on: On | None = None,
    timeout: float | timedelta | None = None,
    read_only: bool = False,
    raises: Raises = "fault",
    policy: Policy | None = DEFAULT,
    upstream: Upstream | Failover | None = None,
    operation: Operation | None = None,
    fallback: Callable[..., T] | Iterable[Callable[..., T]] | None = None,
    verify: Hook | None = None,
    on_fix: Hook | None = None,
    refresh: Hook | None = None,
    setup: Hook | None = None,
    examine: Callable[[T], Fault | None] | bool | None = None,
    on_event: EventHook | None = None,
    history: list[Attempt] | None = None,
    options: Options | None = None,
    **kwargs: object,
) -> T:
    """
    Call `call(*args, **kwargs)`, and call it again where that can help and is safe, within the policy's bounds.

        page = recover(fetch, url, read_only=True)
        rows = recover(query, sql, on=(DeadlockError, ConnectionError), raises="original")

    Args:
        call: the function to call. If it takes keyword arguments with the names below, wrap it in `functools.partial`.
        args: its arguments.
        on: the exceptions that are repeated: a class, a tuple of classes, or a function that gets the exception and
            returns True, False or the seconds to wait. Exactly these are repeated, also if the call may have had its effect. Bugs (KeyError,
            TypeError, AttributeError …) are repeated only if their class is named. None: the failure itself decides.
        timeout: seconds that one call may take, as a number or a timedelta. `arecover` cancels a call that takes longer,
            and the failure is a TIMEOUT. A thread cannot be stopped: here the limit reaches the call as
            `amends.recovery.time_left()`, which the HTTP clients of amends obey. If a call takes longer, its result is
            used, and one warning is logged.
        read_only: the call changes nothing, so a repeat is safe. The same as `operation=Operation(read_only=True)`.
        raises: what is raised when recovery gives up. "fault": a FaultError of the failure's own class. "original": the
            last exception of the call, with `fault`, `decision` and `history` as attributes. "nothing": the last
            response, in which `examine` found a failure, is returned; if the call raised instead, as "original". If there
            is neither (an upstream held the call back), a FaultError is raised.
        policy: how many calls and how much waiting are allowed.
        upstream: the state that all callers of the same service share, or a `Failover`: several services that can do the same.
        operation: whether a repeat is safe. Without it, a call is repeated only if it surely had no effect.
        fallback: one function or several, called in order where repeating cannot help, with the arguments of the call.
            A fallback with a parameter `fault`, or with one parameter more than the call has arguments, also gets the
            fault.
        verify: finds out whether a call that may have had its effect had it. It returns False if it had not (the call is
            then repeated), None if it cannot find out, and otherwise the result of the operation.
        on_fix: gets a fault that asks for a changed request, with its `field` and `suggestions`. It returns the
            function to call instead, without arguments, or None.
        refresh: renews credentials that were refused; once per operation, and with an upstream once for all callers.
            It failed if it returns False or raises.
        setup: sets up what is missing (MCP_NOT_CONNECTED), under the same rules.
        examine: looks at what the call returned, and returns a Fault or None. True reads it with `amends.extract`,
            for calls that return failed responses instead of raising.
        on_event: gets the events of this operation (`amends.recovery.Event`), before the hooks of the process.
        history: a list that gets every attempt, also when the operation succeeds.
        options: the options above as one value; one that is given beside it counts instead.
        kwargs: the keyword arguments of the call.

    Raises:
        FaultError: of the failure's own class, with `.fault`, `.decision` and `.history`; its cause is the last
            exception. KeyboardInterrupt, cancellation and other exceptions that are no Exception are not handled.
        TypeError: if `call` cannot be called like this, for example because it is async. Nothing is repeated then.

    """
    first = None
    if (
        history is None
        and options is None
        and examine is None
        and timeout is None
        and (
            operation is None
            or (isinstance(operation, Operation) and not operation.key and not operation.keyed)  # type: ignore[redundant-expr]
        )
        and (policy is DEFAULT or policy is None or (isinstance(policy, Policy) and policy.deadline is None))  # type: ignore[redundant-expr]
        and (upstream is None or (isinstance(upstream, Upstream) and upstream.open))
    ):
        # The options are not checked yet: a Plan for each call would cost 0.35 of google-api-core's retry.
        result, first = call_first(upstream, call, args, kwargs)
        if first is None:
            return result  # type: ignore[no-any-return]
    plan = plan_for(
        options,
        policy=policy,
        upstream=upstream,
        operation=operation,
        fallback=fallback,
        verify=verify,
        on_fix=on_fix,
        refresh=refresh,
        setup=setup,
        examine=examine,
        on=on,
        timeout=timeout,
        read_only=read_only,
        raises=raises,
        on_event=on_event,
    )
    return run_flow(plan, call, args, kwargs, history, first)  # type: ignore[no-any-return]


async def arecover(
    call: Callable[..., Awaitable[T]],
    /,
    *args: object,
    on: On | None = None,
    timeout: float | timedelta | None = None,  # noqa: ASYNC109 - of one call, not of the whole
    read_only: bool = False,
    raises: Raises = "fault",
    policy: Policy | None = DEFAULT,
    upstream: Upstream | Failover | None = None,
    operation: Operation | None = None,
    fallback: Callable[..., object] | Iterable[Callable[..., object]] | None = None,
    verify: Hook | None = None,
    on_fix: Hook | None = None,
    refresh: Hook | None = None,
    setup: Hook | None = None,
    examine: Callable[[T], Fault | None] | bool | None = None,
    on_event: EventHook | None = None,
    history: list[Attempt] | None = None,
    options: Options | None = None,
    **kwargs: object,
) -> T:
    """
    Await `call(*args, **kwargs)` with recovery. The same as `recover`; hooks may be plain or async functions.

        page = await arecover(fetch, url, read_only=True)

    Cancelling the task ends the operation at once, whether it is calling or waiting.
    """
    first = None
    if (
        history is None
        and options is None
        and examine is None
        and timeout is None
        and (
            operation is None
            or (isinstance(operation, Operation) and not operation.key and not operation.keyed)  # type: ignore[redundant-expr]
        )
        and (policy is DEFAULT or policy is None or (isinstance(policy, Policy) and policy.deadline is None))  # type: ignore[redundant-expr]
        and (upstream is None or (isinstance(upstream, Upstream) and upstream.open))
    ):
        # The same as `acall_first`, written out: with one more coroutine a successful call costs 0.75 of google-api-core's
        # retry instead of 0.56 (target 0.6), and with an Upstream 1.31 instead of 1.07 (target 1.3): bench/overhead.py.
        if upstream is None:
            generation, successes = 0, process_quota.successes
        else:
            generation, successes = upstream.renewal.generation, 0
            upstream.begin()
        sent = CLOCK.now()
        try:
            awaitable = call(*args, **kwargs)
            if not isinstance(awaitable, CoroutineType):
                refuse_plain(awaitable)
            result = await awaitable
        except Exception as exc:  # noqa: BLE001 - recovery decides about every kind of failure
            first = _failed_call(upstream, sent, exc, generation, successes)
        except BaseException:
            if upstream is not None:
                upstream.abandoned(CLOCK.now(), sent)
            raise
        else:
            if upstream is None:
                process_quota.successes += 1
            else:
                upstream.succeeded(CLOCK.now(), sent)
            return result
    plan = plan_for(
        options,
        policy=policy,
        upstream=upstream,
        operation=operation,
        fallback=fallback,
        verify=verify,
        on_fix=on_fix,
        refresh=refresh,
        setup=setup,
        examine=examine,
        on=on,
        timeout=timeout,
        read_only=read_only,
        raises=raises,
        on_event=on_event,
    )
    return await arun_flow(plan, call, args, kwargs, history, first)  # type: ignore[no-any-return]


# The first call ------------------------------------------------------------------------------------------------


def call_first(
    upstream: Upstream | None,
    call: Callable[..., object],
    args: tuple[object, ...],
    kwargs: dict[str, object],
    *,
    awaitables: bool = False,
) -> tuple[Any, Outcome | None]:
    """
    Make the call on this thread. Return its result and None, or None and the outcome of a call that failed.

    With `awaitables`, an awaitable result is returned with an outcome without a fault: nothing is reported yet.
    """
    if upstream is None:
        generation, successes = 0, process_quota.successes
    else:
        generation, successes = upstream.renewal.generation, 0
        upstream.begin()
    sent = CLOCK.now()
    try:
        result = call(*args, **kwargs)
    except Exception as exc:  # noqa: BLE001 - recovery decides about every kind of failure
        return None, _failed_call(upstream, sent, exc, generation, successes)
    except BaseException:
        if upstream is not None:
            upstream.abandoned(CLOCK.now(), sent)
        raise
    if awaitables and hasattr(result, "__await__"):
        if upstream is not None:
            upstream.take_back()  # it begins when it is awaited
        return result, Outcome(sent=sent, ended=sent)
    if upstream is None:
        process_quota.successes += 1
    else:
        upstream.succeeded(CLOCK.now(), sent)
    if isinstance(result, _LAZY):
        _refuse_lazy(call, result)
    if LOOP_CHECK.left:
        LOOP_CHECK.check(succeeded=True)
    return result, None


async def acall_first(
    upstream: Upstream | None, call: Callable[..., Any], args: tuple[object, ...], kwargs: dict[str, object]
) -> tuple[Any, Outcome | None]:
    """Make the call and await it. Return its result and None, or None and the outcome of a call that failed."""
    if upstream is None:
        generation, successes = 0, process_quota.successes
    else:
        generation, successes = upstream.renewal.generation, 0
        upstream.begin()
    sent = CLOCK.now()
    try:
        awaitable = call(*args, **kwargs)
        if not isinstance(awaitable, CoroutineType):
            refuse_plain(awaitable)
        result = await awaitable
    except Exception as exc:  # noqa: BLE001 - recovery decides about every kind of failure
        return None, _failed_call(upstream, sent, exc, generation, successes)
    except BaseException:
        if upstream is not None:
            upstream.abandoned(CLOCK.now(), sent)
        raise
    if upstream is None:
        process_quota.successes += 1
    else:
        upstream.succeeded(CLOCK.now(), sent)
    return result, None


def _failed_call(
    upstream: Upstream | None, sent: float, error: Exception, generation: int, successes: int
) -> Outcome:
    """Return the outcome of a call that raised `error`."""
    return Outcome(
        sent=sent,
        ended=CLOCK.now(),
        error=error,
        fault=fault_of(error, None if upstream is None else upstream.vendor),
        generation=generation,
        successes=successes,
    )


# The flow ------------------------------------------------------------------------------------------------------


def run_flow(
    plan: Plan,
    call: Callable[..., object],
    args: tuple[object, ...],
    kwargs: dict[str, object],
    history: list[Attempt] | None = None,
    first: Outcome | None = None,
    *,
    awaitables: bool = False,
) -> Any:
    """
    Run the flow of one operation on this thread. `first` is a first call that was made already and failed.

    With `awaitables`, the flow goes on in a coroutine as soon as a call has returned an awaitable.
    """
    if first is not None:
        _refuse_misused(plan, call, args, kwargs, first)
    flow = Flow(plan, call, args, kwargs, ThreadWaiter, history, first)
    steps = flow.steps()
    step = next(steps)
    while not isinstance(step, Finish):
        if not awaitables or not isinstance(step, Send):
            LOOP_CHECK.check()
            step = advance(steps, step)
            continue
        try:
            value = perform(step)
        except BaseException as exc:  # noqa: BLE001 - as in `advance`
            step = steps.throw(exc)
            continue
        if hasattr(value, "__await__"):
            flow.new_waiter = new_task_waiter
            return _await_rest(steps, step, value)
        step = steps.send(value)
    if isinstance(step.result, _LAZY):
        _refuse_lazy(call, step.result)
    return step.result


_LAZY = (CoroutineType, GeneratorType)


def _refuse_lazy(call: object, result: object) -> None:
    """Refuse a result that only runs later, if the function that returned it never does more."""
    if isinstance(result, CoroutineType):
        refuse_coroutine(result)
    refuse_generator(call, result)


async def _await_rest(steps: Steps, step: Step, awaitable: Awaitable[object]) -> object:
    """Go on with a flow whose call returned an awaitable."""
    assert isinstance(step, Send)
    step = await aadvance(steps, replace(step, call=lambda: awaitable, args=(), kwargs={}))
    while not isinstance(step, Finish):
        step = await aadvance(steps, step)
    return step.result


async def arun_flow(
    plan: Plan,
    call: Callable[..., object],
    args: tuple[object, ...],
    kwargs: dict[str, object],
    history: list[Attempt] | None = None,
    first: Outcome | None = None,
) -> Any:
    """Run the flow of one operation on the running event loop. `first` is a first call that failed already."""
    if first is not None:
        _refuse_misused(plan, call, args, kwargs, first)
    steps = Flow(plan, call, args, kwargs, new_task_waiter, history, first).steps()
    step = next(steps)
    while not isinstance(step, Finish):
        step = await aadvance(steps, step)
    return step.result


def advance(steps: Steps, step: Step) -> Step:
    """Perform a step on this thread, give the flow its value or exception, and return the next step."""
    try:
        value = perform(step)
    except BaseException as exc:  # noqa: BLE001 - the flow cleans up, and raises again what it does not handle
        return steps.throw(exc)
    return steps.send(value)


async def aadvance(steps: Steps, step: Step) -> Step:
    """Perform a step on the running event loop, give the flow its value or exception, and return the next step."""
    try:
        value = await aperform(step)
    except BaseException as exc:  # noqa: BLE001 - the flow cleans up, and raises again what it does not handle
        return steps.throw(exc)
    return steps.send(value)


def perform(step: Step) -> Any:
    """Perform one step on this thread, and return its value."""
    if isinstance(step, Wait):
        return CLOCK.sleep(step.seconds)
    if isinstance(step, Park):
        return CLOCK.park(step.waiter, step.seconds)
    if isinstance(step, Do):
        return _run_hook(step)
    assert isinstance(step, Send)
    if step.scope is None:
        return _call(step)
    before, sent = SCOPE.get(), CLOCK.now()
    SCOPE.set(step.scope)
    try:
        return _call(step)
    finally:
        SCOPE.set(before)
        if step.timeout is not None and CLOCK.now() - sent > step.timeout:
            log_late_call(step.call, step.timeout)


async def aperform(step: Step) -> Any:
    """Perform one step on the running event loop, and return its value."""
    if isinstance(step, Wait):
        return await CLOCK.asleep(step.seconds)
    if isinstance(step, Park):
        return await CLOCK.apark(step.waiter, step.seconds)
    if isinstance(step, Do):
        value = _run_hook(step)
        if not hasattr(value, "__await__"):
            return value
        return await (value if step.timeout is None else within(step.timeout, value))
    assert isinstance(step, Send)
    if step.scope is None:
        return await _acall(step)
    before = SCOPE.get()
    SCOPE.set(step.scope)
    try:
        return await _acall(step)
    finally:
        SCOPE.set(before)


def _call(step: Send) -> object:
    try:
        return step.call(*step.args, **step.kwargs)
    except TypeError as error:
        refuse_misuse(step.call, step.args, step.kwargs, error)
        raise


async def _acall(step: Send) -> object:
    """Make the call and await it. A call that `on_fix` returned may be a plain function; the original one is async."""
    if step.changed:
        value = step.call(*step.args, **step.kwargs)
        if not hasattr(value, "__await__"):
            return value
    else:
        value = _call(step)
        if not isinstance(value, CoroutineType):
            refuse_plain(value)
    return await value if step.timeout is None else await within(step.timeout, value)


def _run_hook(step: Do) -> Any:
    """Call a hook. A plain one cannot be stopped: it sees its limit as `time_left()`, and a late one is logged."""
    if step.timeout is None:
        return step.call(*step.args, **step.kwargs)
    before, began = SCOPE.get(), CLOCK.now()
    around = Scope(UNKNOWN) if before is None else before
    until = began + step.timeout
    SCOPE.set(replace(around, until=until if around.until is None else min(until, around.until)))
    try:
        return step.call(*step.args, **step.kwargs)
    finally:
        SCOPE.set(before)
        if CLOCK.now() > until:
            log_late_call(step.call, step.timeout)


def _refuse_misused(
    plan: Plan,
    call: Callable[..., object],
    args: tuple[object, ...],
    kwargs: dict[str, object],
    first: Outcome,
) -> None:
    """Raise MisuseError if the first call failed because it cannot be made like this."""
    if not isinstance(first.error, TypeError):
        return
    try:
        if isinstance(first.error, MisuseError):
            raise first.error
        refuse_misuse(call, args, kwargs, first.error)
    except MisuseError:
        if plan.upstream is not None:
            plan.upstream.abandoned(CLOCK.now(), first.sent)
        raise
