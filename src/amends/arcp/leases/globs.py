"""
Glob patterns over segments (v1.0, section 9.2): `*` matches one segment or a part of one, `**` any number of segments.

Patterns are anchored at both ends, and every other character matches itself. One algorithm answers both questions: does a
pattern match a target, and does it match everything that another pattern matches (9.4)? In the second case a wildcard of the
other pattern is a symbol that only a wildcard matches, so a relation that cannot be proved is rejected.

The algorithm backtracks only to the last star; its cost is bounded by the product of both lengths.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

__all__ = ["ANY", "MANY", "Segment", "glob_covers", "parse_segment", "segment_covers"]


class _Star:
    """A wildcard, equal only to itself."""

    __slots__ = ("_sign",)

    def __init__(self, sign: str) -> None:
        self._sign = sign

    def __repr__(self) -> str:
        return self._sign


ANY: object = _Star("*")
"""Any run of characters within a segment."""
MANY: object = _Star("**")
"""Any number of segments."""

Segment = Any
"""A segment of a pattern: MANY, or a tuple of characters and ANY; of a target, a tuple of characters."""


def parse_segment(text: str) -> Segment | None:
    """
    Parse a segment of a pattern; None if `**` is only a part of it, which is undefined.

    >>> parse_segment("a*"), parse_segment("**"), parse_segment("a**")
    (('a', *), **, None)
    """
    if text == "**":
        return MANY
    if "**" in text:
        return None
    return tuple(ANY if character == "*" else character for character in text)


def segment_covers(pattern: Segment, segment: Segment) -> bool:
    """Whether a pattern's segment matches every text that `segment` matches."""
    if pattern is MANY or segment is MANY:
        return pattern is MANY
    if pattern == (ANY,):
        # A whole segment is never empty: `/a/*` is not `/a/`.
        return bool(segment)
    return _covers(pattern, segment, ANY, _same)


def glob_covers(pattern: Sequence[Segment], segments: Sequence[Segment]) -> bool:
    """Whether a pattern matches every target that `segments` match: one target, or those of another pattern."""
    return _covers(pattern, segments, MANY, segment_covers)


def _same(one: object, other: object) -> bool:
    return bool(one == other)


def _covers(
    pattern: Sequence[Any], items: Sequence[Any], star: object, covers: Callable[[Any, Any], bool]
) -> bool:
    at = taken = 0
    back = resume = -1
    while taken < len(items):
        if at < len(pattern) and pattern[at] is star:
            back, resume = at, taken
            at += 1
        elif at < len(pattern) and covers(pattern[at], items[taken]):
            at += 1
            taken += 1
        elif back >= 0:
            resume += 1
            at, taken = back + 1, resume
        else:
            return False
    return all(item is star for item in pattern[at:])
