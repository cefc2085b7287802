"""
The input of a command: nothing, bytes, or this process's own stdin, which is recorded while it is passed on.

A retry needs the same input again, so it reads the record. If the input is larger than the record's limit, the command
is not retried.
"""

from __future__ import annotations

import os

__all__ = ["MAX_RECORD", "Feed"]

MAX_RECORD = 8 * 1024 * 1024
_PIECE = 65536


class Feed:
    """
    The input for every run of one command.

    Give it to `run(stdin=)` if the input is a file descriptor; `run` makes one of bytes itself.

    >>> from amends.process import run
    >>> reader, writer = os.pipe()
    >>> os.write(writer, b"hello"), os.close(writer)
    (5, None)
    >>> run(["cat"], stdin=Feed(source=reader)).stdout, os.close(reader)
    (b'hello', None)
    """

    def __init__(self, data: bytes | None = None, source: int | None = None, limit: int = MAX_RECORD) -> None:
        """`data` is the whole input; alternatively `source`, a file descriptor, is read as a run consumes it."""
        self._record = bytearray(data or b"")
        self._source = source
        self._limit = limit
        self._position = 0
        self.replayable = True
        """Whether another run can get the same input."""

    @property
    def source(self) -> int | None:
        """The descriptor to read when the record has been fed; None at the end of the input."""
        return self._source

    def rewind(self) -> None:
        """Start again at the beginning, for another run."""
        self._position = 0

    @property
    def pending(self) -> bool:
        """Whether the record holds bytes that this run has not been fed yet."""
        return self._position < len(self._record)

    def read_source(self) -> None:
        """Read from the source into the record; call it when the source is readable."""
        try:
            piece = b"" if self._source is None else os.read(self._source, _PIECE)
        except OSError:  # the terminal was closed
            piece = b""
        if not piece:
            self._source = None
            return
        self._record += piece
        if len(self._record) > self._limit:
            self.replayable = False

    def write_to(self, fd: int) -> None:
        """Write as many pending bytes as `fd` accepts."""
        start = self._position
        self._position += os.write(fd, memoryview(self._record)[start : start + _PIECE])
        if not self.replayable:  # no retry will need the bytes that were fed
            del self._record[: self._position]
            self._position = 0
