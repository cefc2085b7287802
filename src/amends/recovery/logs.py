"""What recovery writes to the standard log: the default hook for events, and calls that ignored their time-out."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import msgspec

from amends.recovery.events import Event

__all__ = ["log_event", "log_late_call"]

_log = logging.getLogger("amends.recovery")


def log_event(event: Event) -> None:
    """
    Log one event at INFO, to the logger "amends.recovery". `record.amends` is a dict of the event's fields.

    The level is INFO also when recovery gives up, because the caller gets an exception then.
    """
    if not _log.isEnabledFor(logging.INFO):
        return
    _log.info(
        "%s %s: %s after attempt %d (%s%s)",
        event.kind,
        event.operation or "operation",
        event.code,
        event.attempt,
        event.reason,
        "" if event.delay is None else f", {event.delay:.3g} s",
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
