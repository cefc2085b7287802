"""
The task request and the task response of the agent error contract, read and written in their JSON form.

A request is `{id, type, payload, retryPolicy?}` (T8); amends adds `agent`, `deadline` (RFC 3339) and `idempotencyKey`. A response
is `{id, status, error?, metadata?}` (T3), with `result` if there is one, and `input` if the task waits for an answer. A member of
the wrong type is an error in a request and is ignored in a response.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, Self

import msgspec

from amends.core.fault import Fault
from amends.core.named_options import NamedOptions
from amends.dialects import task as dialect
from amends.errors.task import InvalidFieldTypeError, InvalidInputError, MissingRequiredFieldError
from amends.tasks.retry_policy import check_retry_policy

__all__ = [
    "AT_REST",
    "ENDED",
    "Metadata",
    "Request",
    "Response",
    "Status",
    "parse_time",
    "seconds_of",
    "stamp",
]


class Status(StrEnum):
    """
    The `status` of a response.

    >>> response = Response.read({"id": "t-1", "status": "failed", "error": {"code": "AGENT_BUSY"}})
    >>> response.status is Status.FAILED, response.status in ENDED
    (True, True)
    """

    PENDING = "pending"
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    INPUT_REQUIRED = "input_required"


ENDED = frozenset({Status.COMPLETED, Status.FAILED, Status.CANCELLED})
"""The statuses of a task that is over. Only a retry changes them."""
AT_REST = ENDED | {Status.INPUT_REQUIRED}
"""The statuses of a task that is over, or waits for an answer."""


class Request(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", metaclass=NamedOptions
):
    """
    A request for one task. `Orchestrator.submit` and `Orchestrator.run` take it.

    >>> request = Request.read('{"id": "t-1", "type": "book", "payload": {"train": 7}, "idempotencyKey": "order-17"}')
    >>> request.type, request.idempotency_key
    ('book', 'order-17')
    """

    id: str
    type: str
    """The name of the capability."""
    payload: object = None
    agent: str | None = None
    """The name of the agent; by default an agent that has the capability."""
    retry_policy: dict[str, object] | None = None
    """{maxAttempts, backoffType, initialDelay in ms}: T8."""
    deadline: str | None = None
    """RFC 3339: after this time no attempt starts, and a running one is stopped."""
    idempotency_key: str | None = None
    """Requests with the same key are the same task."""

    @classmethod
    def read(cls, document: object) -> Self:
        """
        Read a request from a mapping, JSON text or bytes, or a Request. Unknown members are ignored.

        Raises:
            FaultError: INVALID_INPUT, MISSING_REQUIRED_FIELD, INVALID_FIELD_TYPE or INVALID_FIELD_VALUE, with the pointer.
        """
        if isinstance(document, cls):
            return document
        if isinstance(document, str | bytes | bytearray):
            try:
                document = msgspec.json.decode(document)
            except (msgspec.DecodeError, UnicodeError):
                raise InvalidInputError("The request is not valid JSON") from None
        if not isinstance(document, Mapping):
            raise InvalidInputError("A request must be an object with id, type and payload")
        for name in ("id", "type"):
            if name not in document:
                raise MissingRequiredFieldError(
                    field=f"/{name}", details={"name": name, "pointer": f"/{name}"}
                )
        for name, kinds in _KINDS.items():
            value = document.get(name)
            needed = name in {"id", "type"}
            if (value is None and not needed) or (
                isinstance(value, kinds) and (value or name == "retryPolicy")
            ):
                continue
            raise InvalidFieldTypeError(field=f"/{name}", details={"name": name, "pointer": f"/{name}"})
        deadline = document.get("deadline")
        if deadline is not None and parse_time(deadline) is None:
            raise InvalidFieldTypeError(
                field="/deadline", details={"name": "deadline", "pointer": "/deadline"}
            )
        policy = document.get("retryPolicy")
        if policy is not None:
            check_retry_policy(policy)
        return cls(
            id=document["id"],
            type=document["type"],
            payload=document.get("payload"),
            agent=document.get("agent"),
            retry_policy=None if policy is None else dict(policy),
            deadline=deadline,
            idempotency_key=document.get("idempotencyKey"),
        )

    def document(self) -> dict[str, object]:
        """The request as a JSON document."""
        found: dict[str, object] = msgspec.to_builtins(self)
        return found


_LONGEST = 1e10
"""Seconds: about 300 years."""
_KINDS: dict[str, type | tuple[type, ...]] = {
    "id": str,
    "type": str,
    "agent": str,
    "retryPolicy": Mapping,
    "deadline": str,
    "idempotencyKey": str,
}


class Metadata(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """
    When a task ran, and which agent ran it: `Response.metadata`.

    >>> Metadata(started=1736073000.0, completed=1736073000.25, agent="trains").document()["duration_ms"]
    250
    """

    started: float | None = None
    completed: float | None = None
    agent: str | None = None
    degraded: bool = False
    """Whether the result, or a part of it, comes from a fallback."""

    def document(self) -> dict[str, object]:
        """The metadata as a JSON document, without the members that are unknown."""
        found: dict[str, object] = {}
        if self.started is not None:
            found["startedAt"] = stamp(self.started)
        if self.completed is not None:
            found["completedAt"] = stamp(self.completed)
            if self.started is not None:
                found["duration_ms"] = max(0, round((self.completed - self.started) * 1000))
        if self.agent is not None:
            found["agent"] = self.agent
        if self.degraded:
            found["degraded"] = True
        return found

    @classmethod
    def read(cls, document: object) -> Self:
        """Read metadata from a document. Members of the wrong type are ignored."""
        given = document if isinstance(document, Mapping) else {}
        agent = given.get("agent")
        return cls(
            started=parse_time(given.get("startedAt")),
            completed=parse_time(given.get("completedAt")),
            agent=agent if isinstance(agent, str) else None,
            degraded=given.get("degraded") is True,
        )


class Response(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """
    The outcome of a task so far, from `Orchestrator.run`, `Handle.wait` and `Handle.response`.

    >>> import asyncio
    >>> from amends.tasks import Agent, Orchestrator
    >>> trains = Agent("trains")
    >>> @trains.capability(read_only=True)
    ... async def search(station: str) -> list[str]:
    ...     return ["09:12"]
    >>> async def example():
    ...     async with Orchestrator([trains]) as orchestrator:
    ...         return await orchestrator.run("search", "Ulm")
    >>> response = asyncio.run(example())
    >>> response.ok, response.result, response.error
    (True, ['09:12'], None)
    """

    id: str
    status: Status
    result: Any = None
    error: Fault | None = None
    input: dict[str, object] | None = None
    """With `input_required`: the step that waits, and the question."""
    failures: dict[str, Fault] | None = None
    """The optional steps of a plan that failed, if the plan was completed without them."""
    metadata: Metadata = Metadata()

    @property
    def ok(self) -> bool:
        """Whether the task was completed."""
        return self.status is Status.COMPLETED

    def document(self) -> dict[str, object]:
        """The response as a JSON document."""
        found: dict[str, object] = {"id": self.id, "status": self.status.value}
        if self.result is not None or self.ok:
            found["result"] = self.result
        if self.error is not None:
            found["error"] = dialect.encode_beside(self.error)
        if self.input is not None:
            found["input"] = self.input
        if self.failures:
            found["failures"] = {name: dialect.encode_beside(fault) for name, fault in self.failures.items()}
        metadata = self.metadata.document()
        if metadata:
            found["metadata"] = metadata
        return found

    @classmethod
    def read(cls, document: object) -> Self | None:
        """Read a response from a mapping, or JSON text or bytes. Returns None if it is not a response; never raises."""
        if isinstance(document, str | bytes | bytearray):
            try:
                document = msgspec.json.decode(document)
            except (msgspec.DecodeError, UnicodeError):
                return None
        if not isinstance(document, Mapping):
            return None
        id, status = document.get("id"), document.get("status")
        if not isinstance(id, str) or status not in list(Status):
            return None
        error = document.get("error")
        wanted = document.get("input")
        fault = dialect.decode(dict(error)) if isinstance(error, Mapping) else None
        if fault is None and status == Status.FAILED:
            fault = Fault(code="INTERNAL_ERROR", vocabulary="task")
        return cls(
            id=id,
            status=Status(status),
            result=document.get("result"),
            error=fault,
            input=dict(wanted) if isinstance(wanted, Mapping) else None,
            metadata=Metadata.read(document.get("metadata")),
        )


def stamp(at: float) -> str:
    """
    Format a time as RFC 3339 in UTC, with milliseconds if they are not zero.

    >>> stamp(1736073000.0), stamp(1736073000.25)
    ('2025-01-05T10:30:00Z', '2025-01-05T10:30:00.250Z')
    """
    at = round(at, 3)
    whole = at == int(at)
    text = datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds" if whole else "milliseconds")
    return text.replace("+00:00", "Z")


def parse_time(text: object) -> float | None:
    """Parse an RFC 3339 time into seconds since 1970; None if it is not one. Without a zone it is taken as UTC."""
    if not isinstance(text, str) or len(text) > 40:
        return None
    try:
        read = datetime.fromisoformat(text)
        return (read if read.tzinfo else read.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError, OSError):
        return None


def seconds_of(wait: float | timedelta) -> float:
    """
    Convert a duration to seconds.

    Raises:
        ValueError: it is negative, not finite, or no duration.
    """
    given: object = wait.total_seconds() if isinstance(wait, timedelta) else wait
    seconds = given if isinstance(given, int | float) and not isinstance(given, bool) else -1.0
    if not 0 <= seconds <= _LONGEST:
        raise ValueError(f"a duration must be a timedelta, or a number of seconds from 0 to {_LONGEST:g}")
    return float(seconds)
