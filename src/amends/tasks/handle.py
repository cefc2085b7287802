"""One task in its submitter's hands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from amends.errors.base import FaultError
from amends.errors.task import InvalidFieldValueError
from amends.tasks.documents import Response

if TYPE_CHECKING:
    from amends.tasks.orchestrator import Orchestrator

__all__ = ["Handle"]


class Handle:
    """One task, wherever it is worked on."""

    def __init__(self, orchestrator: Orchestrator, id: str) -> None:
        self._orchestrator = orchestrator
        self.id = id

    def __repr__(self) -> str:
        return f"Handle({self.id!r})"

    async def wait(self) -> Response:
        """The response, when the task is over or needs an answer. Cancelling the wait does not cancel the task."""
        return (await self._orchestrator.wait(self.id)).response()

    async def response(self) -> Response:
        """The response as of now."""
        return (await self._orchestrator.state(self.id)).response()

    async def result(self) -> Any:
        """
        The result.

        Raises:
            FaultError: why there is none; TimeoutError and its like by their own classes.
        """
        response = await self.wait()
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
