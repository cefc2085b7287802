"""What comes in over a session: events and ends for its jobs, answers for whoever asked."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from amends.arcp.client.handle import Handle
from amends.arcp.client.job import Job
from amends.arcp.client.pending_requests import Requests
from amends.arcp.client.session_faults import received
from amends.arcp.client.settings import Settings
from amends.arcp.wire import Envelope, Malformed, payload_of, read_payload
from amends.arcp.wire import messages as m
from amends.core.fault import Fault

__all__ = ["Inbox"]

_UNCLAIMED = 64


class Inbox:
    """The jobs and the requests of one client, told by its link whatever comes."""

    def __init__(self, settings: Settings, handle: Callable[[Job, m.Accepted], Handle]) -> None:
        self._settings = settings
        self._handle = handle
        self.jobs: dict[str, Job] = {}
        self._unclaimed: dict[str, Job] = {}
        """Jobs heard of while a submission waits for its answer: the answer may have been lost with a connection."""
        self.requests = Requests(settings.request_timeout)

    def arrived(self, message: Envelope, size: int) -> Any:
        """A message that is about jobs or answers a request."""
        type = message.type
        if type == "job.event":
            job = self.jobs.get(message.job_id or "") or self._unclaimed_job(message.job_id)
            if job is None or not job.take(message):
                return None
            wait = job.events.room(self._settings.patience) if job.events.crowded else None
            if wait is None:
                job.event(message, size)
                return None
            return self._later(job, message, size, wait)
        if type == "job.result" or type == "job.error":  # noqa: PLR1714 - the hot path
            return self._terminal(message)
        if type == "job.accepted":
            return self._accepted(message)
        answers = _ANSWERS.get(type)
        if answers is not None:
            self._answered(message, answers)
        return None

    def _unclaimed_job(self, job_id: str | None) -> Job | None:
        """
        A job nobody here knows (yet).

        After a resumption the events of a job can come before the answer to its submission: that was lost, and is
        asked for again. They are kept for whoever gets that answer. An end is not: the new answer brings its own.
        """
        if not job_id or not self.requests.any("job.submit"):
            self._unclaimed.clear()
            return None
        job = self._unclaimed.get(job_id)
        if job is None and len(self._unclaimed) < _UNCLAIMED:
            job = self._unclaimed[job_id] = Job(job_id, None, self._settings)
        return job

    @staticmethod
    async def _later(job: Job, message: Envelope, size: int, wait: Any) -> None:
        await wait
        job.event(message, size)

    def _accepted(self, message: Envelope) -> None:
        accepted = read_payload(message)
        if isinstance(accepted, Malformed):
            payload = payload_of(message) or {}
            job_id = payload.get("job_id", message.job_id)
            if not isinstance(job_id, str):
                return
            accepted = m.Accepted(job_id, request_id=_named(payload))
        if accepted.request_id is None and accepted.delegate_id is not None:
            # A child of one of our jobs (10.1): nobody here asked for it.
            return
        job = self.jobs.get(accepted.job_id) or self._unclaimed.pop(accepted.job_id, None)
        if job is None:
            job = Job(accepted.job_id, None, self._settings)
        job.trace_id = job.trace_id or accepted.trace_id or message.trace_id
        if self.requests.answer(self._handle(job, accepted), "job.submit", accepted.request_id):
            # Known from now on: its events may be right behind.
            job.submitted = True
            self.jobs[accepted.job_id] = job

    def _terminal(self, message: Envelope) -> None:
        job = self.jobs.get(message.job_id or "")
        if message.type == "job.error" and (message.event_seq is None or job is None):
            payload = payload_of(message) or {}
            named = _named(payload)
            fault = received("job.error", payload, message.trace_id)
            if named is not None or job is None:
                # Refused before there was a job, or a request about one was.
                if message.event_seq is None:
                    self.requests.refuse(
                        fault, named, None if message.job_id else "job.submit", message.job_id
                    )
                return
        if job is None or not job.take(message):
            return
        # In this order: whatever goes wrong, a job that is listed is told of the session's end.
        job.finish(message)
        del self.jobs[job.job_id]
        self.requests.settle("job.cancel", job.job_id, None)

    def _answered(self, message: Envelope, request: str) -> None:
        payload = read_payload(message)
        if isinstance(payload, Malformed):
            fault = received(message.type, None, message.trace_id)
            self.requests.refuse(fault, _named(payload_of(message) or {}), request, message.job_id)
            return
        job_id = getattr(payload, "job_id", None) or message.job_id
        self.requests.answer(payload, request, payload.request_id, job_id)

    def refused(self, fault: Fault, payload: dict[str, Any]) -> None:
        """A session.error: for the request it names, or the oldest that waits (published runtimes answer in order)."""
        self.requests.refuse(fault, _named(payload))

    def unanswered(self) -> Iterable[Envelope]:
        """What may be asked again; whoever asked for anything else is told that it is in doubt."""
        return self.requests.again()

    def ended(self, fault: Fault) -> None:
        """Tell everybody who waits."""
        # Emptied first: who hears of the end may begin anew.
        jobs = list(self.jobs.values())
        self.jobs.clear()
        for job in jobs:
            job.fail(fault)
        self.requests.fail_all(fault)


# Answer → the request it answers.
_ANSWERS = {
    "session.jobs": "session.list_jobs",
    "job.subscribed": "job.subscribe",
    "job.cancelled": "job.cancel",
}


def _named(payload: dict[str, Any]) -> str | None:
    request = payload.get("request_id")
    return request if isinstance(request, str) else None
