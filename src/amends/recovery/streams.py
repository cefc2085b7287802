"""
`recover_stream` and `arecover_stream`: recovery around a source of items, such as a generator or a streamed response.

The items are yielded as they arrive, and a repeat starts the source again. Items that were yielded cannot be taken back,
so a failure after the first item is raised, with the number of items that were delivered.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable, Generator, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec.structs import replace

from amends.core.operation import Operation
from amends.core.policy import Policy
from amends.core.wrong_calls import explains_wrong_calls
from amends.errors.base import FaultError
from amends.recovery.async_library import ThreadWaiter, new_task_waiter, within
from amends.recovery.call_errors import refuse_misuse, refuse_source
from amends.recovery.classify import On
from amends.recovery.clock import CLOCK
from amends.recovery.drivers import aperform, perform
from amends.recovery.events import EventHook, log_close_failed, log_late_call
from amends.recovery.failover import Failover
from amends.recovery.operation_flow import Flow
from amends.recovery.plan import Hook, Options, Plan, Raises, plan_for
from amends.recovery.scope import SCOPE, Scope
from amends.recovery.steps import Finish, Send, WaiterMaker
from amends.recovery.upstream import Upstream

if TYPE_CHECKING:
    from datetime import timedelta

__all__ = ["arecover_stream", "recover_stream"]

T = TypeVar("T")
_END: object = object()


@explains_wrong_calls
def recover_stream(
    source: Callable[..., Iterable[T]],
    /,
    *args: object,
    on: On | None = None,
    timeout: float | timedelta | None = None,
    read_only: bool = False,
    raises: Raises = "fault",
    policy: Policy | None = None,
    upstream: Upstream | Failover | None = None,
    operation: Operation | None = None,
    verify: Hook | None = None,
    refresh: Hook | None = None,
    on_event: EventHook | None = None,
    bound: Callable[[], bool] | None = None,
    options: Options | None = None,
    **kwargs: object,
) -> Generator[T]:
    """
    Yield the items of `source(*args, **kwargs)`, and start it again if it fails before the first item.

    The source is started again only where that can help and is safe, within the policy's bounds, as `recover` repeats a
    call. After the first item a failure is raised at once; its `delivered` is the number of items that were yielded.

        for line in recover_stream(read_lines, url, read_only=True):
            print(line)

    Args:
        source: starts one attempt: a generator function, or a function that returns an iterable.
        args: its arguments.
        on: the exceptions after which the source is started again, as in `recover`.
        timeout: seconds that starting the source and each item may take, as a number or a timedelta. A thread
            cannot be stopped: the source sees the limit as `time_left()`.
        read_only: starting the source changes nothing, so that a repeat is safe.
        raises: "fault", "original" or "nothing", as in `recover`.
        policy: how many starts and how much waiting are allowed.
        upstream: the state that all callers of the same service share.
        operation: whether a repeat is safe.
        verify: finds out what became of an attempt that may have had its effect. It returns an iterable of the
            remaining items, False if there was no effect, or None if it cannot find out.
        refresh: renews credentials that were refused.
        on_event: gets the events of this operation.
        bound: returns whether the source must not be started again; it is asked after each failure. The default is
            whether an item was yielded.
        options: the options of recovery as one value, as in `recover`.
        kwargs: the keyword arguments of the source.

    Raises:
        FaultError: when recovery gives up, as from `recover`, with `delivered`.

    """
    plan = plan_for(
        options,
        on=on,
        timeout=timeout,
        read_only=read_only,
        raises=raises,
        policy=policy,
        upstream=upstream,
        operation=operation,
        verify=verify,
        refresh=refresh,
        on_event=on_event,
    )
    stream = _Stream(plan, source, args, kwargs, bound, ThreadWaiter)
    step = stream.first_step()
    while not isinstance(step, Finish):
        value: object = None
        try:
            if isinstance(step, Send):
                items = stream.run(step.scope, stream.open)
                try:
                    while (item := stream.run(step.scope, next, items, _END)) is not _END:
                        stream.hand_out()
                        yield item
                        stream.at_reader = False
                finally:
                    _close(items)
            else:
                value = perform(step)
        except BaseException as exc:  # noqa: BLE001 - the flow cleans up, and raises again what it does not handle
            step = stream.failed(exc)
        else:
            step = stream.steps.send(value)
    if step.result is not None:
        refuse_source(
            step.result, "__iter__", "verify returns an iterable of the remaining items, False or None"
        )
        yield from step.result


@explains_wrong_calls
async def arecover_stream(
    source: Callable[..., AsyncIterable[T] | Awaitable[AsyncIterable[T]]],
    /,
    *args: object,
    on: On | None = None,
    timeout: float | timedelta | None = None,  # noqa: ASYNC109 - of one item, not of the whole
    read_only: bool = False,
    raises: Raises = "fault",
    policy: Policy | None = None,
    upstream: Upstream | Failover | None = None,
    operation: Operation | None = None,
    verify: Hook | None = None,
    refresh: Hook | None = None,
    on_event: EventHook | None = None,
    bound: Callable[[], bool] | None = None,
    options: Options | None = None,
    **kwargs: object,
) -> AsyncGenerator[T]:
    """
    Yield the items of `source(*args, **kwargs)`, and start it again if it fails before the first item.

    The same as `recover_stream`, for async code. Close it (`contextlib.aclosing`) if you do not read it to its end.

        async with aclosing(arecover_stream(client.stream, prompt, read_only=True)) as tokens:
            async for token in tokens:
                print(token)

    Args:
        source: starts one attempt: an async generator function, or a plain or async function that returns an async
            iterable, as the streaming calls of LLM clients do.
        args: its arguments.
        on: the exceptions after which the source is started again, as in `recover`.
        timeout: seconds that starting the source and each item may take, as a number or a timedelta. A source
            that takes longer is cancelled, and the failure is a TIMEOUT.
        read_only: starting the source changes nothing, so that a repeat is safe.
        raises: "fault", "original" or "nothing", as in `recover`.
        policy: how many starts and how much waiting are allowed.
        upstream: the state that all callers of the same service share.
        operation: whether a repeat is safe.
        verify: finds out what became of an attempt that may have had its effect. It returns an async iterable of the
            remaining items, False if there was no effect, or None if it cannot find out.
        refresh: renews credentials that were refused.
        on_event: gets the events of this operation.
        bound: returns whether the source must not be started again; it is asked after each failure. The default is
            whether an item was yielded.
        options: the options of recovery as one value, as in `recover`.
        kwargs: the keyword arguments of the source.

    Raises:
        FaultError: when recovery gives up, as from `recover`, with `delivered`.

    """
    plan = plan_for(
        options,
        on=on,
        timeout=timeout,
        read_only=read_only,
        raises=raises,
        policy=policy,
        upstream=upstream,
        operation=operation,
        verify=verify,
        refresh=refresh,
        on_event=on_event,
    )
    stream = _Stream(plan, source, args, kwargs, bound, new_task_waiter)
    step = stream.first_step()
    while not isinstance(step, Finish):
        value: object = None
        try:
            if isinstance(step, Send):
                items = await stream.arun(step.scope, stream.aopen)
                try:
                    while (item := await stream.arun(step.scope, anext, items, _END)) is not _END:
                        stream.hand_out()
                        yield item
                        stream.at_reader = False
                finally:
                    await _aclose(items)
            else:
                value = await aperform(step)
        except BaseException as exc:  # noqa: BLE001 - the flow cleans up, and raises again what it does not handle
            step = stream.failed(exc)
        else:
            step = stream.steps.send(value)
    if step.result is not None:
        refuse_source(
            step.result, "__aiter__", "verify returns an async iterable of the remaining items, False or None"
        )
        try:
            async for item in step.result:
                yield item
        finally:
            await _aclose(step.result)


class _Stream:
    """One operation on a stream: its flow, and the items delivered so far."""

    def __init__(
        self,
        plan: Plan,
        source: Callable[..., object],
        args: tuple[object, ...],
        kwargs: dict[str, object],
        bound: Callable[[], bool] | None,
        new_waiter: WaiterMaker,
    ) -> None:
        self.timeout: float | None = plan.timeout
        """Seconds for each item; the time-out of a flow would be for the whole attempt."""
        self.flow = Flow(replace(plan, timeout=None), source, args, kwargs, new_waiter)
        self.steps = self.flow.steps()
        self.bound = bound
        self.delivered = 0
        self.at_reader = False
        """Whether the reader has an item: an exception at this time is one of its own."""

    def first_step(self) -> Any:
        """Return the first step of the flow."""
        return next(self.steps)

    def open(self) -> Any:
        """Start the source, and return the iterator of its items."""
        items = self._start()
        refuse_source(
            items, "__iter__", "recover_stream is for plain iterables, arecover_stream for async ones"
        )
        return iter(items)

    async def aopen(self) -> Any:
        """Start the source, and return the async iterator of its items."""
        items = self._start()
        if hasattr(items, "__await__"):
            items = await items
        refuse_source(
            items, "__aiter__", "arecover_stream is for async iterables, recover_stream for plain ones"
        )
        return aiter(items)

    def _start(self) -> Any:
        flow = self.flow
        try:
            return flow.call(*flow.args, **flow.kwargs)
        except TypeError as error:
            refuse_misuse(flow.call, flow.args, flow.kwargs, error)
            raise

    def hand_out(self) -> None:
        """Count an item that the reader gets now."""
        self.delivered += 1
        self.at_reader = True

    def run(self, scope: Scope | None, call: Callable[..., object], *args: object) -> Any:
        """Call a part of the source in the attempt's scope. The code that gets the items runs outside it."""
        before, began = SCOPE.get(), CLOCK.now()
        SCOPE.set(self._limited(scope, began))
        try:
            return call(*args)
        finally:
            SCOPE.set(before)
            if self.timeout is not None and CLOCK.now() - began > self.timeout:
                log_late_call(self.flow.call, self.timeout)

    async def arun(self, scope: Scope | None, call: Callable[..., Any], *args: object) -> Any:
        """The same as `run`, for async code."""
        before = SCOPE.get()
        SCOPE.set(self._limited(scope, CLOCK.now()))
        try:
            if self.timeout is None:
                return await call(*args)
            return await within(self.timeout, call(*args))
        finally:
            SCOPE.set(before)

    def _limited(self, scope: Scope | None, now: float) -> Scope | None:
        """Return the scope of the next item: that of the attempt, with the time-out of the item."""
        scope = SCOPE.get() if scope is None else scope
        if self.timeout is None:
            return scope
        until = now + self.timeout
        if scope is None:
            return Scope(self.flow.stepper.operation, until)
        return replace(scope, until=until if scope.until is None else min(until, scope.until))

    def failed(self, error: BaseException) -> Any:
        """
        Give the flow an exception of the source and return its next step. One of the reader is raised as it is.

        Raises:
            FaultError: recovery gives up.

        """
        if self.at_reader:
            self.steps.close()
            raise error
        bound = self.delivered > 0 if self.bound is None else self.bound()
        if isinstance(error, Exception) and bound:
            # No further attempt is made, and no hook runs that could lead to one.
            self.flow.bound = "delivered" if self.delivered else "attempts"
            self.flow.plan = replace(self.flow.plan, verify=None, refresh=None)
        try:
            return self.steps.throw(error)
        except Exception as final:
            self._add_delivered(final)
            raise

    def _add_delivered(self, error: Exception) -> None:
        """Write on the final error how many items were delivered."""
        if not self.delivered:
            return
        if isinstance(error, FaultError) or hasattr(error, "fault"):
            error.delivered = self.delivered  # type: ignore[attr-defined]
        error.add_note(f"{self.delivered} items were delivered before the failure")


def _close(items: object) -> None:
    """Close a source. An error of that is logged: it must not hide why the source ended, nor start it again."""
    close = getattr(items, "close", None)
    if close is None:
        return
    try:
        close()
    except Exception as error:  # noqa: BLE001 - the source may raise anything
        log_close_failed(error)


async def _aclose(items: object) -> None:
    """The same as `_close`, for async code: a generator has `aclose`, the streams of LLM clients have `close`."""
    close = getattr(items, "aclose", None) or getattr(items, "close", None)
    if close is None:
        return
    try:
        closing = close()
        if hasattr(closing, "__await__"):
            await closing
    except Exception as error:  # noqa: BLE001 - the source may raise anything
        log_close_failed(error)
