"""
Recovery around a block of code:

    for attempt in attempts(operation=Operation(name="fetch", read_only=True)):
        with attempt:
            page = fetch()

The block runs again while that can help. What comes of it is the block's own business, so there is no fallback and no
verify here; `return` and `break` from a block that worked are fine.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from types import TracebackType
from typing import Any, Self

from amends.core.operation import Operation
from amends.core.policy import Policy
from amends.recovery.history import Attempt
from amends.recovery.operation_flow import Flow
from amends.recovery.perform import aperform, perform
from amends.recovery.plan import Hook, plan_for
from amends.recovery.scope import SCOPE, Scope
from amends.recovery.steps import Send, Step, Steps
from amends.recovery.upstream import Upstream
from amends.recovery.waiter import TaskWaiter, ThreadWaiter

__all__ = ["Attempts", "Try", "attempts"]


class Try:
    """One run of the block. `number` is 1-based."""

    __slots__ = ("_before", "_flow", "_scope", "_steps", "next", "number", "over")

    def __init__(self, number: int, flow: Flow, steps: Steps, scope: Scope | None) -> None:
        self.number = number
        self.over = False
        """Whether the block has ended."""
        self.next: Step | None = None
        """What is to be done before the next run; None when there will be none."""
        self._flow = flow
        self._steps = steps
        self._scope = scope
        self._before: Scope | None = None

    @property
    def history(self) -> tuple[Attempt, ...]:
        """The runs before this one; with this one when it is over."""
        return self._flow.stepper.history

    @property
    def operation(self) -> Operation:
        """The operation, with the key that all its runs share."""
        return self._flow.stepper.operation

    def __enter__(self) -> Self:
        if self._scope is not None:
            self._before = SCOPE.get()
            SCOPE.set(self._scope)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        """Decide. What recovery must not touch passes through; what it gives up on is raised from here."""
        if self._scope is not None:
            SCOPE.set(self._before)
        self.over, again = True, True
        try:
            self.next = self._steps.send(None) if error is None else self._steps.throw(error)
        except StopIteration:
            again = False
        return again


class Attempts:
    """The runs of one block, for `for` and `async for`. Made anew for each operation."""

    def __init__(self, **options: Any) -> None:
        self._options = options

    def __iter__(self) -> Iterator[Try]:
        flow = self._flow(ThreadWaiter)
        steps = flow.run()
        step: Step | None = next(steps)
        while step is not None:
            if isinstance(step, Send):
                attempt = Try(flow.stepper.state.attempt + 1, flow, steps, step.scope)
                yield attempt
                step = _after(attempt)
                continue
            try:
                value = perform(step)
            except BaseException as exc:  # noqa: BLE001 - the flow cleans up and lets pass what is not its business
                step = steps.throw(exc)
            else:
                step = steps.send(value)

    async def __aiter__(self) -> AsyncIterator[Try]:
        flow = self._flow(TaskWaiter)
        steps = flow.run()
        step: Step | None = next(steps)
        while step is not None:
            if isinstance(step, Send):
                attempt = Try(flow.stepper.state.attempt + 1, flow, steps, step.scope)
                yield attempt
                step = _after(attempt)
                continue
            try:
                value = await aperform(step)
            except BaseException as exc:  # noqa: BLE001 - the flow cleans up and lets pass what is not its business
                step = steps.throw(exc)
            else:
                step = steps.send(value)

    def _flow(self, new_waiter: Any) -> Flow:
        options = dict(self._options)
        history = options.pop("history")
        return Flow(plan_for(**options), _the_block, (), {}, new_waiter, history)


def attempts(
    *,
    policy: Policy | None = None,
    upstream: Upstream | None = None,
    operation: Operation | None = None,
    refresh: Hook | None = None,
    setup: Hook | None = None,
    history: list[Attempt] | None = None,
) -> Attempts:
    """
    The runs of a block, each to be entered with `with`. The arguments are those of `recover`.

    Raises:
        FaultError: from the block's `with`, or from the loop where hooks ran in between.

    """
    return Attempts(
        policy=policy, upstream=upstream, operation=operation, refresh=refresh, setup=setup, history=history
    )


def _the_block() -> None:
    """Stands for the block in the flow; nobody calls it."""


def _after(attempt: Try) -> Step | None:
    if not attempt.over:
        raise RuntimeError("each attempt has to be entered: `with attempt:`")
    return attempt.next
