"""
Route received messages: events and results to jobs, answers to pending requests.

An answer belongs to the request whose id it has, else to the oldest request of its type.
"""

from __future__ import annotations

import asyncio
from asyncio import Future
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any
from weakref import WeakValueDictionary

from msgspec.structs import replace

from amends.arcp.client.handle import Handle
from amends.arcp.client.job import Job
from amends.arcp.client.session_faults import connection_lost, error_of, reported_fault
from amends.arcp.client.settings import Settings
from amends.arcp.wire import Envelope, Malformed, payload_of, read_payload
from amends.arcp.wire import messages as m
from amends.core.enums import Executed
from amends.core.fault import Fault
from amends.proof import Claim, Proof, rests_on

__all__ = ["Inbox", "PendingRequest", "PendingRequests"]

_UNCLAIMED = 64
_REFUSALS = frozenset({"JOB_NOT_FOUND", "PERMISSION_DENIED"})
"""The codes with which runtimes refuse to let a session follow or cancel a job."""


class Inbox:
    """The jobs and pending requests of one client; its session passes every message here."""

    def __init__(
        self,
        settings: Settings,
        handle: Callable[[Job, m.Accepted], Handle],
        resumed: Callable[[], None] = lambda: None,
    ) -> None:
        self._settings = settings
        self._handle = handle
        self.resumed = resumed
        self.jobs: dict[str, Job] = {}
        self._unclaimed: dict[str, Job] = {}
        """Jobs with events while a submission is pending, whose answer may have been lost with a connection."""
        self._ended: WeakValueDictionary[str, Job] = WeakValueDictionary()
        """Ended jobs of runtimes that do not repeat the end of a job, as long as they have a handle."""
        self.requests = PendingRequests(settings.request_timeout)

    def receive(self, message: Envelope, size: int) -> Any:
        """Handle a message about a job or an answer; returns a function to await if the connection must wait."""
        type = message.type
        if type == "job.event":
            job = self.jobs.get(message.job_id or "") or self._unclaimed_job(message.job_id)
            if job is None or not job.is_new(message):
                return None
            if not job.events.full:
                job.add_event(message, size)
                return None
            return partial(self._add_event_later, job, message, size)
        if type in {"job.result", "job.error"}:
            return self._terminal(message)
        if type == "job.accepted":
            return self._accepted(message)
        request = _ANSWERS.get(type)
        if request is not None:
            self._answered(message, request)
        return None

    def _unclaimed_job(self, job_id: str | None) -> Job | None:
        """
        The job of an unknown id.

        After a resumption, events of a job can come before the answer to its submission, which was lost and is requested
        again. They are kept until that answer comes. A result is not kept, because the runtime sends it again then.
        """
        if not job_id or not self.requests.any("job.submit"):
            self._unclaimed.clear()
            return None
        job = self._unclaimed.get(job_id)
        if job is None and len(self._unclaimed) < _UNCLAIMED:
            job = self._unclaimed[job_id] = Job(job_id, None, self._settings)
        return job

    async def _add_event_later(self, job: Job, message: Envelope, size: int) -> None:
        await job.events.wait_for_space(self._settings.slow_reader_timeout)
        job.add_event(message, size)

    def _accepted(self, message: Envelope) -> None:
        accepted = read_payload(message)
        if isinstance(accepted, Malformed):
            payload = payload_of(message) or {}
            job_id = payload.get("job_id", message.job_id)
            if not isinstance(job_id, str):
                return
            accepted = m.Accepted(job_id, request_id=_request_id(payload))
        if accepted.request_id is None and accepted.delegate_id is not None:
            # A child of one of our jobs (10.1), which this client did not submit.
            return
        job = self.jobs.get(accepted.job_id) or self._unclaimed.pop(accepted.job_id, None)
        if job is None and accepted.request_id is None:
            # A repeated key. The runtimes that give no request id do not send the end of the job again.
            job = self._ended.get(accepted.job_id)
        if job is None:
            job = Job(accepted.job_id, None, self._settings)
        job.trace_id = job.trace_id or accepted.trace_id or message.trace_id
        if self.requests.answer(self._handle(job, accepted), "job.submit", accepted.request_id):
            # Registered now, because its events may follow directly.
            job.submitted = True
            job.in_doubt = accepted.request_id is None
            if not job.outcome.finished:
                self.jobs[accepted.job_id] = job

    def _terminal(self, message: Envelope) -> None:
        job = self.jobs.get(message.job_id or "")
        if message.type == "job.error":
            payload = payload_of(message) or {}
            if job is None or self._is_refusal(payload, job):
                self._refused(message, payload)
                return
        if job is None or not job.is_new(message):
            return
        # In this order: if finish() raises, the job is still listed and fails with the session.
        job.finish(message)
        del self.jobs[job.job_id]
        if job.in_doubt:
            self._ended[job.job_id] = job
        if self.requests:
            self.requests.answer_all("job.cancel", job.job_id, None)

    def _is_refusal(self, payload: dict[str, object], job: Job) -> bool:
        """Whether a `job.error` with the id of a known job rejects a request and does not end the job."""
        if _request_id(payload) is not None:
            return True
        # A published runtime numbers its refusals like events, and gives them the id of the job that the request concerns.
        code = payload.get("code")
        if code == "DUPLICATE_KEY":
            return self.requests.any("job.submit")
        if code not in _REFUSALS or job.submitted:
            return False
        asked_to_follow = job.last_seq == 0 and self.requests.any("job.subscribe", job.job_id)
        return asked_to_follow or self.requests.any("job.cancel", job.job_id)

    def _refused(self, message: Envelope, payload: dict[str, object]) -> None:
        """Reject the request that a `job.error` names by its id, by its job, or, with a new job's id, the oldest submission."""
        fault = reported_fault("job.error", payload, message.trace_id)
        request_id, job_id = _request_id(payload), message.job_id
        if request_id is not None or message.event_seq is None:
            self.requests.reject(fault, request_id, None if job_id else "job.submit", job_id)
        elif payload.get("code") == "DUPLICATE_KEY":
            self.requests.reject(fault, None, "job.submit")
        elif "completed_at" in payload or job_id in self._unclaimed:
            # The end of a job whose acceptance was lost; the runtime repeats it when the submission is repeated.
            return
        elif not self.requests.reject(fault, None, None, job_id):
            self.requests.reject(fault, None, "job.submit")

    def _answered(self, message: Envelope, request: str) -> None:
        payload = read_payload(message)
        if isinstance(payload, Malformed):
            fault = reported_fault(message.type, None, message.trace_id)
            self.requests.reject(fault, _request_id(payload_of(message) or {}), request, message.job_id)
            return
        job_id = getattr(payload, "job_id", None) or message.job_id
        self.requests.answer(payload, request, payload.request_id, job_id)

    def reject(self, fault: Fault, payload: dict[str, object]) -> None:
        """Handle a session.error: reject the request it names, or the oldest (published runtimes answer in order)."""
        self.requests.reject(fault, _request_id(payload))

    def end(self, fault: Fault) -> None:
        """Fail all jobs and pending requests. Whatever ended the session, they may have had their effect."""
        fault = replace(fault, executed=Executed.MAYBE)
        # Emptied first: a caller that is woken may start again.
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
    "x-vendor.amends.steps": "x-vendor.amends.job",
}


def _request_id(payload: dict[str, object]) -> str | None:
    request_id = payload.get("request_id")
    return request_id if isinstance(request_id, str) else None


@dataclass(slots=True)
class PendingRequest:
    """A request without an answer."""

    message: Envelope
    answer: Future[Any]
    repeatable: bool
    """Whether it may be sent again if it is unknown whether it arrived."""
    job_id: str | None
    due: float
    """When it fails without an answer, by the loop's clock."""


class PendingRequests:
    """The requests without an answer, in the order in which they were sent. One timer serves all of them."""

    def __init__(self, timeout: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._timeout = timeout
        self._timer: asyncio.TimerHandle | None = None
        self._waiting: dict[str, PendingRequest] = {}

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def any(self, type: str, job_id: str | None = None) -> bool:
        """Whether there is one of a type, about a job if one is named."""
        return any(
            request.message.type == type and (job_id is None or request.job_id == job_id)
            for request in self._waiting.values()
        )

    def add(self, message: Envelope, *, repeatable: bool, job_id: str | None = None) -> Future[Any]:
        """Add a request that is being sent, and return the future of its answer."""
        answer: Future[Any] = self._loop.create_future()
        due = self._loop.time() + self._timeout
        self._waiting[message.id] = PendingRequest(message, answer, repeatable, job_id, due)
        if self._timer is None:
            self._timer = self._loop.call_at(due, self._expire)
        return answer

    def _expire(self) -> None:
        """Fail the requests that are due, and set the timer for the oldest of the others."""
        self._timer = None
        for id, request in list(self._waiting.items()):
            if request.due > self._loop.time():
                self._timer = self._loop.call_at(request.due, self._expire)
                return
            del self._waiting[id]
            _fail(request, connection_lost("no_answer"))

    def remove(self, message: Envelope) -> None:
        """Remove a request, answered or not."""
        self._waiting.pop(message.id, None)

    def answer(self, value: object, type: str, request_id: object = None, job_id: str | None = None) -> bool:
        """Answer the request with this id, else the oldest of its type (and job); returns whether there was one."""
        request = self._find(type, request_id, job_id)
        if request is None:
            return False
        if not request.answer.done():
            request.answer.set_result(value)
        return True

    def reject(
        self, fault: Fault, request_id: object, type: str | None = None, job_id: str | None = None
    ) -> bool:
        """Answer a request with a failure. Without a type, the oldest request of any type."""
        request = self._find(type, request_id, job_id)
        if request is None:
            return False
        _fail(request, fault)
        return True

    def answer_all(self, type: str, job_id: str, value: object) -> None:
        """Answer every request of a type about a job."""
        while self.answer(value, type, job_id=job_id):
            pass

    def take_repeatable(self) -> list[Envelope]:
        """The requests to send again after a resumption. The others fail, because it is unknown whether they arrived."""
        messages = []
        for id, request in list(self._waiting.items()):
            if request.repeatable:
                messages.append(request.message)
            else:
                del self._waiting[id]
                _fail(request, connection_lost("in_doubt"))
        return messages

    def fail_all(self, fault: Fault) -> None:
        """Answer all requests with a failure."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        waiting, self._waiting = self._waiting, {}
        for request in waiting.values():
            _fail(request, fault)

    @rests_on(Claim.OURS, Proof.CORRELATED)
    def _find(self, type: str | None, request_id: object, job_id: str | None) -> PendingRequest | None:
        if isinstance(request_id, str):
            return self._waiting.pop(request_id, None)
        for id, request in self._waiting.items():
            if (type is None or request.message.type == type) and (
                job_id is None or request.job_id == job_id
            ):
                return self._waiting.pop(id)
        return None


def _fail(request: PendingRequest, fault: Fault) -> None:
    if not request.answer.done():
        request.answer.set_exception(error_of(fault))
