"""The errors of JetStream's API: their numbers, and what they mean for a store."""

from __future__ import annotations

from amends.stores.errors import StoreError

__all__ = ["ApiError", "NoResponderError"]

# JetStream's error numbers (server/errors.json of nats-server).
# Try again later: incomplete, too few servers for the replicas (a cluster that is forming, or one that is too small), no
# cluster, no leader, busy, not enabled (yet), offline, duplicate in process, too many requests.
_TEMPORARY = frozenset({10004, 10005, 10008, 10009, 10035, 10039, 10076, 10118, 10119, 10158, 10167})
# Account, server, memory or storage exhausted.
_FULL = frozenset({10002, 10023, 10028, 10047})
# Storing failed, because of a limit or of the disk.
_NOT_STORED = 10077
_EXISTS_OTHERWISE = 10058
_PURGE_FAILED = 10051
_SUBJECT_TAKEN = "maximum messages per subject exceeded"


class ApiError(StoreError):
    """JetStream rejected a request. Callers translate it to an exception of `stores.errors` where there is one."""

    def __init__(self, code: int, number: int, description: str) -> None:
        super().__init__(code, number, description)
        self.code = code
        self.number = number
        self.description = description

    def __str__(self) -> str:
        return f"JetStream rejected the request: {self.description} ({self.number})"

    @property
    def temporary(self) -> bool:
        """Whether the condition passes by itself, so that the request can be repeated."""
        return self.number in _TEMPORARY

    @property
    def full(self) -> bool:
        """Whether there is no space left, because of a limit or of the disk."""
        return self.number in _FULL or (self.number == _NOT_STORED and not self.subject_taken)

    @property
    def conflict(self) -> bool:
        """Whether a condition on the last sequence number was not met."""
        return self.number in {10071, 10164}

    @property
    def subject_taken(self) -> bool:
        """Whether the subject already has the one message it may have."""
        return self.number == _NOT_STORED and self.description == _SUBJECT_TAKEN

    @property
    def exists_otherwise(self) -> bool:
        """Whether the stream exists with another configuration."""
        return self.number == _EXISTS_OTHERWISE

    @property
    def purge_failed(self) -> bool:
        """Whether the stream could not be changed, because an earlier write to the disk failed."""
        return self.number == _PURGE_FAILED

    @property
    def missing(self) -> bool:
        """Whether there is no such stream, consumer or message."""
        return self.code == 404 or self.number == 0

    @property
    def actual_sequence(self) -> int | None:
        """The sequence number that the server found in a conflict, if it reports it."""
        number = self.description.rpartition(": ")[2]
        return int(number) if number.isdecimal() else None


class NoResponderError(Exception):
    """The connection is up, but no responder serves the subject."""
