"""One renewal of credentials for everybody who was refused with the old ones. Held under its upstream's lock."""

from __future__ import annotations

from enum import Enum

from amends.recovery.waiter import Waiter

__all__ = ["Renewal", "Turn"]


class Turn(Enum):
    """What somebody whose credentials were refused does next."""

    LEAD = "lead"
    """Renew them, for everybody."""
    WAIT = "wait"
    """Somebody is at it."""
    DONE = "done"
    """They are new already."""
    FAILED = "failed"
    """Somebody tried while we waited, and it did not work."""


class Renewal:
    """Who renews, who waits for it, and how often it worked."""

    __slots__ = ("failures", "generation", "leading", "waiters")

    def __init__(self) -> None:
        self.generation = 0
        """Successful renewals. A call remembers the one it was sent under."""
        self.failures = 0
        self.leading = False
        self.waiters: set[Waiter] = set()

    def ask(self, waiter: Waiter, generation: int, failures: int) -> Turn:
        """`generation` is that of the refused call, `failures` those known when its caller began to ask."""
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
        """The leader is done; None when it was interrupted, so that somebody else may lead."""
        self.leading = False
        if worked is not None:
            self.generation += worked
            self.failures += not worked
        waiting, self.waiters = self.waiters, set()
        for waiter in waiting:
            waiter.wake()
