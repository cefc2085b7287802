"""What is read from a store: values, compared by what they hold."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Bounds", "DeadMessage", "Entry", "Message", "QueueSize", "Row"]


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a log. The first ever appended has `seq` 1, and there are no gaps."""

    seq: int
    value: bytes
    dedupe: str | None = None


@dataclass(frozen=True, slots=True)
class Bounds:
    """The oldest entry kept and the newest ever appended. `first == last + 1` when nothing is kept."""

    first: int
    last: int

    @property
    def kept(self) -> int:
        """How many entries can be read."""
        return self.last - self.first + 1


@dataclass(frozen=True, slots=True)
class Row:
    """A key, its value and the revision it was written at. A key's revisions only grow, also over deletions."""

    key: str
    value: bytes
    revision: int
    expires_in: float | None = None


@dataclass(frozen=True, slots=True)
class Message:
    """A task as an onlooker sees it."""

    id: str
    key: str | None
    value: bytes
    attempts: int
    """How often it has been taken."""
    due_in: float
    """Seconds until it may be taken; 0 when it may be now."""
    leased: bool


@dataclass(frozen=True, slots=True)
class DeadMessage:
    """A task nobody will be given again unless it is revived."""

    id: str
    key: str | None
    value: bytes
    attempts: int
    reason: str


@dataclass(frozen=True, slots=True)
class QueueSize:
    """How many tasks wait, wait for their time, are being worked on, and are dead."""

    ready: int
    delayed: int
    leased: int
    dead: int
