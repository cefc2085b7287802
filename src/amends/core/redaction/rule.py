"""The types of the redaction table: a leak, and a rule that finds one shape of leak."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

from amends.core.json_value import MARKER

__all__ = ["KINDS", "MARKER", "SECRETS", "Judge", "Leak", "Rule", "compiled", "words"]

KINDS = frozenset({"address", "host", "path", "sql", "trace", "token"})
SECRETS = frozenset({"token"})
"""The kinds that are credentials, as opposed to text about the inside of a system."""


class Leak(NamedTuple):
    """A span of text that must not leave; `kind` is one of `KINDS`."""

    kind: str
    start: int
    end: int


Judge = Callable[["re.Match[str]"], tuple[int, int] | None]
"""Returns the span of a match that leaks, or None when the match is harmless."""


class Rule(NamedTuple):
    """One row of the table: a pattern, and a function that decides about its matches."""

    kind: str
    # Lower-case substrings, one of which every match contains.
    needs: tuple[str, ...]
    source: str
    flags: int = 0
    # Decides about a match. Without it, the group `leak` leaks if the pattern has one, else the whole match.
    judge: Judge | None = None


@cache
def compiled(source: str, flags: int) -> re.Pattern[str]:
    """Return the compiled pattern of a rule."""
    # Compiling all patterns at import would cost a short command tens of milliseconds.
    return re.compile(source, flags)


def words(text: str) -> frozenset[str]:
    """Split a space-separated list."""
    return frozenset(text.split())
