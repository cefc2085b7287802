"""
Tasks in a log: one structured record per failure (T11), in the standard log or in structlog.

The record is S3's: level, timestamp, agent, taskId, error {code, message}, and beside them what happened to the task. The
message is what the code means, never what a failure said.
"""

from __future__ import annotations

import logging
from typing import Any

from amends.tasks.documents import stamp
from amends.tasks.telemetry import Kind, TaskEvent

__all__ = ["log_event", "record_of", "structlog_event"]

_log = logging.getLogger("amends.tasks")

# What goes on is information; what a person should look at is a warning; what a task ended with is an error.
_LEVELS: dict[Kind, str] = {
    "retry": "info",
    "fallback": "warning",
    "failed": "error",
    "undo-failed": "error",
    "doubt": "warning",
    "taken-over": "warning",
}


def record_of(event: TaskEvent) -> dict[str, Any] | None:
    """S3's record of an event, or None for one that is no failure."""
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
    for name in ("capability", "step", "attempt", "delay", "reason"):
        value = getattr(event, name)
        if value is not None:
            record[name] = value
    return record


def log_event(event: TaskEvent) -> None:
    """The default hook: logger "amends.tasks", S3's record as `record.amends`."""
    record = record_of(event)
    if record is None:
        return
    level = logging.getLevelNamesMapping()[record["level"].upper()]
    if not _log.isEnabledFor(level):
        return
    _log.log(
        level,
        "task %s: %s %s%s",
        event.task,
        event.kind,
        event.code or "",
        f" at {event.agent}" if event.agent else "",
        extra={"amends": record},
    )


def structlog_event(event: TaskEvent) -> None:
    """
    A hook for structlog: `amends.tasks.add_hook(amends.tasks.logs.structlog_event)`.

    Raises:
        ImportError: structlog is missing; the message says how to get it.
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
