"""
`attempts`: recovery around a block of code.

    for attempt in attempts(operation=Operation(name="fetch", read_only=True)):
        with attempt:
            page = fetch()

The block runs again while that can help. The loop does not know the block's result, so there is no fallback and no
verify. `return` and `break` from a block that succeeded are allowed.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from amends.core.operation import Operation
from amends.core.policy import Policy
from amends.core.wrong_calls import explains_wrong_calls
from amends.recovery.async_library import BlockLimit, ThreadWaiter, new_task_waiter
from amends.recovery.classify import On
from amends.recovery.clock import CLOCK
from amends.recovery.drivers import aadvance, advance
from amends.recovery.events import EventHook, log_late_call
from amends.recovery.failover import Failover
from amends.recovery.history import Attempt
from amends.recovery.operation_flow import Flow
from amends.recovery.plan import Hook, Options, Raises, plan_for
from amends.recovery.scope import SCOPE, Scope
from amends.recovery.steps import Finish, Send, Step, Steps
from amends.recovery.upstream import Upstream

if TYPE_CHECKING:
    from datetime import timedelta

__all__ = ["Attempts", "Try", "attempts"]


class Try:
    """
    One run of the block. `number` starts at 1.

    It is what the loop over `attempts` yields. Enter it with `with`, so that it sees the exceptions of the block.

    >>> for attempt in attempts(read_only=True):
    ...     with attempt:
    ...         page = "page 1"
    >>> [each.number for each in attempt.history]
    [1]
    """

    __slots__ = ("_before", "_flow", "_limit", "_next", "_scope", "_sent", "_steps", "number")

    def __init__(self, flow: Flow, steps: Steps, step: Send, *, limited: bool) -> None:
        """
        Args:
            flow: the operation.
            steps: its steps.
            step: the step that this run performs.
            limited: whether the block runs on an event loop, where it can be cancelled when its time is over.

        """
        self.number = flow.stepper.state.attempt + 1
        self._flow = flow
        self._steps = steps
        self._scope = step.scope
        self._limit = None if step.timeout is None or not limited else BlockLimit(step.timeout)
        self._sent = 0.0
        self._before: Scope | None = None
        self._next: Step | None = None

    @property
    def history(self) -> tuple[Attempt, ...]:
        """The runs before this one, and this one after it has ended."""
        return self._flow.stepper.history

    @property
    def operation(self) -> Operation:
        """The operation, with the key that all its runs share."""
        return self._flow.stepper.operation

    def __enter__(self) -> Self:
        if self._scope is not None:
            self._before = SCOPE.get()
            SCOPE.set(self._scope)
        self._sent = CLOCK.now()
        if self._limit is not None:
            self._limit.enter()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        """Decide about an exception of the block: suppress it if the block runs again, else raise the final error."""
        if self._limit is not None:
            error = self._limit.leave(error)
        if self._scope is not None:
            SCOPE.set(self._before)
        timeout = self._flow.plan.timeout
        if timeout is not None and self._limit is None and CLOCK.now() - self._sent > timeout:
            log_late_call(_block, timeout)
        self._next = self._steps.send(None) if error is None else self._steps.throw(error)
        return error is not None

    def next_step(self) -> Step:
        """
        Return the step that follows this run.

        Raises:
            RuntimeError: if the block was not entered with `with`.

        """
        if self._next is None:
            raise RuntimeError("each attempt has to be entered: `with attempt:`")
        return self._next


class Attempts:
    """
    The runs of one block, for `for` and `async for`. Each loop is a new operation.

    `attempts` returns it.

    >>> for attempt in attempts(read_only=True):
    ...     with attempt:
    ...         print("run", attempt.number)
    run 1
    """

    def __init__(
        self, *, history: list[Attempt] | None, options: Options | None = None, **named: Any
    ) -> None:
        self._history = history
        self._options, self._named = options, named

    def __iter__(self) -> Iterator[Try]:
        flow = Flow(plan_for(self._options, **self._named), _block, (), {}, ThreadWaiter, self._history)
        steps = flow.steps()
        step = next(steps)
        while not isinstance(step, Finish):
            if isinstance(step, Send):
                attempt = Try(flow, steps, step, limited=False)
                yield attempt
                step = attempt.next_step()
            else:
                step = advance(steps, step)

    async def __aiter__(self) -> AsyncIterator[Try]:
        flow = Flow(plan_for(self._options, **self._named), _block, (), {}, new_task_waiter, self._history)
        steps = flow.steps()
        step = next(steps)
        while not isinstance(step, Finish):
            if isinstance(step, Send):
                attempt = Try(flow, steps, step, limited=True)
                yield attempt
                step = attempt.next_step()
            else:
                step = await aadvance(steps, step)


@explains_wrong_calls
def attempts(
    *,
    on: On | None = None,
    timeout: float | timedelta | None = None,
    read_only: bool = False,
    raises: Raises = "fault",
    policy: Policy | None = None,
    upstream: Upstream | Failover | None = None,
    operation: Operation | None = None,
    refresh: Hook | None = None,
    setup: Hook | None = None,
    on_event: EventHook | None = None,
    history: list[Attempt] | None = None,
    options: Options | None = None,
) -> Attempts:
    """
    Return the runs of a block, each to be entered with `with`. The arguments are those of `recover`.

    With `timeout`, a run of the block in `async for` is cancelled when its time is over. A thread cannot be stopped: in `for`
    the block sees the limit as `amends.recovery.time_left()`.

    Use it where the code to repeat is a block and not a function.

    >>> from amends.testing import FakeClock, Script
    >>> fetch = Script(ConnectionError(), "page 1")
    >>> with FakeClock():
    ...     for attempt in attempts(read_only=True):
    ...         with attempt:
    ...             page = fetch()
    >>> page, attempt.number
    ('page 1', 2)

    Raises:
        FaultError: from the block's `with`, or from the loop if hooks ran between two runs.

    """
    return Attempts(
        on=on,
        timeout=timeout,
        read_only=read_only,
        raises=raises,
        policy=policy,
        upstream=upstream,
        operation=operation,
        refresh=refresh,
        setup=setup,
        on_event=on_event,
        history=history,
        options=options,
    )


def _block() -> None:
    """Take the place of the call in the flow. The loop runs the block instead of calling this."""
