"""The result of one run of a command."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from typing import Any

from amends.process.spool import MAX_OUTPUT, Spool

__all__ = ["Finished"]


class Finished:
    """
    How a command ended, and its output.

    `run` and `arun` return it.

    >>> from amends.process import run
    >>> done = run(["echo", "hello"])
    >>> done.exit, done.stdout.strip(), done.timed_out
    (0, b'hello', False)
    """

    def __init__(self, argv: Sequence[str], limit: int = MAX_OUTPUT) -> None:
        self.argv = tuple(argv)
        self.exit: int | None = None
        """Its exit code; None if a signal or a timeout ended it, or if it could not be started."""
        self.signal_number: int | None = None
        """The number of the signal that ended it."""
        self.lost = False
        """Its exit status is unknown: other code waited for the child, or this process ignores SIGCHLD."""
        self.timed_out = False
        self.not_started: int | None = None
        """The errno, if it could not be started."""
        self.duration = 0.0
        self.pid: int | None = None
        """Its process id."""
        self.reported: tuple[int, dict[str, Any]] | None = None
        """The process id and the envelope of the last failure that it, or a program below it, wrote for us; see `report`."""
        self.out, self.err = Spool(limit), Spool(limit)

    @property
    def signal(self) -> str | None:
        """The name of the signal that ended it, or None. Real-time signals without a name are SIGRTMIN+n."""
        number = self.signal_number
        if number is None:
            return None
        try:
            return signal.Signals(number).name
        except ValueError:
            return f"SIGRTMIN+{number - signal.SIGRTMIN}"

    @property
    def stdout(self) -> bytes:
        """The part of its stdout that was kept."""
        return self.out.read()

    @property
    def stderr(self) -> bytes:
        """The part of its stderr that was kept."""
        return self.err.read()

    @property
    def truncated(self) -> bool:
        """Whether part of its output was dropped."""
        return self.out.truncated or self.err.truncated

    def close(self) -> None:
        """Release the kept output."""
        self.out.close()
        self.err.close()
