"""A command that has ended: how, and what it wrote."""

from __future__ import annotations

import signal
from collections.abc import Sequence

from amends.process.spool import MAX_OUTPUT, Spool

__all__ = ["Finished"]


class Finished:
    """A command that has ended."""

    def __init__(self, argv: Sequence[str], limit: int = MAX_OUTPUT) -> None:
        self.argv = tuple(argv)
        self.exit: int | None = None
        """Its exit code; None when a signal or a time-out ended it, or when it could not be started."""
        self.signal_number: int | None = None
        """The number of the signal that ended it."""
        self.lost = False
        """Somebody else waited for it, or the process ignores the end of its children: how it ended nobody knows."""
        self.timed_out = False
        self.not_started: int | None = None
        """The error number, where it could not be started at all."""
        self.duration = 0.0
        self.out, self.err = Spool(limit), Spool(limit)

    @property
    def signal(self) -> str | None:
        """The name of the signal that ended it; most of the real-time ones have none of their own."""
        number = self.signal_number
        if number is None:
            return None
        try:
            return signal.Signals(number).name
        except ValueError:
            return f"SIGRTMIN+{number - signal.SIGRTMIN}"

    @property
    def stdout(self) -> bytes:
        """What it wrote, as far as it was kept."""
        return self.out.read()

    @property
    def stderr(self) -> bytes:
        """What it complained about, as far as it was kept."""
        return self.err.read()

    @property
    def truncated(self) -> bool:
        """Whether something was dropped from what it wrote."""
        return self.out.truncated or self.err.truncated

    def close(self) -> None:
        """Let go of what it wrote."""
        self.out.close()
        self.err.close()
