"""One job, in the hands of whoever submitted it or watches it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable
from typing import TYPE_CHECKING, Any

from amends.arcp.client.events import Event
from amends.arcp.client.job import Job
from amends.arcp.wire import messages as m

if TYPE_CHECKING:
    from amends.arcp.client.client import Client

__all__ = ["Handle"]


class Handle:
    """
    A job.

    `await handle.done` gives its result or raises what it failed with; as often as you like, from as many tasks.
    """

    __slots__ = ("_client", "_job", "accepted")

    def __init__(self, client: Client, job: Job, accepted: m.Accepted) -> None:
        self._client = client
        self._job = job
        self.accepted = accepted
        """What the runtime granted: agent and version, lease, budget, credentials."""

    @property
    def job_id(self) -> str:
        """The job's id."""
        return self._job.job_id

    @property
    def done(self) -> Awaitable[Any]:
        """
        The job's result, or its failure raised (R5): job.error, a time-out, a cancellation, a lost session.

        A result that came in chunks is text, or bytes where one chunk was bytes.
        """
        return self._job.outcome

    @property
    def finished(self) -> bool:
        """Whether `done` has something to say already."""
        return self._job.outcome.finished

    @property
    def agent(self) -> str | None:
        """The agent as resolved: `name@version`."""
        return self.accepted.agent

    @property
    def lease(self) -> dict[str, Any]:
        """What the job may do."""
        return self.accepted.lease or {}

    @property
    def credentials(self) -> list[dict[str, Any]]:
        """
        The job's credentials (9.8), each with its newest value: the runtime may replace them while the job runs.

        Secrets, worth nothing once the job has ended: not for a log, and not to be kept.
        """
        newest = self._job.rotated
        return [
            {**credential, "value": newest[credential["id"]]}
            if credential.get("id") in newest
            else dict(credential)
            for credential in self.accepted.credentials or ()
        ]

    @property
    def trace_id(self) -> str | None:
        """The trace the job belongs to."""
        return self._job.trace_id

    @property
    def run(self) -> int:
        """Which run of the job this is: more than 1 when a key was used again after a retryable failure."""
        return self._job.run

    @property
    def summary(self) -> str | None:
        """What the runtime said about a result, beside it."""
        return self._job.result.summary if self._job.result is not None else None

    @property
    def missed(self) -> int:
        """Events that came while nobody iterated and are no longer kept."""
        return self._job.events.missed

    async def events(self) -> AsyncIterator[Event]:
        """
        The job's events, from the first that is kept, until its end. Every call begins anew.

        Raises:
            InternalError: when events came faster than they were read; its details say how many were missed.

        """
        async for event in self._job.events.read():
            yield event

    async def cancel(self, reason: str | None = None) -> None:
        """
        Ask the runtime to cancel the job, and wait until it says that it does. The end itself is `done`'s.

        A job that has ended already is left alone.

        Raises:
            FaultError: when it may not be cancelled from here, or nobody answers.

        """
        await self._client._cancel(self._job, reason)  # noqa: SLF001 - same family

    def __repr__(self) -> str:
        state = "finished" if self.finished else "running"
        return f"<Handle {self.job_id} {self.agent or ''} {state}>"
