"""
Explicit invitations to send the same request again (M3).

A structured failure that is transient and names a wait tells the caller to repeat the request, so the request had no
effect. `excluded` lists the failures for which a wait is no such statement: time-outs, internal errors, cancellations and
requests whose effect is unknown.
"""

from __future__ import annotations

__all__ = ["CODES", "STATUSES", "excluded"]

STATUSES = frozenset({408, 500, 502, 504})
CODES = frozenset({"TIMEOUT", "INTERNAL_ERROR", "CANCELLED", "HEARTBEAT_LOST", "EFFECT_UNKNOWN"})


def excluded(code: str, status: int | None = None, *, intent: bool = False) -> bool:
    """
    Return whether a transient failure with a wait may still have had its effect.

    >>> excluded("SERVICE_UNAVAILABLE", 503), excluded("TIMEOUT", 504)
    (False, True)
    """
    return intent or code in CODES or status in STATUSES
