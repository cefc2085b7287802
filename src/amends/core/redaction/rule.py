"""What a leak is, and one row of the table that finds them."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

__all__ = ["MARKER", "Judge", "Leak", "Rule", "words"]

MARKER = "[redacted]"


class Leak(NamedTuple):
    """One stretch of text that must not leave; `kind` is address, host, path, sql, trace or token."""

    kind: str
    start: int
    end: int


Judge = Callable[["re.Match[str]"], tuple[int, int] | None]
"""The stretch of a match that leaks, or None when it is innocent."""


class Rule(NamedTuple):
    """One shape of a leak."""

    kind: str
    # Lower-case substrings, one of which every match contains.
    needs: tuple[str, ...]
    source: str
    flags: int = 0
    # The stretch of a match that leaks, or None. Without it: the group `leak` if the pattern has one, else the match.
    judge: Judge | None = None

    @property
    def pattern(self) -> re.Pattern[str]:
        """The compiled pattern."""
        return _compiled(self.source, self.flags)


@cache
def _compiled(source: str, flags: int) -> re.Pattern[str]:
    # One by one, when a text first needs it: together they would cost a one-shot command tens of milliseconds.
    return re.compile(source, flags)


def words(text: str) -> frozenset[str]:
    """A list of words, written as one."""
    return frozenset(text.split())
