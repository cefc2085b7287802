"""The client's state of one job, shared by all handles of the job, and its outcome, which any number of tasks can await."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from typing import Any

import msgspec

from amends.arcp.client.events import Event, Events
from amends.arcp.client.session_faults import error_of, reported_fault, result_unusable
from amends.arcp.client.settings import Settings
from amends.arcp.wire import Envelope, Malformed, payload_of, read_payload
from amends.arcp.wire import messages as m
from amends.arcp.wire.chunks import Assembly
from amends.core.fault import Fault
from amends.foreign.trust import trusted
from amends.logs import logger

__all__ = ["Job", "Outcome"]

# The statuses that peers use for success. No status counts as success, because job.result reports a success.
_SUCCESS = frozenset({None, "success", "succeeded", "completed", "ok"})
_NOTHING: object = object()
_NO_RESULT = frozenset({*m.Result.__struct_fields__, "job_id", "request_id", "reply_to", "agent", "trace_id"})
"""Members of a `job.result` that are no result."""
_logger = logger("amends.arcp")


class Job:
    """The state of a job, its events and its outcome."""

    def __init__(self, job_id: str, trace_id: str | None, settings: Settings) -> None:
        self.job_id = job_id
        self.trace_id = trace_id
        self.run = 1
        self.submitted = False
        """Whether this session submitted the job, and does not only follow it."""
        self.in_doubt = False
        """Whether the runtime may lose it with a connection, without a message."""
        self.last_seq = 0
        self.result: m.Result | None = None
        self.rotated: dict[str, str] = {}
        """The newest values of credentials that were replaced, by id."""
        self.outcome = Outcome(own=settings.own)
        self._events: Events | None = None
        self._settings = settings
        self._chunks: Assembly | None = None

    @property
    def events(self) -> Events:
        """The event buffer, created on first use: most jobs have no events."""
        if self._events is None:
            self._events = Events(self._settings.buffer, self._settings.buffer_bytes)
            if self.outcome.finished:
                self._events.end()
        return self._events

    def is_new(self, message: Envelope) -> bool:
        """Whether a message of this job was not received before; records its number. After a resumption some are repeated."""
        seq = message.event_seq
        if seq is None:
            return True
        if seq <= self.last_seq:
            return False
        self.last_seq = seq
        return True

    def add_event(self, message: Envelope, size: int) -> None:
        """Add an event to the buffer. An event that cannot be read is ignored; only its number matters then."""
        payload = read_payload(message)
        if isinstance(payload, Malformed):
            return
        body = payload.body or {}
        if payload.run is not None and payload.run != self.run:
            self.run = payload.run
            self._chunks = None
        if payload.kind == "result_chunk":
            if self._chunks is None:
                self._chunks = Assembly(self._settings.max_result)
            self._chunks.add(body)
        elif payload.kind == "status" and body.get("phase") == "credential_rotated":
            self._record_rotation(body)
        event = Event(payload.kind, body, payload.ts, self.job_id, message.event_seq, self.run)
        self.events.put(event, size)

    def _record_rotation(self, body: dict[str, object]) -> None:
        id, value = body.get("id"), body.get("value")
        if isinstance(id, str) and isinstance(value, str):
            self.rotated[id] = value

    def finish(self, message: Envelope) -> None:
        """End the job with `job.result` or `job.error`."""
        if message.type == "job.error":
            payload = payload_of(message)
            self._record_run(payload)
            self.fail(reported_fault("job.error", payload, message.trace_id or self.trace_id))
            return
        result = read_payload(message)
        if isinstance(result, Malformed):
            # A member of a wrong type must not make the result unreadable.
            payload = payload_of(message)
            if payload is None or not isinstance(payload.get("result_id"), str | None):
                self.fail(result_unusable("unreadable", self.trace_id))
                return
            result = m.Result(
                final_status=_text(payload.get("final_status")),
                status=_text(payload.get("status")),
                result=payload.get("result", msgspec.UNSET),
                result_id=_text(payload.get("result_id")),
                summary=_text(payload.get("summary")),
                error=payload.get("error"),
            )
        self.result = result
        if result.run is not None:
            self.run = result.run
        status = result.final_status if result.final_status is not None else result.status
        if status not in _SUCCESS or (status is None and result.error is not None):
            payload = payload_of(message)
            if status is None and payload is not None:
                payload = {**payload, "final_status": "error"}
            self.fail(reported_fault("job.result", payload, message.trace_id or self.trace_id))
            return
        if result.result_id is not None:
            value = self._assemble(result)
        else:
            value = result.result if result.result is not msgspec.UNSET else self._other_result(message)
        if value is not _NOTHING:
            self.outcome.succeed(value)
            self._end_events()

    def _other_result(self, message: Envelope) -> Any:
        """
        Return the result of a payload without `result`: the specification has it "inline in the payload", under no name.

        The Go SDK names it `output`. Members that mean nothing else are the result together.
        """
        members = {
            name: value for name, value in (payload_of(message) or {}).items() if name not in _NO_RESULT
        }
        if "output" in members:
            return members["output"]
        if not members:
            _logger.warning("job %s succeeded, and its job.result has no result: it is None", self.job_id)
        return members or None

    def _assemble(self, result: m.Result) -> Any:
        chunks = self._chunks or Assembly(self._settings.max_result)
        self._chunks = None
        value = chunks.result(result.result_id or "", result.result_size)
        if value is None:
            self.fail(result_unusable(chunks.problem or "missing", self.trace_id, result_id=result.result_id))
            return _NOTHING
        return value

    def _record_run(self, payload: dict[str, object] | None) -> None:
        run = payload.get("run") if payload else None
        if isinstance(run, int) and not isinstance(run, bool):
            self.run = run

    def fail(self, fault: Fault) -> None:
        """End the job with a failure, also if the session is over and its real end is unknown."""
        if not self.outcome.finished:
            self.outcome.fail(fault)
            self._end_events()

    def _end_events(self) -> None:
        if self._events is not None:
            self._events.end()


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


class Outcome:
    """
    Returns the result or raises the failure. Cancelling one waiter does not affect the others.

    Not a future: awaiting a future from a task that is cancelled cancels it for all, and a failed one that is never awaited
    logs an error.
    """

    def __init__(self, *, own: bool = False) -> None:
        self.own = own
        self.calls: list[str | None] = []
        """The ids that were sent with the submissions: those of one key are one job, which is signed for the first."""
        self.value: object = None
        self.fault: Fault | None = None
        self.finished = False
        """Whether the job has ended."""
        self._waiters: list[asyncio.Future[None]] = []

    def succeed(self, value: object) -> None:
        """End with a result."""
        self.value = value
        self._finish()

    def fail(self, fault: Fault) -> None:
        """End with a failure."""
        self.fault = fault
        self._finish()

    def _finish(self) -> None:
        self.finished = True
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)

    def __await__(self) -> Generator[Any, None, Any]:
        """Wait for the end."""
        if not self.finished:
            waiter = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            yield from waiter
        if self.fault is not None:
            error = error_of(self.fault)
            for call in self.calls or [None]:
                if not error.own:
                    error = trusted(error, own=self.own, call=call)
            raise error
        return self.value
