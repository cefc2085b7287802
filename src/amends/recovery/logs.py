"""Recovery in the standard log: one line per event, at INFO, with the event's fields as `record.amends`."""

from __future__ import annotations

import logging

import msgspec

from amends.recovery.events import Event

__all__ = ["log_event"]

_log = logging.getLogger("amends.recovery")


def log_event(event: Event) -> None:
    """
    The default hook. INFO, because whoever is given up on gets an exception anyway.

    The logger is "amends.recovery"; `record.amends` is a dict of the event's fields.
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
