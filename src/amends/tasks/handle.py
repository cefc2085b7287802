"""A handle of one task, to wait for it and to send it commands."""

from __future__ import annotations

from typing import Any, Protocol

from amends.errors.base import FaultError
from amends.errors.task import InvalidFieldValueError
from amends.tasks.documents import Response
from amends.tasks.state import TaskState

__all__ = ["Handle", "TaskCommands"]


class TaskCommands(Protocol):
    """What a handle uses of an orchestrator."""

    async def wait(self, id: str, *, timeout: float | None = None) -> TaskState:  # noqa: ASYNC109
        """See `Orchestrator.wait`."""
        ...

    async def state(self, id: str) -> TaskState:
        """See `Orchestrator.state`."""
        ...

    async def cancel(self, id: str) -> Response:
        """See `Orchestrator.cancel`."""
        ...

    async def answer(self, id: str, answer: Any, *, step: str | None = None) -> Response:
        """See `Orchestrator.answer`."""
        ...


class Handle:
    """One task, whichever process works on it."""

    def __init__(self, orchestrator: TaskCommands, id: str) -> None:
        self._orchestrator = orchestrator
        self.id = id

    def __repr__(self) -> str:
        return f"Handle({self.id!r})"

    async def wait(self, *, timeout: float | None = None) -> Response:  # noqa: ASYNC109
        """
        Wait until the task is over or needs an answer, and return its response. Cancelling the wait does not cancel the task.

        Raises:
            WaitTimeoutError: the task is not over after `timeout` seconds. It goes on.
        """
        return (await self._orchestrator.wait(self.id, timeout=timeout)).response()

    async def response(self) -> Response:
        """The current response, without waiting."""
        return (await self._orchestrator.state(self.id)).response()

    async def result(self, *, timeout: float | None = None) -> Any:  # noqa: ASYNC109
        """
        Wait for the task and return its result.

        Raises:
            WaitTimeoutError: the task is not over after `timeout` seconds. It goes on.
            FaultError: the task failed; the class is the one of the error's code. INVALID_FIELD_VALUE if it was cancelled
                or needs an answer.
        """
        response = await self.wait(timeout=timeout)
        if response.error is not None:
            raise FaultError.from_fault(response.error)
        if not response.ok:
            raise InvalidFieldValueError(f"The task is {response.status}", details={"name": "status"})
        return response.result

    async def cancel(self) -> Response:
        """See `Orchestrator.cancel`."""
        return await self._orchestrator.cancel(self.id)

    async def answer(self, answer: Any, *, step: str | None = None) -> Response:
        """See `Orchestrator.answer`."""
        return await self._orchestrator.answer(self.id, answer, step=step)
