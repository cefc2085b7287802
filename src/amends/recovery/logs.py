"""The default hook: writes each event of recovery to the standard log."""

from __future__ import annotations

import logging

import msgspec

from amends.recovery.events import Event

__all__ = ["log_event"]

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
