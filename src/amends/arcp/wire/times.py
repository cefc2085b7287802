"""Times on the wire: ISO 8601 in UTC with a Z (section 9.5). In the process they are seconds since the epoch."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import lru_cache
from time import time_ns

__all__ = ["now_text", "seconds_of", "text_of"]

# Offsets other than Z are rejected (9.5: UTC, Z suffix), except +00:00, which means the same.
_FORM = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:[Zz]|\+00:00)", re.ASCII)


def text_of(seconds: float) -> str:
    """
    Format a time for the wire, with milliseconds if it has any.

    >>> text_of(1778715720)
    '2026-05-13T23:42:00Z'
    """
    second, millisecond = divmod(round(seconds * 1000), 1000)
    return f"{_second(second)}.{millisecond:03d}Z" if millisecond else f"{_second(second)}Z"


@lru_cache(maxsize=128)
def _second(second: int) -> str:
    """Format a whole second; cached, because most recent times share it and formatting costs more than a lookup."""
    return datetime.fromtimestamp(second, UTC).isoformat()[:19]


def seconds_of(text: object) -> float | None:
    """
    Parse a time from the wire; None if it is invalid or not in UTC.

    >>> seconds_of("2026-05-13T23:42:00Z")
    1778715720.0
    >>> seconds_of("2026-05-13T23:42:00+02:00") is None
    True
    """
    if not isinstance(text, str) or not _FORM.fullmatch(text):
        return None
    try:
        return datetime.fromisoformat(text.upper()).timestamp()
    except (ValueError, OverflowError):
        return None


def now_text() -> str:
    """The current time for the wire, always with milliseconds."""
    second, rest = divmod(time_ns(), 1_000_000_000)
    return f"{_second(second)}.{rest // 1_000_000:03d}Z"
