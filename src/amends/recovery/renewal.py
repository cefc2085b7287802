"""One renewal of credentials for all operations whose calls were refused. The upstream's lock protects it."""

from __future__ import annotations

from enum import Enum

from amends.recovery.async_library import Waiter

__all__ = ["Renewal", "Turn"]


class Turn(Enum):
    """What an operation does after its credentials were refused."""

    LEAD = "lead"
    """Renew the credentials."""
    WAIT = "wait"
    """Wait for the operation that is renewing them."""
    DONE = "done"
    """Go on: they were renewed after the refused call was sent."""
    FAILED = "failed"
    """Give up: another operation tried to renew them in the meantime and failed."""


class Renewal:
    """Which operation renews, which wait for it, and how often it worked."""

    __slots__ = ("failures", "generation", "leading", "waiters")

    def __init__(self) -> None:
        self.generation = 0
        """The number of successful renewals. A call notes the generation it was sent with."""
        self.failures = 0
        """The number of failed renewals."""
        self.leading = False
        """Whether an operation is renewing at the moment."""
        self.waiters: set[Waiter] = set()

    def ask(self, waiter: Waiter, generation: int, failures: int) -> Turn:
        """
        Return what an operation has to do.

        `generation` is that of the refused call, `failures` the number that was known when the operation asked first.
        """
        self.waiters.discard(waiter)
        if self.generation != generation:
            return Turn.DONE
        if self.failures != failures:
            return Turn.FAILED
        if self.leading:
            self.waiters.add(waiter)
            return Turn.WAIT
        self.leading = True
        return Turn.LEAD

    def end(self, worked: bool | None) -> None:
        """End the renewal and wake the waiters. None: it was interrupted, and another operation may lead."""
        self.leading = False
        if worked is not None:
            self.generation += worked
            self.failures += not worked
        waiting, self.waiters = self.waiters, set()
        for waiter in waiting:
            waiter.wake()
