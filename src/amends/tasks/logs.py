"""
Log failures of tasks as structured records (T11), with the standard library or with structlog.

The record has the members of the agent error contract (level, timestamp, agent, taskId, error {code, message}) and the event. The
message is the standard message of the code, never the text of a failure.
"""

from __future__ import annotations

import logging
from typing import Any

from amends.serving.tracing import id_of
from amends.tasks.documents import stamp
from amends.tasks.task_event import Kind, TaskEvent

__all__ = ["log_event", "record_of", "structlog_event"]

_log = logging.getLogger("amends.tasks")

# Retries are information, events that may need attention are warnings, and failures are errors.
_LEVELS: dict[Kind, str] = {
    "retry": "info",
    "fallback": "warning",
    "failed": "error",
    "undo-failed": "error",
    "doubt": "warning",
    "taken-over": "warning",
}


def record_of(event: TaskEvent) -> dict[str, Any] | None:
    """The log record of an event, or None if the event is not a failure."""
    level = _LEVELS.get(event.kind)
    if level is None:
        return None
    record: dict[str, Any] = {
        "level": level,
        "timestamp": stamp(event.at),
        "agent": event.agent,
        "taskId": event.task,
        "event": event.kind,
    }
    if event.code is not None:
        record["error"] = {"code": event.code, "message": event.message}
    trace = id_of(event.trace) if event.trace else None
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
    level = logging.getLevelNamesMapping()[record["level"].upper()]
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
    level = record.pop("level")
    getattr(structlog.get_logger("amends.tasks"), level)(what, level=level, **record)
