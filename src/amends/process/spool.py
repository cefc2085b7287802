"""Keeps a command's output up to a limit, on disk beyond 1 MiB, and always keeps its end."""

from __future__ import annotations

import io
import tempfile
import weakref
from typing import IO

__all__ = ["IN_MEMORY", "MAX_OUTPUT", "Spool"]

MAX_OUTPUT = 64 * 1024 * 1024
IN_MEMORY = 1024 * 1024
"""A spool with at most this limit never writes to disk."""
_TAIL = 256 * 1024
"""Bytes of the end that are always kept, because a command writes its envelope last."""
_PIECE = 1024 * 1024


class Spool:
    """Keeps the first `limit` bytes of a stream, and the last 256 KiB if there are more."""

    def __init__(self, limit: int = MAX_OUTPUT) -> None:
        self._limit = limit
        self._file: IO[bytes] = io.BytesIO()
        self._tail = bytearray()
        self._stored = 0
        self.size = 0
        """All bytes written, kept or dropped."""

    def write(self, piece: bytes) -> None:
        """Append bytes."""
        self.size += len(piece)
        space = self._limit - self._stored
        kept = piece[:space] if space > 0 else b""
        if self._stored <= IN_MEMORY < self._stored + len(kept):
            self._move_to_disk()
        self._file.seek(0, io.SEEK_END)
        self._file.write(kept)
        self._stored += len(kept)
        if len(kept) < len(piece):
            self._tail += piece[len(kept) :]
            del self._tail[:-_TAIL]

    def _move_to_disk(self) -> None:
        file = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the spool
        self._file.seek(0)
        file.write(self._file.read())
        self._file = file
        weakref.finalize(self, file.close)

    @property
    def truncated(self) -> bool:
        """Whether bytes in the middle were dropped."""
        return self.size > self._stored + len(self._tail)

    def read(self) -> bytes:
        """Return all kept bytes."""
        self._file.seek(0)
        return self._file.read() + bytes(self._tail)

    def end(self) -> bytes:
        """Return the last 256 KiB."""
        self._file.seek(max(0, self._stored - _TAIL))
        return (self._file.read() + bytes(self._tail))[-_TAIL:]

    def copy_to(self, target: IO[bytes]) -> None:
        """Write all kept bytes to `target`, piece by piece."""
        self._file.seek(0)
        while piece := self._file.read(_PIECE):
            target.write(piece)
        target.write(self._tail)

    def close(self) -> None:
        """Close the file."""
        self._file.close()
