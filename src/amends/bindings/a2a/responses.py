"""
Failures in the SDK's types.

A failed task has an artifact with a text part and a data part that holds `adcp_error` and nothing else (A4). The status
message has the same parts, because a client of a stream reads the events one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple
from uuid import uuid4

from a2a.types.a2a_pb2 import (
    Artifact,
    Message,
    Part,
    Role,
    TaskArtifactUpdateEvent,
    TaskState,
    TaskStatus,
    TaskStatusUpdateEvent,
)
from a2a.utils.errors import (
    JSON_RPC_ERROR_CODE_MAP,
    A2AError,
    InternalError,
    InvalidAgentResponseError,
)
from google.protobuf.json_format import ParseDict  # type: ignore[import-untyped,unused-ignore]

from amends.carriers.a2a import MIME_TYPE
from amends.core.fault import Fault
from amends.dialects.adcp import KEY, parts_beside
from amends.logs import logger
from amends.recovery.incoming import HEADER
from amends.serving.adcp_error import error_object, sentence
from amends.serving.reporting import record_beside, report
from amends.serving.server_errors import (
    PLAIN,
    OwnErrors,
    classify,
    classify_safely,
    modules_of,
    with_executed,
)

__all__ = [
    "LOG",
    "Sent",
    "error_for",
    "error_of",
    "failed_events",
    "internal_error",
    "left_of",
    "protocol_error",
    "traceparent_of",
]

LOG = logger("amends.a2a")

ARTIFACT_ID = "error-result"

# Each level of a value takes three of the hundred levels that readers of protobuf's JSON accept.
_LEVELS = 24


class Sent(NamedTuple):
    """What is sent for a failure."""

    error: dict[str, object]
    """The error object."""
    beside: dict[str, object]
    """What travels beside it: the tries made below, and whether the call may have had its effect (M8)."""
    parts: Sequence[dict[str, object]] = ()
    """The error objects of the failure's parts."""


def error_for(
    exc: BaseException,
    what: str,
    traceparent: str | None,
    own_errors: OwnErrors = PLAIN,
    *,
    of_agent: bool = False,
) -> Sent:
    """
    Log an exception, and return the error to answer it with.

    Args:
        exc: the exception.
        what: what failed, for the log line.
        traceparent: the request's W3C trace context.
        own_errors: the options for errors that the author raises or has registered.
        of_agent: whether the agent raised it, and not the code around it.

    """
    classifier = partial(classify, own_errors=own_errors)
    failure = with_executed(
        classify_safely(exc, log=LOG, classifier=classifier), read_only=False, of_agent=of_agent
    )
    return error_of(report(failure, log=LOG, what=what, traceparent=traceparent))


def error_of(fault: Fault) -> Sent:
    """Return what is sent for a fault; the error object is nested no deeper than protobuf's JSON allows."""
    parts = [error_object(part, levels=_LEVELS) for part in parts_beside(fault)]
    return Sent(error_object(fault, levels=_LEVELS), record_beside(fault), parts)


def traceparent_of(context: object) -> str | None:
    """Return the `traceparent` header of a request, if its call context has it."""
    return _header(context, "traceparent")


def left_of(context: object) -> str | None:
    """Return what the caller of a request has left, if its call context has it."""
    return _header(context, HEADER.lower())


def _header(context: object, name: str) -> str | None:
    state = getattr(context, "state", None)
    headers = state.get("headers") if isinstance(state, dict) else None
    value = headers.get(name) if isinstance(headers, dict) else None
    return value if isinstance(value, str) else None


def failed_events(
    sent: Sent, *, task_id: str, context_id: str, mime_type: bool
) -> tuple[TaskArtifactUpdateEvent, TaskStatusUpdateEvent]:
    """Return the two events that end a task: the artifact, and the status with its message."""
    parts = [Part(text=sentence(sent.error)), *_parts(sent), _data(sent, mime_type=mime_type)]
    message = Message(
        role=Role.ROLE_AGENT, message_id=str(uuid4()), task_id=task_id, context_id=context_id, parts=parts
    )
    status = TaskStatus(state=TaskState.TASK_STATE_FAILED, message=message)
    status.timestamp.GetCurrentTime()
    return (
        TaskArtifactUpdateEvent(
            task_id=task_id,
            context_id=context_id,
            artifact=Artifact(artifact_id=ARTIFACT_ID, parts=parts),
            last_chunk=True,
        ),
        TaskStatusUpdateEvent(task_id=task_id, context_id=context_id, status=status),
    )


def _parts(sent: Sent) -> list[Part]:
    """Return the data part with the parts of the failure, which is before the error's (`carriers.a2a.encode`)."""
    if not sent.parts:
        return []
    part = Part()
    ParseDict({"errors": [*sent.parts]}, part.data.struct_value)
    return [part]


def _data(sent: Sent, *, mime_type: bool) -> Part:
    part = Part()
    ParseDict({KEY: sent.error}, part.data.struct_value)
    ParseDict(sent.beside, part.metadata)
    if mime_type:
        part.media_type = MIME_TYPE
    return part


def internal_error(sent: Sent) -> InternalError:
    """Return the protocol error for a failure without a task; the error object is in its data."""
    data = {KEY: sent.error, **sent.beside, **({"errors": [*sent.parts]} if sent.parts else {})}
    return InternalError(message=sentence(sent.error), data=data)


# Errors about the request. The other two are about the agent, and are answered with an AdCP error instead.
_ABOUT_THE_REQUEST = frozenset(JSON_RPC_ERROR_CODE_MAP) - {InternalError, InvalidAgentResponseError}


def protocol_error(exc: BaseException) -> A2AError | None:
    """
    Return the protocol error to answer with, if one was raised on purpose; None if the exception is a failure.

    The SDK's own errors describe the request; their text is sent, redacted. Of an error that other code raised only the
    class is kept, because its text may contain internals. An error that an A2A client raised is about another agent.
    """
    if not isinstance(exc, A2AError):
        return None
    modules = modules_of(exc)
    if any(module.startswith(("a2a.client.", "a2a.compat.")) for module in modules):
        return None
    kind = next((cls for cls in type(exc).__mro__ if cls in _ABOUT_THE_REQUEST), None)
    if kind is None:
        return None
    if not modules or not modules[-1].startswith(("a2a.", "amends.")):
        return kind()
    from amends.core.redaction import redact, redact_value

    return kind(redact(exc.message), redact_value(exc.data))
