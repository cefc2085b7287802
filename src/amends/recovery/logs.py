"""What recovery writes to the standard log: the default hook for events, and calls that ignored their time-out."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import msgspec

from amends.recovery.events import Event

__all__ = ["LONG_WAIT", "describe_call", "log_event", "log_late_call", "log_level"]

_log = logging.getLogger("amends.recovery")


LONG_WAIT = 2.0
"""Seconds. A longer wait is logged as a warning, because a person may be waiting for the call."""


def describe_call(operation: str, method: str, url: str) -> str:
    """
    Return what was called, as one short text.

    >>> describe_call("search", "GET", "https://api.example.com/v1"), describe_call("", "", "")
    ('search GET https://api.example.com/v1', 'operation')
    """
    # The HTTP clients name an operation "GET api.example.com"; the URL says more.
    name = "" if url and method and operation.startswith(f"{method} ") else operation
    return " ".join(dict.fromkeys(each for each in (name, method, url) if each)) or "operation"


_WAITS = frozenset({"retry", "queued"})


def log_level(event: Event) -> int:
    """Return the level of an event: WARNING for a long wait and when recovery gives up, otherwise INFO."""
    if event.kind == "gave-up" or (event.kind in _WAITS and (event.delay or 0.0) > LONG_WAIT):
        return logging.WARNING
    return logging.INFO


def log_event(event: Event) -> None:
    """
    Log one event to the logger "amends.recovery". `record.amends` is a dict of the event's fields.

    The message has the kind, what was called (the operation's name, the method and the URL without query), the code, the
    HTTP status, the number of calls so far, the reason, the wait and the trace id, as far as they are known.
    """
    level = log_level(event)
    if not _log.isEnabledFor(level):
        return
    called = describe_call(event.operation, event.method, event.url)
    facts = [event.reason]
    if event.delay is not None:
        facts.append(f"{event.delay:.3g} s")
    if event.trace_id:
        facts.append(f"trace id {event.trace_id}")
    _log.log(
        level,
        "%s %s: %s%s after attempt %d (%s)",
        event.kind,
        called,
        event.code,
        "" if event.status is None else f" {event.status}",
        event.attempt,
        ", ".join(facts),
        extra={"amends": msgspec.structs.asdict(event)},
    )


_late: set[str] = set()
_MOST_LATE = 100


def log_late_call(call: Callable[..., Any], timeout: float) -> None:
    """Log, once per function, that a plain call took longer than its time-out: a thread cannot be stopped."""
    name = getattr(call, "__qualname__", type(call).__name__)
    if name in _late or len(_late) >= _MOST_LATE:
        return
    _late.add(name)
    _log.warning(
        "%s took longer than timeout=%g: a running function cannot be stopped. Give its client a time-out "
        "(amends.recovery.time_left() has the seconds left), or use arecover, which cancels the call",
        name,
        timeout,
    )
