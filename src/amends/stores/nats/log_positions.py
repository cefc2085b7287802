"""A cache of the last known positions of grouped logs: an entry's own number with its number in the stream."""

from __future__ import annotations

import asyncio
from collections import OrderedDict

__all__ = ["LogPosition", "LogPositions"]

# A removed position is read again from the server; logs in use are among the last used.
_CAPACITY = 16_384


class LogPosition:
    """The newest entry of a log known to this process, and the last one it read. The server's conditions are decisive."""

    __slots__ = ("_read", "known", "lock", "number", "seq")

    def __init__(self) -> None:
        self.known = False
        self.number = 0
        self.seq = 0
        self.lock = asyncio.Lock()
        """Serialises the appends of this process, because each needs the position of the one before."""
        self._read = (0, 0)

    def set(self, number: int, seq: int) -> None:
        """Set the newest entry."""
        self.known, self.number, self.seq = True, number, seq

    def record_read(self, number: int, seq: int) -> None:
        """Set the last entry that was read."""
        self._read = (number, seq)

    def search_from(self, number: int) -> int:
        """A stream number at or before the entry with this number; also valid if the log was dropped and recreated."""
        earlier = [seq for known, seq in (self._read, (self.number, self.seq)) if 0 < known <= number]
        return max(earlier, default=0) or 1


class LogPositions:
    """The positions of the most recently used logs."""

    def __init__(self) -> None:
        self._positions: OrderedDict[str, LogPosition] = OrderedDict()

    def get(self, subject: str) -> LogPosition:
        """The position of the log with this subject."""
        position = self._positions.get(subject)
        if position is None:
            position = self._positions[subject] = LogPosition()
            if len(self._positions) > _CAPACITY:
                self._positions.popitem(last=False)
        else:
            self._positions.move_to_end(subject)
        return position

    def remove(self, subject: str) -> None:
        """Remove the position of a log that was dropped."""
        self._positions.pop(subject, None)
