"""Times on the wire: ISO 8601 in UTC with a Z (section 9.5). In the process they are seconds since the epoch."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import lru_cache
from time import time_ns

__all__ = ["now_text", "seconds_of", "text_of"]

# Offsets other than Z are refused (9.5: UTC, Z suffix); +00:00 means the same and is read.
_FORM = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:[Zz]|\+00:00)", re.ASCII)


def text_of(seconds: float) -> str:
    """
    A time for the wire, with milliseconds where it has some.

    >>> text_of(1778715720)
    '2026-05-13T23:42:00Z'
    """
    second, millisecond = divmod(round(seconds * 1000), 1000)
    return f"{_second(second)}.{millisecond:03d}Z" if millisecond else f"{_second(second)}Z"


@lru_cache(maxsize=128)
def _second(second: int) -> str:
    """A whole second; most times of one moment share it, and a calendar costs more than a look."""
    return datetime.fromtimestamp(second, UTC).isoformat()[:19]


def seconds_of(text: object) -> float | None:
    """
    The seconds of a time from the wire, or None when it is none in UTC.

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


class _Now:
    """The present as text. The part up to the second is kept: formatting it costs more than looking at the clock."""

    __slots__ = ("_second", "_text")

    def __init__(self) -> None:
        self._second = -1
        self._text = ""

    def __call__(self) -> str:
        second, rest = divmod(time_ns(), 1_000_000_000)
        if second != self._second:
            self._text = text_of(second)[:-1]
            self._second = second
        return f"{self._text}.{rest // 1_000_000:03d}Z"


now_text = _Now()
"""The present, for the wire."""
