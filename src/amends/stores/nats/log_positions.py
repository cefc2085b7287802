"""Where logs that share a stream stand: numbers of their own beside numbers of the stream, as last seen from here."""

from __future__ import annotations

import asyncio
from collections import OrderedDict

__all__ = ["Place", "Places"]

# What is forgotten is asked for again; a log in use is among the last used.
_MOST = 16_384


class Place:
    """The newest entry of a log as far as this process knows, and the last one it read. Hints: the server decides."""

    __slots__ = ("_read", "known", "lock", "number", "seq")

    def __init__(self) -> None:
        self.known = False
        self.number = 0
        self.seq = 0
        self.lock = asyncio.Lock()
        """Appends of one process one after the other: each needs to know where the one before went."""
        self._read = (0, 0)

    def set(self, number: int, seq: int) -> None:
        """The newest entry is this one."""
        self.known, self.number, self.seq = True, number, seq

    def read(self, number: int, seq: int) -> None:
        """An entry was read up to here."""
        self._read = (number, seq)

    def before(self, number: int) -> int:
        """A stream number the entry does not lie before; also when the log was dropped and begun anew since."""
        near = [seq for known, seq in (self._read, (self.number, self.seq)) if 0 < known <= number]
        return max(near, default=0) or 1


class Places:
    """The places of the logs last used."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, Place] = OrderedDict()

    def of(self, subject: str) -> Place:
        """One log's place."""
        place = self._known.get(subject)
        if place is None:
            place = self._known[subject] = Place()
            if len(self._known) > _MOST:
                self._known.popitem(last=False)
        else:
            self._known.move_to_end(subject)
        return place

    def forget(self, subject: str) -> None:
        """The log was dropped."""
        self._known.pop(subject, None)
