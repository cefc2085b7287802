"""What a capability is given beside its input: who it is in the log, and what it may ask for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeVar

from amends.errors.task import AgentNotFoundError
from amends.stores.contract import Transaction
from amends.stores.errors import UnsupportedError

__all__ = ["Context", "Desk", "Question"]

T = TypeVar("T")


class Question(BaseException):
    """
    A capability cannot go on without an answer.

    A BaseException, like cancellation: `except Exception` around a call must not swallow it.
    """

    def __init__(self, question: str, schema: dict[str, Any] | None = None) -> None:
        super().__init__(question, schema)
        self.question, self.schema = question, schema


class Desk(Protocol):
    """Whoever keeps the log of the task a context belongs to."""

    async def once(self, ctx: Context, name: str, work: Callable[[Transaction], T]) -> T:
        """See `Context.once`."""
        ...

    async def delegate(self, ctx: Context, type: str, payload: Any, agent: str | None) -> Any:
        """See `Context.delegate`."""
        ...


class Context:
    """What a capability is given beside its input: which try of which step this is, and what it may ask of its task."""

    __slots__ = (
        "_asked",
        "_delegated",
        "_desk",
        "_time_left",
        "agent",
        "answers",
        "attempt",
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
        answers: list[Any] | None = None,
        desk: Desk | None = None,
        time_left: Callable[[], float | None] = lambda: None,
    ) -> None:
        self.task, self.step, self.agent, self.capability = task, step, agent, capability
        self.attempt = attempt
        """Which try this is, from 1."""
        self.key = key
        """The same for every try of this step, also after a crash: hand it on as the idempotency key."""
        self.undo = undo
        """Whether this is the undoing of the step."""
        self.mcp: Mapping[str, Any] = {}
        """The connected MCP servers the capability requires."""
        self.answers = answers or []
        """What was answered so far, in order; `ask` hands these out."""
        self._asked = 0
        self._delegated: dict[str, int] = {}
        self._desk = desk
        self._time_left = time_left

    @property
    def time_left(self) -> float | None:
        """Seconds until the task's deadline; None without one."""
        return self._time_left()

    async def once(self, work: Callable[[Transaction], T], name: str = "effect") -> T:
        """
        One effect, however often this step is tried, and whoever crashes when: `work` runs in the store's transaction
        together with the record that it ran. A later try gets what it returned, as JSON gives it back.

        Args:
            work: a plain short function; whatever it changes goes through its argument (`tx.sql`, `tx.table`, …).
            name: tells the effects of one step apart.

        Raises:
            UnsupportedError: the store has no transactions (NATS), or there is none.
        """
        if self._desk is None:
            raise UnsupportedError("an effect shares a store's transaction: hand the task to an Orchestrator")
        return await self._desk.once(self, name, work)

    async def delegate(self, type: str, payload: Any = None, *, agent: str | None = None) -> Any:
        """
        Have another agent do something, with recovery, and return its result. Done once: a later try of this step
        gets the recorded result, as long as it asks for the same things in the same order.

        Raises:
            FaultError: DELEGATION_FAILED, with the cause in `.fault.errors` and in its details.
        """
        if self._desk is None:
            raise AgentNotFoundError(details={"capability": type})
        return await self._desk.delegate(self, type, payload, agent)

    def ask(self, question: str, schema: dict[str, Any] | None = None) -> Any:
        """
        The answer of whoever wants this done. Without one the task waits as `input_required`, for as long as it
        takes, and this step begins anew when there is one.

        Args:
            question: for a person.
            schema: JSON Schema of the answer, for a program.
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
