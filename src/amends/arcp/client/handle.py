"""The handle of one job, for the caller that submitted it or subscribed to it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from amends.arcp.client.events import Event
from amends.arcp.client.job import Job
from amends.arcp.wire import messages as m

__all__ = ["Handle"]


@dataclass(slots=True, eq=False, repr=False)
class Handle:
    """
    A job that was submitted or subscribed to.

    `await handle.done` returns its result or raises its failure, any number of times and from any number of tasks.

        async for event in handle.events():
            print(event.kind, event.body)
        result = await handle.done
    """

    _cancel: Callable[[Job, str | None], Awaitable[None]]
    _job: Job
    accepted: m.Accepted
    """What the runtime granted: agent and version, lease, budget and credentials."""

    @property
    def job_id(self) -> str:
        """The job's id."""
        return self._job.job_id

    @property
    def done(self) -> Awaitable[Any]:
        """
        The job's result; raises its failure (R5): job.error, a timeout, a cancellation, a lost session.

        A result that came in chunks is text, or bytes if one of its chunks was bytes.
        """
        return self._job.outcome

    def signed_for(self, calls: list[str | None]) -> None:
        """Note the ids of the submissions that the job may be signed for (`amends.foreign.trust`); the client calls it."""
        self._job.outcome.calls = calls

    @property
    def finished(self) -> bool:
        """Whether the job has ended."""
        return self._job.outcome.finished

    @property
    def agent(self) -> str | None:
        """The agent as resolved by the runtime: `name@version`."""
        return self.accepted.agent

    @property
    def lease(self) -> Mapping[str, Any]:
        """What the job may do."""
        return self.accepted.lease or {}

    @property
    def credentials(self) -> list[dict[str, Any]]:
        """
        The job's credentials (9.8), each with its newest value: the runtime may replace them while the job runs.

        They are secrets, and invalid after the job has ended: do not log or store them.
        """
        credentials = [dict(credential) for credential in self.accepted.credentials or ()]
        for credential in credentials:
            newest = self._job.rotated.get(str(credential.get("id")))
            if newest is not None:
                credential["value"] = newest
        return credentials

    @property
    def trace_id(self) -> str | None:
        """The trace that the job belongs to."""
        return self._job.trace_id

    @property
    def run(self) -> int:
        """The run of the job: more than 1 if the key was used again after a retryable failure."""
        return self._job.run

    @property
    def summary(self) -> str | None:
        """The runtime's summary of the result, if it sent one."""
        return self._job.result.summary if self._job.result is not None else None

    @property
    def missed(self) -> int:
        """The number of events that were removed from the buffer while no iterator read them."""
        return self._job.events.missed

    async def events(self) -> AsyncIterator[Event]:
        """
        Iterate over the job's events, from the first one kept until the end. Every call starts again.

        Raises:
            InternalError: events arrived faster than they were read; its details contain how many were missed.

        """
        async for event in self._job.events.read():
            yield event

    async def cancel(self, reason: str | None = None) -> None:
        """
        Ask the runtime to cancel the job, and wait for its confirmation. `done` raises when the job has ended.

        Does nothing if the job has already ended.

        Raises:
            FaultError: this session may not cancel it, or the runtime does not answer.

        """
        await self._cancel(self._job, reason)

    def __repr__(self) -> str:
        state = "finished" if self.finished else "running"
        return f"<Handle {self.job_id} {self.agent or ''} {state}>"
