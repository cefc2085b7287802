"""What a running job needs of those that follow it: a session's subscription implements this."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from amends.arcp.runtime.entries import JobEntry
from amends.durable.batch import Batch

__all__ = ["Claim", "Follower"]


class Claim(Protocol):
    """Event numbers that a follower has reserved for the last entries of a job."""

    def add_to(self, steps: Batch) -> None:
        """Add the numbers to the job's transaction."""

    def send(self) -> None:
        """Send the entries, after the transaction succeeded."""

    def release(self) -> None:
        """Give the numbers up; the entries are pushed instead."""


class Follower(Protocol):
    """A subscription to a job that runs on this node."""

    @property
    def unnumbered(self) -> bool:
        """Whether it has events to number at the moment, which prevents a claim."""

    @property
    def full(self) -> bool:
        """Whether it cannot keep up."""

    async def wait_for_room(self) -> None:
        """Wait until it is no longer full."""

    def push(self, first: int, entries: Sequence[JobEntry]) -> None:
        """Take entries that were written; `first` is the number of the first one in the job's log."""

    def claim(self, first: int, entries: Sequence[JobEntry]) -> Claim | None:
        """Reserve numbers for a job's last entries; None if that is not possible now."""

    def begin(self) -> None:
        """Continue with the job's log, because the job has left this node or has left its queue."""
