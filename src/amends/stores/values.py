"""The values that a store returns; they compare by content."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Bounds", "DeadMessage", "Entry", "Message", "QueueSize", "Row"]


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a log. The first entry has `seq` 1, and there are no gaps."""

    seq: int
    value: bytes
    dedupe: str | None = None


@dataclass(frozen=True, slots=True)
class Bounds:
    """The oldest entry kept and the newest ever appended. `first == last + 1` if no entry is kept."""

    first: int
    last: int

    @property
    def kept(self) -> int:
        """How many entries can be read."""
        return self.last - self.first + 1


@dataclass(frozen=True, slots=True)
class Row:
    """A key, its value and its revision. The revisions of a key only grow, also across deletions."""

    key: str
    value: bytes
    revision: int
    expires_in: float | None = None


@dataclass(frozen=True, slots=True)
class Message:
    """A message in a queue, as `Queue.messages` lists it."""

    id: str
    key: str | None
    value: bytes
    attempts: int
    """How often it was taken."""
    due_in: float
    """Seconds until it can be taken; 0 if it can be taken now."""
    leased: bool


@dataclass(frozen=True, slots=True)
class DeadMessage:
    """A message that is not delivered again unless it is revived."""

    id: str
    key: str | None
    value: bytes
    attempts: int
    reason: str


@dataclass(frozen=True, slots=True)
class QueueSize:
    """The number of messages that can be taken, are delayed, are leased, and are dead."""

    ready: int
    delayed: int
    leased: int
    dead: int
