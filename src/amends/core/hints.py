"""Bound a received wait when recovery acts on it. Until then it is kept as received (A9)."""

from __future__ import annotations

from math import ceil, isfinite
from typing import Any

__all__ = ["LONGEST", "finite", "usable"]

LONGEST = 3600.0
"""A longer hint counts as one hour (A10)."""


def finite(value: Any) -> float | int | None:
    """Return a number unchanged, or None for other types, booleans, NaN, infinities, and integers no double can hold."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
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
