"""
Received waits: within which bounds recovery acts on them (until then they are kept as received, A9), and what they prove.

A structured failure that is transient and names a wait is an explicit invitation to send the same request again, so the
request had no effect (M3). `excluded` lists the failures for which a wait is no such statement: time-outs, internal errors,
cancellations and requests whose effect is unknown.
"""

from __future__ import annotations

from math import ceil, isfinite

from amends.core.executed import may_invite

__all__ = ["LONGEST", "NO_INVITATION", "excluded", "finite", "usable"]

LONGEST = 3600.0
"""A longer hint counts as one hour (A10)."""


_NUMBERS = (int, float)


def finite(value: object) -> float | int | None:
    """Return a number unchanged, or None for other types, booleans, NaN, infinities, and integers no double can hold."""
    if not isinstance(value, _NUMBERS) or isinstance(value, bool):
        return None
    try:
        return value if isfinite(value) else None
    except OverflowError:
        return None


def usable(vocabulary: str, retry_after: float | None) -> float | None:
    """
    Return the seconds that a hint asks for, within bounds, or None if it is not usable.

    AdCP's hints are rounded up to whole seconds and clamped to 1–3600. Others may be fractions and are at most an
    hour; a negative one is ignored.
    """
    if retry_after is None or not isfinite(retry_after):
        return None
    if vocabulary == "adcp":
        whole = ceil(retry_after)
        return LONGEST if whole > LONGEST else float(whole) if whole > 1 else 1.0
    if retry_after < 0:
        return None
    return LONGEST if retry_after > LONGEST else float(retry_after)


NO_INVITATION = frozenset({"TIMEOUT", "INTERNAL_ERROR", "CANCELLED", "HEARTBEAT_LOST", "EFFECT_UNKNOWN"})


def excluded(code: str, status: int | None = None, *, intent: bool = False) -> bool:
    """
    Return whether a transient failure with a wait may still have had its effect.

    >>> excluded("SERVICE_UNAVAILABLE", 503), excluded("TIMEOUT", 504)
    (False, True)
    """
    return intent or code in NO_INVITATION or not may_invite(status)
