"""The context of an attempt: identifies the attempt, and gives the capability access to its task."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass, field
from datetime import timedelta
from inspect import isawaitable
from typing import Any, Protocol, TypeVar
from uuid import uuid4

from amends.effects.steps import StepJournal, Steps
from amends.errors.task import AgentNotFoundError
from amends.stores.contract import Transaction
from amends.stores.errors import UnsupportedError

__all__ = ["Context", "Interruption", "Question", "Suspended", "TaskServices", "is_made_by_undo"]

T = TypeVar("T")

_UNDO = "undo:"


class Interruption(BaseException):
    """
    Ends an attempt that cannot go on yet.

    A BaseException, like CancelledError, so that an `except Exception` in a capability does not catch it.
    """


class Suspended(Interruption):
    """Raised by `Context.delegate` when the delegation has to be verified or needs an answer first; the log says so."""


class Question(Interruption):
    """Raised by `Context.ask` when there is no answer yet."""

    def __init__(self, question: str, schema: dict[str, object] | None = None) -> None:
        super().__init__(question, schema)
        self.question, self.schema = question, schema


class TaskServices(Protocol):
    """What a context uses of its task: implemented by `amends.tasks.attempts.Attempts`."""

    async def once(self, ctx: Context, name: str, work: Callable[[Transaction], T]) -> T:
        """See `Context.once`."""

    async def delegate(self, ctx: Context, type: str, payload: object, agent: str | None) -> object:
        """See `Context.delegate`."""

    def steps(self, ctx: Context) -> StepJournal:
        """Return where the durable steps of an attempt are stored."""


@dataclass(slots=True, kw_only=True, eq=False)
class Context:
    """
    The second argument of a capability: which attempt of which step this is, and what it can ask of its task.

        @trains.capability(keyed=True)
        async def book(train: int, ctx: Context) -> str:
            seat = ctx.ask("Which seat?", {"type": "string"})
            return await api.book(train, seat, idempotency_key=ctx.key, timeout=ctx.time_left)

    A test of a capability can make one:

    >>> Context(task="t-1", agent="trains", capability="book", answers=["12A"]).ask("Which seat?")
    '12A'
    """

    task: str
    agent: str
    capability: str
    step_name: str = ""
    """The name of the step of the task."""
    attempt: int = 1
    """The number of this attempt, from 1."""
    key: str = ""
    """The same for every attempt of this step, also after a crash. Pass it on as the idempotency key."""
    undo: bool = False
    """Whether this attempt undoes the step."""
    mcp: Mapping[str, Any] = field(default_factory=dict, init=False)
    """The connected MCP servers that the capability requires."""
    answers: list[object] = field(default_factory=list)
    """The answers to the questions asked so far, in order; `ask` returns them."""
    called: bool = field(default=False, init=False)
    """Whether the function of the capability was called in this attempt."""
    services: TaskServices | None = field(default=None, repr=False)
    """What `once` and `delegate` use; None if the attempt belongs to no task of an orchestrator."""
    until: float | None = None
    """The task's deadline by `clock`; None without one."""
    clock: Callable[[], float] = field(default=time.time, repr=False)
    calls: tuple[tuple[str, str, object], ...] = field(default=(), init=False, repr=False)
    """The agent, the capability and the payload of this call and of those that delegated it."""
    verifying: bool = field(default=False, init=False, repr=False)
    """Whether this attempt only checks whether the step happened."""
    _asked: int = field(default=0, init=False, repr=False)
    _delegated: dict[str, int] = field(default_factory=dict, init=False, repr=False)
    _steps: Steps | None = field(default=None, init=False, repr=False)

    @property
    def time_left(self) -> float | None:
        """Seconds until the task's deadline; None without one."""
        return None if self.until is None else max(0.0, self.until - self.clock())

    async def once(self, work: Callable[[Transaction], T], name: str = "effect") -> T:
        """
        Run `work` in a transaction of the store, together with the record that it ran, and return its result.

        The effect happens once, however often this step is attempted and whenever a process crashes. A later attempt gets
        the recorded result as it reads back from JSON.

        Args:
            work: a short function; everything it changes goes through its argument (`tx.sql`, `tx.table`, …).
            name: distinguishes several effects of one step.

        Raises:
            UnsupportedError: the store has no transactions (NATS), or the attempt has no store.
        """
        if self.services is None:
            raise UnsupportedError("ctx.once needs a store's transaction: submit the task to an Orchestrator")
        return await self.services.once(self, name, work)

    @property
    def steps(self) -> Steps:
        """The durable steps of this attempt. Raises UnsupportedError if it has no store."""
        return self.get_steps()

    def get_steps(self) -> Steps:
        """
        Return the durable steps of this attempt.

        Raises:
            UnsupportedError: the attempt has no store.

        """
        if self._steps is None:
            if self.services is None:
                raise UnsupportedError("ctx.step needs a store: submit the task to an Orchestrator")
            self._steps = Steps(self.services.steps(self))
        return self._steps

    async def step(
        self,
        name: str,
        function: Callable[..., Any],
        *args: Any,
        key: str | int | None = None,
        repeat: bool = False,
        verify: Callable[..., Any] | None = None,
        timeout: float | timedelta | None = None,  # noqa: ASYNC109 - it cancels nothing
        retry: int = 1,
    ) -> Any:
        """
        Call a function once, however often this step of the task is attempted, and return its result as it reads back from JSON.

            receipt = await ctx.step("charge", charge, order, key=order["id"], verify=find_charge)

        The same as `amends.arcp.Context.step`, for coroutine functions of agents. Declare the capability `idempotent=True` if all
        that must not happen twice is in such steps: after a lost worker it is attempted again, and ended steps are not called. If
        it is not known whether one happened, the task waits with `input_required`, and `amends tasks verify` answers.

        Args:
            name: the step. Several with one name are told apart by `key`, or by their order.
            function: called with `args`; a coroutine function, or a plain one that does not block.
            args: the arguments, whose digest is stored.
            key: tells this step from others with its name, in any order.
            repeat: whether it may be called again if the worker was lost during the call.
            verify: called with `args` if it is not known whether the call happened: the result or True, False, or None.
            timeout: seconds in which the call can have its effect; 60 without it.
            retry: how often it is tried if it failed without effect and may succeed later.

        Raises:
            ReplayMismatchError: an earlier attempt called this step with other arguments. Nothing was called.
            UnsupportedError: the attempt has no store.

        """
        if self.verifying:
            result = function(*args)
            return await result if isawaitable(result) else result
        return await self.steps.run(
            name, function, args, key=key, repeat=repeat, verify=verify, timeout=timeout, retry=retry
        )

    async def now(self) -> float:
        """Return the time in seconds since 1970; the same in every attempt of this step."""
        return await self.steps.now()

    async def random(self) -> float:
        """Return a random number from 0 to 1; the same in every attempt of this step."""
        return await self.steps.random()

    async def uuid(self) -> str:
        """Return a random UUID; the same in every attempt of this step."""
        return await self.steps.uuid()

    async def delegate(self, type: str, payload: object = None, *, agent: str | None = None) -> Any:
        """
        Call a capability of another agent, with recovery, and return its result.

        The delegation runs once: a later attempt of this step gets the recorded result, provided that it makes the same
        delegations in the same order.

        Raises:
            FaultError: DELEGATION_FAILED, with the cause in `.fault.errors` and in its details.
        """
        if self.services is None:
            raise AgentNotFoundError(details={"capability": type})
        return await self.services.delegate(self, type, payload, agent)

    def ask(self, question: str, schema: dict[str, object] | None = None) -> Any:
        """
        Return the answer to a question to the user or program that submitted the task.

        If there is no answer yet, the task waits with status `input_required`. When the answer comes, this step starts again
        from its beginning.

        Args:
            question: the question, for a person.
            schema: the JSON Schema of the answer. An answer that does not fit it is refused.
        """
        self._asked += 1
        if len(self.answers) < self._asked:
            raise Question(question, schema)
        return self.answers[self._asked - 1]

    def child_name(self, agent: str, type: str) -> str:
        """The name of the next delegation of this kind."""
        what = f"{_UNDO if self.undo else ''}{agent}/{type}".replace(">", "_")
        if self.verifying:
            return f"{self.step_name}>{what}?{uuid4().hex}"  # each check is made again: its outcome may have changed
        self._delegated[what] = count = self._delegated.get(what, 0) + 1
        return f"{self.step_name}>{what}#{count}"

    def begin_again(self) -> None:
        """Count questions, delegations and steps from the first one again, because the capability is called again."""
        self._asked, self._steps = 0, None
        self._delegated.clear()

    def for_verify(self) -> Context:
        """The context for `verify`, whose delegations are made again by each check."""
        made = copy(self)
        made.verifying = True
        return made


def is_made_by_undo(delegation: str) -> bool:
    """Whether the name is that of a delegation that was made by an undo, which is not undone itself."""
    return f">{_UNDO}" in delegation
