"""When JetStream says no: its numbers, and what they mean here."""

from __future__ import annotations

from amends.stores.errors import StoreError

__all__ = ["ApiError", "NobodyThereError"]

# JetStream's numbers (server/errors.json of nats-server).
# Try again later: incomplete, no cluster, no leader, busy, not enabled (yet), offline, duplicate in process, too many requests.
_PASSING = frozenset({10004, 10008, 10009, 10023, 10035, 10039, 10076, 10118, 10119, 10158, 10167})
# No place for a stream: for good, or because a leader that was just elected has not heard of every server yet.
_NO_PEERS = 10005
_NOT_HEARD_OF = "peer offline"
# Account, memory or storage exhausted.
_FULL = frozenset({10002, 10028, 10047})
# Storing failed: by a limit, or by the disk.
_NOT_STORED = 10077
_HELD = "maximum messages per subject exceeded"


class ApiError(StoreError):
    """JetStream said no, with its own number; where the contract has words for it, callers here use those."""

    def __init__(self, code: int, number: int, description: str) -> None:
        super().__init__(code, number, description)
        self.code = code
        self.number = number
        self.description = description

    def __str__(self) -> str:
        return f"JetStream refused: {self.description} ({self.number})"

    @property
    def passing(self) -> bool:
        """It will go away by itself: ask again."""
        unheard = self.number == _NO_PEERS and _NOT_HEARD_OF in self.description
        return unheard or self.number in _PASSING

    @property
    def full(self) -> bool:
        """There is no room, by a limit or by the disk."""
        return self.number in _FULL or (self.number == _NOT_STORED and not self.held)

    @property
    def conflict(self) -> bool:
        """A condition on the last sequence number was not met."""
        return self.number in {10071, 10164}

    @property
    def held(self) -> bool:
        """The subject has its one message already."""
        return self.number == _NOT_STORED and self.description == _HELD

    @property
    def missing(self) -> bool:
        """There is no such stream, consumer or message."""
        return self.code == 404 or self.number == 0

    @property
    def found(self) -> int | None:
        """The sequence number a conflict found instead, where the server says so."""
        number = self.description.rpartition(": ")[2]
        return int(number) if number.isdecimal() else None


class NobodyThereError(Exception):
    """Connected, and no responder for a subject."""
