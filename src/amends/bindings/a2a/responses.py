"""
What a failed task looks like in the SDK's types, and what the log says about it.

S4: an artifact with a text part and a data part that holds `adcp_error` and nothing else (A4). The status message says
the same, because whoever reads a stream reads its events one by one.
"""

from __future__ import annotations

import logging
from typing import Any
from uuid import uuid4

from a2a.types.a2a_pb2 import (
    Artifact,
    Message,
    Part,
    Role,
    Task,
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
from msgspec.structs import replace

from amends.carriers.a2a import MIME_TYPE
from amends.carriers.layers import KEY
from amends.core.enums import Recovery
from amends.core.fault import Fault, Origin
from amends.core.vocabularies.adcp import VOCABULARY
from amends.dialects.adcp import fault_of
from amends.http.tracing import current_span, mark, trace_id
from amends.serving.adcp_error import error_object, sentence
from amends.serving.server_errors import fault_for, ours

__all__ = [
    "LOG",
    "UNAVAILABLE",
    "failed_events",
    "failed_task",
    "protocol_error",
    "refusal",
    "said",
    "trace_of",
]

LOG = logging.getLogger("amends.a2a")

UNAVAILABLE = Fault(
    code="SERVICE_UNAVAILABLE",
    message=VOCABULARY.rows["SERVICE_UNAVAILABLE"].message,
    recovery=Recovery.TRANSIENT,
    vocabulary=VOCABULARY.name,
)

ARTIFACT_ID = "error-result"
TRACE = "trace_id"
"""The member of an error object that the log line can be found by; AdCP has none of its own."""

# Each level of a value takes three of the hundred levels that readers of protobuf's JSON allow.
_LEVELS = 24
_ORIGIN = Origin("adcp")


def said(exc: BaseException, trace: str, where: str) -> dict[str, Any]:
    """
    The error object for an exception, after it was logged. Never raises.

    What nobody expected carries the trace id, so that who hears of it can ask for it.
    """
    expected = ours(exc) is not None
    try:
        fault = fault_for(exc)
        if not expected and fault.origin is None:
            fault = replace(fault, extensions={**fault.extensions, TRACE: trace})
        error = error_object(fault, levels=_LEVELS)
    except Exception:
        LOG.exception("the failure of %s cannot be told trace_id=%s", where, trace)
        error = {**error_object(UNAVAILABLE), TRACE: trace}
    span = current_span()
    if span is not None:
        mark(span, fault_of(error, _ORIGIN), 500, VOCABULARY.row(error["code"]).message)
    LOG.log(
        logging.INFO if expected else logging.ERROR,
        "%s failed with %s trace_id=%s",
        where,
        error["code"],
        trace,
        exc_info=None if expected else exc,
    )
    return error


def trace_of(context: Any) -> str:
    """The id of what is going on, from the request's headers where they are known."""
    state = getattr(context, "state", None)
    headers = state.get("headers") if isinstance(state, dict) else None
    parent = headers.get("traceparent") if isinstance(headers, dict) else None
    return trace_id(parent if isinstance(parent, str) else None)


def failed_events(
    error: dict[str, Any], *, task_id: str, context_id: str, mime_type: bool
) -> tuple[TaskArtifactUpdateEvent, TaskStatusUpdateEvent]:
    """The two events that end a task: the artifact, and the status with its message."""
    task = failed_task(error, task_id=task_id, context_id=context_id, mime_type=mime_type)
    return (
        TaskArtifactUpdateEvent(
            task_id=task_id, context_id=context_id, artifact=task.artifacts[0], last_chunk=True
        ),
        TaskStatusUpdateEvent(task_id=task_id, context_id=context_id, status=task.status),
    )


def failed_task(error: dict[str, Any], *, task_id: str, context_id: str, mime_type: bool) -> Task:
    """A failure as one task that has it all, for those who hear of no events."""
    parts = [Part(text=sentence(error)), _data(error, mime_type=mime_type)]
    message = Message(
        role=Role.ROLE_AGENT, message_id=str(uuid4()), task_id=task_id, context_id=context_id, parts=parts
    )
    status = TaskStatus(state=TaskState.TASK_STATE_FAILED, message=message)
    status.timestamp.GetCurrentTime()
    return Task(
        id=task_id,
        context_id=context_id,
        status=status,
        artifacts=[Artifact(artifact_id=ARTIFACT_ID, parts=parts)],
    )


def _data(error: dict[str, Any], *, mime_type: bool) -> Part:
    part = Part()
    ParseDict({KEY: error}, part.data.struct_value)
    if mime_type:
        part.media_type = MIME_TYPE
    return part


def refusal(error: dict[str, Any]) -> InternalError:
    """A failure where there is no task to say it: the protocol's own error, with the object in its data."""
    return InternalError(message=sentence(error), data={KEY: error})


# Kinds that say something about the request. The others say that the agent broke, which our own words can say.
_ABOUT_THE_REQUEST = frozenset(JSON_RPC_ERROR_CODE_MAP) - {InternalError, InvalidAgentResponseError}


def protocol_error(exc: BaseException) -> A2AError | None:
    """
    The protocol's own error to answer with, where somebody raised one on purpose; None where it is a failure.

    The SDK's texts are about what the caller sent, and stay, but for what looks like an address, a path, a secret. Of one
    that others raised only the kind is kept: its words may have come from inside. One that a client raised is about
    another agent.
    """
    if not isinstance(exc, A2AError):
        return None
    modules = _raised_in(exc)
    if any(module.startswith(("a2a.client.", "a2a.compat.")) for module in modules):
        return None
    kind = next((cls for cls in type(exc).__mro__ if cls in _ABOUT_THE_REQUEST), None)
    if kind is None:
        return None
    if not modules or not modules[-1].startswith(("a2a.", "amends.")):
        return kind()
    from amends.core.redaction import redact, redact_value

    return kind(redact(exc.message), redact_value(exc.data))


def _raised_in(exc: BaseException) -> list[str]:
    """The modules an exception came through, the one that raised it last."""
    found, trace = [], exc.__traceback__
    while trace is not None:
        found.append(str(trace.tb_frame.f_globals.get("__name__")))
        trace = trace.tb_next
    return found
