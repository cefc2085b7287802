"""Terminal colours."""

from __future__ import annotations

import os
import sys
from typing import TextIO

__all__ = ["Painter", "painter"]

_CODES = dict(bold="1", dim="2", red="31", green="32", yellow="33", blue="34", magenta="35", cyan="36")  # noqa: C408 - one line


class Painter:
    """Adds ANSI colours to text, or returns the text unchanged when `on` is false."""

    def __init__(self, *, on: bool) -> None:
        self._on = on

    def __call__(self, text: str, *styles: str) -> str:
        """Return `text` in the given styles."""
        if not self._on:
            return text
        return f"\x1b[{';'.join(_CODES[style] for style in styles)}m{text}\x1b[0m"


def painter(stream: TextIO | None = None) -> Painter:
    """
    Return a Painter for `stream` (default: stdout).

    It adds colour if the stream is a terminal. NO_COLOR turns colour off, FORCE_COLOR turns it on everywhere.
    """
    if "FORCE_COLOR" in os.environ:
        return Painter(on=True)
    if "NO_COLOR" in os.environ or os.environ.get("TERM") == "dumb":
        return Painter(on=False)
    try:
        return Painter(on=(sys.stdout if stream is None else stream).isatty())
    except (AttributeError, ValueError):
        return Painter(on=False)  # the stream is None or closed
