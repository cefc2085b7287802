"""
S3's documents: the task request and the task response, read and written as they stand there.

A request is `{id, type, payload, retryPolicy?}` (T8), and with us also `agent`, `deadline` (RFC 3339) and
`idempotencyKey`. A response is `{id, status, error?, metadata?}` (T3), with `result` where there is one and `input` where
somebody has to say something first. Members of the wrong type are refused in a request and ignored in a response.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, Self

import msgspec

from amends.core.fault import Fault
from amends.dialects import task as dialect
from amends.errors.task import InvalidFieldTypeError, InvalidInputError, MissingRequiredFieldError

__all__ = ["ENDED", "Metadata", "Request", "Response", "Status", "moment", "seconds_of", "stamp"]


class Status(StrEnum):
    """How far a task has come: where S3's response says `status`."""

    PENDING = "pending"
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    INPUT_REQUIRED = "input_required"


ENDED = frozenset({Status.COMPLETED, Status.FAILED, Status.CANCELLED})
"""The statuses nothing follows, unless somebody asks for a retry."""


class Request(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """One task, as it is asked for."""

    id: str
    type: str
    """The capability asked for."""
    payload: Any = None
    agent: str | None = None
    """Which agent; without it the one that has the capability."""
    retry_policy: dict[str, Any] | None = None
    """{maxAttempts, backoffType, initialDelay in ms}: T8."""
    deadline: str | None = None
    """When it is no longer wanted."""
    idempotency_key: str | None = None
    """Tasks with the same key are one task."""

    @classmethod
    def read(cls, document: Any) -> Self:
        """
        The request a document is: a mapping, JSON text or bytes, or a Request. Unknown members are left alone.

        Raises:
            FaultError: INVALID_INPUT, MISSING_REQUIRED_FIELD or INVALID_FIELD_TYPE, with the pointer.
        """
        if isinstance(document, cls):
            return document
        if isinstance(document, str | bytes | bytearray):
            try:
                document = msgspec.json.decode(document)
            except (msgspec.DecodeError, UnicodeError):
                raise InvalidInputError("The request is not readable as JSON") from None
        if not isinstance(document, Mapping):
            raise InvalidInputError("A request is an object with id, type and payload")
        for name in ("id", "type"):
            if name not in document:
                raise MissingRequiredFieldError(
                    field=f"/{name}", details={"name": name, "pointer": f"/{name}"}
                )
        for name, kinds in _KINDS.items():
            value = document.get(name)
            needed = name in {"id", "type"}
            if (value is None and not needed) or (isinstance(value, kinds) and value):
                continue
            raise InvalidFieldTypeError(field=f"/{name}", details={"name": name, "pointer": f"/{name}"})
        deadline = document.get("deadline")
        if deadline is not None and moment(deadline) is None:
            raise InvalidFieldTypeError(
                field="/deadline", details={"name": "deadline", "pointer": "/deadline"}
            )
        policy = document.get("retryPolicy")
        return cls(
            id=document["id"],
            type=document["type"],
            payload=document.get("payload"),
            agent=document.get("agent"),
            retry_policy=None if policy is None else dict(policy),
            deadline=deadline,
            idempotency_key=document.get("idempotencyKey"),
        )

    def document(self) -> dict[str, Any]:
        """The request as S3 writes it."""
        found: dict[str, Any] = msgspec.to_builtins(self)
        return found


_KINDS: dict[str, type | tuple[type, ...]] = {
    "id": str,
    "type": str,
    "agent": str,
    "retryPolicy": Mapping,
    "deadline": str,
    "idempotencyKey": str,
}


class Metadata(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """When it ran and who did it. The names are S3's."""

    started: float | None = None
    completed: float | None = None
    agent: str | None = None
    degraded: bool = False
    """Whether a fallback gave the result, or part of it."""

    def document(self) -> dict[str, Any]:
        """The metadata as S3 writes it; what is not known is left out."""
        found: dict[str, Any] = {}
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
    def read(cls, document: Any) -> Self:
        """What a document says, as far as it can be understood."""
        given = document if isinstance(document, Mapping) else {}
        agent = given.get("agent")
        return cls(
            started=moment(given.get("startedAt")),
            completed=moment(given.get("completedAt")),
            agent=agent if isinstance(agent, str) else None,
            degraded=given.get("degraded") is True,
        )


class Response(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What became of a task."""

    id: str
    status: Status
    result: Any = None
    error: Fault | None = None
    input: dict[str, Any] | None = None
    """With `input_required`: which step waits, and for what."""
    failures: dict[str, Fault] | None = None
    """Of a plan: the optional steps that failed, where the rest was enough."""
    metadata: Metadata = Metadata()

    @property
    def ok(self) -> bool:
        """Whether it was completed."""
        return self.status is Status.COMPLETED

    def document(self) -> dict[str, Any]:
        """The response as S3 writes it."""
        found: dict[str, Any] = {"id": self.id, "status": self.status.value}
        if self.result is not None or self.ok:
            found["result"] = self.result
        if self.error is not None:
            found["error"] = dialect.encode(self.error)
        if self.input is not None:
            found["input"] = self.input
        if self.failures:
            found["failures"] = {name: dialect.encode(fault) for name, fault in self.failures.items()}
        metadata = self.metadata.document()
        if metadata:
            found["metadata"] = metadata
        return found

    @classmethod
    def read(cls, document: Any) -> Self | None:
        """The response a document is, or None: never an exception, because documents come from elsewhere."""
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
        fault = dialect.decode(error) if isinstance(error, dict) else None
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
    A moment as RFC 3339 in UTC, with milliseconds where there are any.

    >>> stamp(1736073000.0), stamp(1736073000.25)
    ('2025-01-05T10:30:00Z', '2025-01-05T10:30:00.250Z')
    """
    at = round(at, 3)
    whole = at == int(at)
    text = datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds" if whole else "milliseconds")
    return text.replace("+00:00", "Z")


def moment(text: Any) -> float | None:
    """The time a text names, as seconds since 1970; None when it names none. Without a zone it is UTC."""
    if not isinstance(text, str) or len(text) > 40:
        return None
    try:
        read = datetime.fromisoformat(text)
        return (read if read.tzinfo else read.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError, OSError):
        return None


def seconds_of(wait: float | timedelta) -> float:
    """
    A duration in seconds.

    Raises:
        ValueError: it is negative, or no number.
    """
    seconds = wait.total_seconds() if isinstance(wait, timedelta) else float(wait)
    if not (math.isfinite(seconds) and seconds >= 0):
        raise ValueError(f"a duration is a number of seconds, not {wait!r}")
    return seconds
