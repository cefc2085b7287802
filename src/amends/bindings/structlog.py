"""
Events of recovery as structlog records, with names and codes only.

    import amends.bindings.structlog
    amends.bindings.structlog.install()

A record has the level, the time stamp and context (agent, taskId) that the application's processors add, and `error`
with `code` and the code's own `message` (T11).
"""

from __future__ import annotations

from logging import WARNING

try:
    import structlog
except ImportError as missing:
    raise ImportError("amends.bindings.structlog needs structlog: pip install structlog") from missing

from amends.core.vocabulary import row_for
from amends.recovery.events import Event, add_hook, log_level, remove_hook

__all__ = ["install", "log_event", "remove"]


def install() -> None:
    """
    Write every event to the logger "amends.recovery" from now on. A second call changes nothing.

        structlog.configure(processors=[structlog.processors.TimeStamper(), structlog.processors.JSONRenderer()])
        amends.bindings.structlog.install()
    """
    add_hook(log_event)


def remove() -> None:
    """
    Stop writing events.

    >>> install()
    >>> remove()
    """
    remove_hook(log_event)


def log_event(event: Event) -> None:
    """
    Write one event as one record, at the level that the standard log has for it (`amends.recovery.events`).

    `install` adds it to the hooks. To replace the standard log records, make it the only hook:

        amends.recovery.set_hooks(amends.bindings.structlog.log_event)
    """
    fields: dict[str, object] = {
        "operation": event.operation,
        "attempt": event.attempt,
        "reason": event.reason,
        "recovery": event.recovery.value,
        "elapsed": round(event.elapsed, 6),
        "error": {"code": event.code, "message": row_for(event.vocabulary, event.code).message},
    }
    more = {
        "delay": event.delay,
        "method": event.method or None,
        "url": event.url or None,
        "status": event.status,
        "trace_id": event.trace_id,
    }
    fields |= {name: value for name, value in more.items() if value is not None}
    # Get the logger for each event: the application may configure structlog after `install`.
    log = structlog.get_logger("amends.recovery")
    (log.warning if log_level(event) == WARNING else log.info)(event.kind, **fields)
