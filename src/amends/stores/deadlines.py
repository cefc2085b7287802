"""
Deadlines that nobody can move by setting a clock: durations on the clock since boot.

A deadline says on which boot of which machine it was made, when it is over on that machine's clock since boot, and how
long it lasts. A process of the same boot compares two readings of one clock. A process of another machine cannot; for it the
deadline is over when the process has itself seen the deadline unchanged for its whole length. Wall times are never compared.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from typing import Protocol

import msgspec

from amends.proof import Claim, Proof, rests_on
from amends.stores.clock import NO_BOOT, Clock, SystemClock
from amends.stores.contract import Store

__all__ = ["Deadline", "Deadlines", "LeaseOwner"]

_MOST_SEEN = 10_000
"""Deadlines of other machines that a process watches at the same time. One that is forgotten is watched again from the start."""


class Deadline(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A moment on the clock since boot of one machine."""

    boot: str
    end: float
    """Seconds since that boot."""
    length: float
    """Seconds from its beginning to its end."""


class LeaseOwner(Protocol):
    """
    The process that holds leases, with a proof of its end that the operating system gives: a lock that ends with the process.

    `Keys(owner=...)` writes the id into each record that it claims.
    """

    @property
    def id(self) -> str:
        """Identifies this process among all that use the store, also later ones."""

    def ended(self, id: str) -> bool:
        """Return whether the process with this id is proved to have ended. False if that is not known."""


class Deadlines:
    """
    Makes deadlines, and tells when they are over.

    >>> from amends.stores.clock import SystemClock
    >>> deadlines = Deadlines(SystemClock())
    >>> 0 < deadlines.left(deadlines.start(30), "order-17") <= 30
    True
    """

    def __init__(self, clock: Clock, *, one_machine: bool = False) -> None:
        """
        Args:
            clock: measures the deadlines.
            one_machine: whether all deadlines are made on this machine: one of another boot is then over.

        """
        self.clock, self._one_machine = clock, one_machine
        self._seen: OrderedDict[tuple[str, Deadline], float] = OrderedDict()

    @classmethod
    def of(cls, store: Store) -> Deadlines:
        """Return the deadlines of what is kept in a store."""
        return cls(
            getattr(store, "clock", None) or SystemClock(), one_machine=store.traits.scope != "network"
        )

    def start(self, length: float) -> Deadline:
        """Return the deadline that is so many seconds away."""
        return Deadline(self.clock.boot(), self.clock.steady() + length, length)

    @rests_on(Claim.LEASE_ENDED, Proof.BOOT_CLOCK)
    def left(self, deadline: Deadline, id: str) -> float:
        """
        Return the seconds until the deadline is proved to be over; 0 if it is.

        Args:
            deadline: made by this or another process.
            id: what it belongs to.

        """
        boot = self.clock.boot()
        if boot != NO_BOOT and deadline.boot == boot:
            return max(0.0, deadline.end - self.clock.steady())
        if self._one_machine and NO_BOOT not in {boot, deadline.boot}:
            # This machine was started again since, so that the process that made it has ended.
            return 0.0
        now = time.monotonic() if boot == NO_BOOT else self.clock.steady()
        first = self._seen.setdefault((id, deadline), now)
        if len(self._seen) > _MOST_SEEN:
            self._seen.popitem(last=False)
        return max(0.0, first + deadline.length - now)
