"""
The events of tasks that hooks get, and how failures are logged (T11): with the standard library or with structlog.

Events have names, codes and numbers, and never payloads, results or texts of failures. A log record has the members of the agent error contract (level, timestamp, agent, taskId, error {code, message}) and the event. The
message is the standard message of the code, never the text of a failure.
"""

from __future__ import annotations

import logging
from typing import Literal

import msgspec

from amends.core.enums import Recovery
from amends.core.vocabulary import row_for
from amends.serving.tracing import id_of
from amends.tasks.documents import stamp

__all__ = ["Kind", "TaskEvent", "log_event", "record_of", "structlog_event"]

_log = logging.getLogger("amends.tasks")

Kind = Literal[
    "submitted",
    "attempt",
    "retry",
    "failed",
    "fallback",
    "finished",
    "asked",
    "doubt",
    "undone",
    "undo-failed",
    "taken-over",
    "ended",
]
"""The kind of an event."""


class TaskEvent(msgspec.Struct, frozen=True, kw_only=True):
    """One event of one task."""

    kind: Kind
    at: float
    task: str
    agent: str | None = None
    capability: str | None = None
    step: str | None = None
    attempt: int | None = None
    code: str | None = None
    recovery: Recovery | None = None
    delay: float | None = None
    reason: str | None = None
    status: str | None = None
    began: float | None = None
    trace: str | None = None
    """The W3C `traceparent` of the task's submission."""

    @property
    def recoverable(self) -> bool:
        """`recoverable` of the agent error contract: False only for a terminal failure."""
        return self.recovery is not Recovery.TERMINAL

    @property
    def message(self) -> str:
        """The standard message of the code; never the text of the failure."""
        return row_for("task", self.code or "").message if self.code else ""


# Retries are information, events that may need attention are warnings, and failures are errors.
_LEVELS: dict[Kind, str] = {
    "retry": "info",
    "fallback": "warning",
    "failed": "error",
    "undo-failed": "error",
    "doubt": "warning",
    "taken-over": "warning",
}


def record_of(event: TaskEvent) -> dict[str, object] | None:
    """The log record of an event, or None if the event is not a failure."""
    level = _LEVELS.get(event.kind)
    if level is None:
        return None
    record: dict[str, object] = {
        "level": level,
        "timestamp": stamp(event.at),
        "agent": event.agent,
        "taskId": event.task,
        "event": event.kind,
    }
    if event.code is not None:
        record["error"] = {"code": event.code, "message": event.message}
    trace = id_of(event.trace)
    if trace is not None:
        record["trace_id"] = trace
    for name in ("capability", "step", "attempt", "delay", "reason"):
        value = getattr(event, name)
        if value is not None:
            record[name] = value
    return record


def log_event(event: TaskEvent) -> None:
    """The default hook: logs to "amends.tasks", with the record as `record.amends`."""
    record = record_of(event)
    if record is None:
        return
    level = logging.getLevelNamesMapping()[_LEVELS[event.kind].upper()]
    if not _log.isEnabledFor(level):
        return
    _log.log(
        level,
        "task %s: %s %s%s%s",
        event.task,
        event.kind,
        event.code or "",
        f" at {event.agent}" if event.agent else "",
        f" [trace_id={record['trace_id']}]" if "trace_id" in record else "",
        extra={"amends": record},
    )


def structlog_event(event: TaskEvent) -> None:
    """
    A hook for structlog: `amends.tasks.add_hook(amends.tasks.logs.structlog_event)`.

    Raises:
        ImportError: structlog is not installed; the message has the install command.
    """
    record = record_of(event)
    if record is None:
        return
    try:
        import structlog
    except ImportError as missing:
        raise ImportError(
            "amends.tasks.logs.structlog_event needs structlog: pip install structlog"
        ) from missing
    what = record.pop("event")
    getattr(structlog.get_logger("amends.tasks"), _LEVELS[event.kind])(what, **record)
