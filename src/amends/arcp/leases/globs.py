"""
Patterns over segments (v1.0, section 9.2): `*` stands for one segment or a part of one, `**` for any number of them.

Anchored at both ends. Every other character stands for itself. One walk answers both questions: does a pattern match
a target, and does it match everything another pattern matches (9.4)? A wildcard of the other pattern is then a symbol
of its own that only a wildcard can take in, so what cannot be proven is refused.

The walk goes back to the last star only, as two pointers do; its cost is bounded by the product of both lengths.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

__all__ = ["ANY", "MANY", "Segment", "glob_covers", "parse_segment", "segment_covers"]


class _Star:
    """A wildcard, equal to nothing but itself."""

    __slots__ = ("_sign",)

    def __init__(self, sign: str) -> None:
        self._sign = sign

    def __repr__(self) -> str:
        return self._sign


ANY: Any = _Star("*")
"""Any run of characters within a segment."""
MANY: Any = _Star("**")
"""Any number of segments."""

Segment = Any
"""A segment of a pattern: MANY, or a tuple of characters and ANY; of a target, a tuple of characters."""


def parse_segment(text: str) -> Segment | None:
    """
    A pattern's segment; None where `**` is only a part of one, which nobody has defined.

    >>> parse_segment("a*"), parse_segment("**"), parse_segment("a**")
    (('a', *), **, None)
    """
    if text == "**":
        return MANY
    if "**" in text:
        return None
    return tuple(ANY if character == "*" else character for character in text)


def segment_covers(pattern: Segment, segment: Segment) -> bool:
    """Whether a pattern's segment takes in every text that `segment` stands for."""
    if pattern is MANY or segment is MANY:
        return pattern is MANY
    if pattern == (ANY,):
        # A whole segment is never empty: `/a/*` is not `/a/`.
        return bool(segment)
    return _covers(pattern, segment, ANY, _same)


def glob_covers(pattern: Sequence[Segment], segments: Sequence[Segment]) -> bool:
    """Whether a pattern takes in every target that `segments` stand for: one target, or those of another pattern."""
    return _covers(pattern, segments, MANY, segment_covers)


def _same(one: Any, other: Any) -> bool:
    return bool(one == other)


def _covers(
    pattern: Sequence[Any], items: Sequence[Any], star: Any, covers: Callable[[Any, Any], bool]
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
