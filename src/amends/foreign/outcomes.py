"""What a foreign failure means, as one of few values, so that a table's row is a name and a meaning."""

from __future__ import annotations

from typing import Any, NamedTuple

from amends.core.enums import Executed, Recovery
from amends.core.fault import Fault
from amends.core.vocabularies.everyday import VOCABULARY

__all__ = [
    "ABORTED",
    "BROKEN",
    "CANCELLED",
    "CONFLICT",
    "DAMAGED",
    "EXPIRED",
    "FORBIDDEN",
    "INVALID",
    "LOST",
    "MISSING",
    "NOT_SIGNED_IN",
    "NOT_STARTED_IN_TIME",
    "REFUSED",
    "THROTTLED",
    "UNREADABLE",
    "UNTRUSTED",
    "Meaning",
    "fault_of",
]


class Meaning(NamedTuple):
    """An everyday code, whether the call can have had its effect (M3), and a recovery other than the code's own."""

    code: str
    executed: Executed
    recovery: Recovery | None = None


_NO, _MAYBE = Executed.NO, Executed.MAYBE

REFUSED = Meaning("SERVICE_UNAVAILABLE", _NO)
"""Nothing was sent: no address, no connection, no place in the pool, or the other side was not ready to begin."""
LOST = Meaning("SERVICE_UNAVAILABLE", _MAYBE)
"""The connection or the answer was lost on the way, or room ran out underneath."""
UNTRUSTED = Meaning("SERVICE_UNAVAILABLE", _NO, Recovery.TERMINAL)
"""The other side could not prove who it is; no waiting mends that."""
NOT_STARTED_IN_TIME = Meaning("TIMEOUT", _NO)
"""Time ran out before anything was sent."""
EXPIRED = Meaning("TIMEOUT", _MAYBE)
"""Time ran out while it may have been at work."""
THROTTLED = Meaning("RATE_LIMITED", _NO)
INVALID = Meaning("VALIDATION_ERROR", _NO)
"""It was refused as it stands."""
UNREADABLE = Meaning("VALIDATION_ERROR", _MAYBE)
"""A document could not be read. It may be the request, or the answer to a call that worked."""
MISSING = Meaning("NOT_FOUND", _NO)
FORBIDDEN = Meaning("PERMISSION_DENIED", _NO)
NOT_SIGNED_IN = Meaning("UNAUTHENTICATED", _NO)
CONFLICT = Meaning("CONFLICT", _NO)
ABORTED = Meaning("CONFLICT", _NO, Recovery.TRANSIENT)
"""It lost against a concurrent one and was undone: the same again, from its beginning, may succeed."""
CANCELLED = Meaning("CANCELLED", _MAYBE)
BROKEN = Meaning("INTERNAL_ERROR", _MAYBE)
"""Nobody knows."""
DAMAGED = Meaning("INTERNAL_ERROR", _MAYBE, Recovery.TERMINAL)
"""Stored data is damaged: no repeat mends that."""


def fault_of(meaning: Meaning, **more: Any) -> Fault:
    """The Fault of a meaning, in the code's own words."""
    row = VOCABULARY.rows[meaning.code]
    recovery = meaning.recovery or row.recovery
    return Fault(
        code=row.code,
        message=row.message,
        recovery=recovery,
        vocabulary=VOCABULARY.name,
        executed=meaning.executed,
        actor=row.actor_under(recovery),
        **more,
    )
