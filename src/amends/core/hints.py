"""What a received wait means when somebody acts on it. Values are kept as received until then (A9)."""

from __future__ import annotations

from math import ceil, isfinite
from typing import Any

__all__ = ["LONGEST", "finite", "usable"]

LONGEST = 3600.0
"""No hint counts for more than an hour (A10)."""


def finite(value: Any) -> float | int | None:
    """A number as it came, or None for what is no number: other types, booleans, NaN, infinities, 10**400."""
    if value.__class__ is int:
        # Beyond the range of a double it is Infinity to every other reader of JSON.
        return value if -_MAX_DOUBLE <= value <= _MAX_DOUBLE else None
    return value if value.__class__ is float and isfinite(value) else None


def usable(vocabulary: str, retry_after: float | None) -> float | None:
    """
    The seconds a hint asks for, bounded: None when there is no usable hint.

    AdCP: rounded up to whole seconds, then clamped to 1–3600. Elsewhere fractions count, a negative one is
    none, and nothing counts for more than an hour.
    """
    if retry_after is None or not isfinite(retry_after):
        return None
    if vocabulary == "adcp":
        whole = ceil(retry_after)
        return LONGEST if whole > LONGEST else float(whole) if whole > 1 else 1.0
    if retry_after < 0:
        return None
    return LONGEST if retry_after > LONGEST else float(retry_after)


_MAX_DOUBLE = int(1.7976931348623157e308)
