"""Lines that fit a width."""

from __future__ import annotations

import textwrap

__all__ = ["UNLIMITED", "wrapped"]

UNLIMITED = 10_000
"""The width of text that is not wrapped."""


def wrapped(text: str, width: int, indent: int) -> str:
    """
    Return the text in lines of at most `width` characters; those after the first are indented.

    >>> print("  wait  " + wrapped("until the service answers again", 24, 8))
      wait  until the
            service answers
            again
    """
    lines = textwrap.wrap(text, max(width - indent, 10), break_on_hyphens=False, break_long_words=False)
    return f"\n{' ' * indent}".join(lines)
