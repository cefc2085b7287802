"""The context of an attempt: identifies the attempt, and gives the capability access to its task."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeVar

from amends.errors.task import AgentNotFoundError
from amends.stores.contract import Transaction
from amends.stores.errors import UnsupportedError

__all__ = ["Context", "InDoubt", "Interruption", "Question", "TaskServices"]

T = TypeVar("T")


class Interruption(BaseException):
    """
    Ends an attempt that cannot go on yet.

    A BaseException, like CancelledError, so that an `except Exception` in a capability does not catch it.
    """


class InDoubt(Interruption):
    """Raised by `Context.delegate` when it is unknown whether the delegation happened: it has to be verified first."""


class Question(Interruption):
    """Raised by `Context.ask` when there is no answer yet."""

    def __init__(self, question: str, schema: dict[str, object] | None = None) -> None:
        super().__init__(question, schema)
        self.question, self.schema = question, schema


class TaskServices(Protocol):
    """What a context uses of its task: implemented by `amends.tasks.attempts.Attempts`."""

    async def once(self, ctx: Context, name: str, work: Callable[[Transaction], T]) -> T:
        """See `Context.once`."""
        ...

    async def delegate(self, ctx: Context, type: str, payload: object, agent: str | None) -> object:
        """See `Context.delegate`."""
        ...


class Context:
    """The second argument of a capability: which attempt of which step this is, and what it can ask of its task."""

    __slots__ = (
        "_asked",
        "_delegated",
        "_services",
        "_time_left",
        "agent",
        "answers",
        "attempt",
        "called",
        "capability",
        "key",
        "mcp",
        "step",
        "task",
        "undo",
    )

    def __init__(
        self,
        *,
        task: str,
        agent: str,
        capability: str,
        step: str = "",
        attempt: int = 1,
        key: str = "",
        undo: bool = False,
        answers: list[object] | None = None,
        services: TaskServices | None = None,
        time_left: Callable[[], float | None] = lambda: None,
    ) -> None:
        self.task, self.step, self.agent, self.capability = task, step, agent, capability
        self.attempt = attempt
        """The number of this attempt, from 1."""
        self.key = key
        """The same for every attempt of this step, also after a crash. Pass it on as the idempotency key."""
        self.undo = undo
        """Whether this attempt undoes the step."""
        self.mcp: Mapping[str, Any] = {}
        """The connected MCP servers that the capability requires."""
        self.answers = answers or []
        """The answers to the questions asked so far, in order; `ask` returns them."""
        self.called = False
        """Whether the function of the capability was called in this attempt."""
        self._asked = 0
        self._delegated: dict[str, int] = {}
        self._services = services
        self._time_left = time_left

    @property
    def time_left(self) -> float | None:
        """Seconds until the task's deadline; None without one."""
        return self._time_left()

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
        if self._services is None:
            raise UnsupportedError("ctx.once needs a store's transaction: submit the task to an Orchestrator")
        return await self._services.once(self, name, work)

    async def delegate(self, type: str, payload: object = None, *, agent: str | None = None) -> Any:
        """
        Call a capability of another agent, with recovery, and return its result.

        The delegation runs once: a later attempt of this step gets the recorded result, provided that it makes the same
        delegations in the same order.

        Raises:
            FaultError: DELEGATION_FAILED, with the cause in `.fault.errors` and in its details.
        """
        if self._services is None:
            raise AgentNotFoundError(details={"capability": type})
        return await self._services.delegate(self, type, payload, agent)

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
        what = f"{agent}/{type}"
        self._delegated[what] = count = self._delegated.get(what, 0) + 1
        return f"{self.step}>{what}#{count}"
