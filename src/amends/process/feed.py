"""
What a command reads: nothing, bytes, or this process's own stdin, recorded as it passes.

A repeat needs the same input again. What was recorded is fed again; input that outgrew the record cannot be, and then
nothing is repeated.
"""

from __future__ import annotations

import os

__all__ = ["MAX_RECORD", "Feed"]

MAX_RECORD = 8 * 1024 * 1024
_PIECE = 65536


class Feed:
    """The input of every run of one command."""

    def __init__(self, data: bytes | None = None, source: int | None = None, limit: int = MAX_RECORD) -> None:
        """`data` is all there is; or `source`, a file descriptor, is read while a run wants more."""
        self._record = bytearray(data or b"")
        self._source = source
        self._limit = limit
        self._at = 0
        self.replayable = True
        """Whether a further run can be given the same."""

    @property
    def source(self) -> int | None:
        """What to wait for when everything recorded has been fed; None when there will be no more."""
        return self._source

    def rewind(self) -> None:
        """For a further run: from the beginning."""
        self._at = 0

    @property
    def pending(self) -> bool:
        """Whether there is something to feed now."""
        return self._at < len(self._record)

    def take(self) -> None:
        """Read what the source has; called when it is readable."""
        try:
            piece = b"" if self._source is None else os.read(self._source, _PIECE)
        except OSError:  # a terminal that hung up
            piece = b""
        if not piece:
            self._source = None
            return
        self._record += piece
        if len(self._record) > self._limit:
            self.replayable = False

    def give(self, into: int) -> None:
        """Write as much as `into` takes."""
        self._at += os.write(into, memoryview(self._record)[self._at : self._at + _PIECE])
        if not self.replayable:  # no repeat will need what has been fed
            del self._record[: self._at]
            self._at = 0
