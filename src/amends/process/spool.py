"""What a command writes: kept up to a bound, on disk beyond a little, with its end kept always."""

from __future__ import annotations

import io
import tempfile
import weakref
from typing import IO

__all__ = ["MAX_OUTPUT", "Spool"]

MAX_OUTPUT = 64 * 1024 * 1024
_IN_MEMORY = 1024 * 1024
_TAIL = 256 * 1024
"""An envelope stands at the end; this much of it is kept whatever came before."""
_PIECE = 1024 * 1024


class Spool:
    """One stream's bytes: the first `limit`, and the last quarter of a MiB where there were more."""

    def __init__(self, limit: int = MAX_OUTPUT) -> None:
        self._limit = limit
        self._file: IO[bytes] = io.BytesIO()
        self._tail = bytearray()
        self._held = 0
        self.size = 0
        """Bytes written, kept or not."""

    def write(self, piece: bytes) -> None:
        """Take some more."""
        self.size += len(piece)
        room = self._limit - self._held
        kept = piece[:room] if room > 0 else b""
        if self._held <= _IN_MEMORY < self._held + len(kept):
            self._move_to_disk()
        self._file.seek(0, io.SEEK_END)
        self._file.write(kept)
        self._held += len(kept)
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
        """Whether something in the middle was dropped."""
        return self.size > self._held + len(self._tail)

    def read(self) -> bytes:
        """Everything that was kept."""
        self._file.seek(0)
        return self._file.read() + bytes(self._tail)

    def end(self) -> bytes:
        """The last part of it."""
        self._file.seek(max(0, self._held - _TAIL))
        return (self._file.read() + bytes(self._tail))[-_TAIL:]

    def pour(self, into: IO[bytes]) -> None:
        """Pass everything that was kept on, piece by piece."""
        self._file.seek(0)
        while piece := self._file.read(_PIECE):
            into.write(piece)
        into.write(self._tail)

    def close(self) -> None:
        """Let go of it."""
        self._file.close()
