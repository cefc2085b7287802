"""The meanings that a failure of another library can have. The tables of this package refer to them."""

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
    "CROWDED",
    "DAMAGED",
    "DENIED_CONTENT",
    "EXPIRED",
    "FORBIDDEN",
    "FULL",
    "INVALID",
    "LOST",
    "MISSING",
    "NOT_SIGNED_IN",
    "NOT_STARTED_IN_TIME",
    "OVER_QUOTA",
    "REFUSED",
    "THROTTLED",
    "TOO_LONG",
    "UNREADABLE",
    "UNTRUSTED",
    "Meaning",
    "fault_of",
]


class Meaning(NamedTuple):
    """An everyday code, whether the call can have had its effect (M3), and the recovery if it is not the code's own."""

    code: str
    executed: Executed
    recovery: Recovery | None = None


_NO, _MAYBE = Executed.NO, Executed.MAYBE

REFUSED = Meaning("SERVICE_UNAVAILABLE", _NO)
"""Nothing was sent: no address, no connection, no free place in the pool, or the other side was not ready."""
LOST = Meaning("SERVICE_UNAVAILABLE", _MAYBE)
"""The connection or the answer was lost, or a resource such as disk space ran out."""
UNTRUSTED = Meaning("SERVICE_UNAVAILABLE", _NO, Recovery.TERMINAL)
"""The other side could not prove its identity; waiting does not change that."""
NOT_STARTED_IN_TIME = Meaning("TIMEOUT", _NO)
"""A time-out before anything was sent."""
EXPIRED = Meaning("TIMEOUT", _MAYBE)
"""A time-out after the request was sent."""
THROTTLED = Meaning("RATE_LIMITED", _NO)
INVALID = Meaning("VALIDATION_ERROR", _NO)
"""The request was refused because of its content."""
UNREADABLE = Meaning("VALIDATION_ERROR", _MAYBE)
"""A document could not be read. It may be the request, or the answer to a call that had its effect."""
MISSING = Meaning("NOT_FOUND", _NO)
FORBIDDEN = Meaning("PERMISSION_DENIED", _NO)
NOT_SIGNED_IN = Meaning("UNAUTHENTICATED", _NO)
CONFLICT = Meaning("CONFLICT", _NO)
ABORTED = Meaning("CONFLICT", _NO, Recovery.TRANSIENT)
"""A concurrent transaction won and this one was rolled back. Repeating it from its beginning may succeed."""
CANCELLED = Meaning("CANCELLED", _MAYBE)
BROKEN = Meaning("INTERNAL_ERROR", _MAYBE)
"""Nothing more is known."""
DAMAGED = Meaning("INTERNAL_ERROR", _MAYBE, Recovery.TERMINAL)
"""Stored data is damaged; a repeat does not change that."""

OVER_QUOTA = Meaning("QUOTA_EXCEEDED", _NO)
"""A quota, credit or spending limit is used up."""
TOO_LONG = Meaning("CONTEXT_TOO_LONG", _NO)
DENIED_CONTENT = Meaning("CONTENT_REFUSED", _NO)
CROWDED = Meaning("OVERLOADED", _MAYBE)
FULL = Meaning("OVERLOADED", _NO)
"""A queue, a pool or the memory of the server is full; the call was not accepted."""


def fault_of(meaning: Meaning, **more: Any) -> Fault:
    """Return the Fault of a meaning, with the message of its code. `more` are further fields of the Fault."""
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
