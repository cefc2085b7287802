"""The pipes to a running command: what it writes is kept and passed on, what it reads is fed."""

from __future__ import annotations

import os
import selectors
import subprocess
from collections.abc import Callable
from typing import Any

from amends.process.feed import Feed
from amends.process.finished import Finished

__all__ = ["OnOutput", "Pipes"]

_PIECE = 65536
_FULL = 1024 * 1024
"""The most a pipe holds, where nobody changed the system's limit."""

OnOutput = Callable[[str, bytes], Any]
"""Gets "stdout" or "stderr" and the bytes, as they come."""


class Pipes:
    """
    Everything that moves between a command and us, on one selector.

    Args:
        process: the command.
        done: gets what it writes.
        feed: its input, where we give it one.
        on_output: gets what it writes, too.
        wakes: a descriptor by which somebody else says stop.

    """

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        done: Finished,
        feed: Feed | None,
        on_output: OnOutput | None,
        wakes: int | None,
    ) -> None:
        self._process, self._done, self._feed, self._on_output = process, done, feed, on_output
        self._selector = selectors.PollSelector()
        for name, pipe in (("stdout", process.stdout), ("stderr", process.stderr)):
            assert pipe is not None
            os.set_blocking(pipe.fileno(), False)
            self._selector.register(pipe, selectors.EVENT_READ, name)
        self._input: int | None = None
        if process.stdin is not None:
            self._input = process.stdin.fileno()
            os.set_blocking(self._input, False)
        self._watched: int | None = None
        if wakes is not None:
            self._selector.register(wakes, selectors.EVENT_READ, "stop")

    @property
    def open(self) -> bool:
        """Whether somebody can still write to us."""
        return any(key.data in {"stdout", "stderr"} for key in self._selector.get_map().values())

    def carry(self, seconds: float) -> bool:
        """Move what there is to move, waiting for it so long; whether somebody said stop."""
        for key, _ in self._selector.select(max(0.0, seconds)):
            if key.data == "stop":
                self._selector.unregister(key.fileobj)
                return True
            if key.data == "source":
                assert self._feed is not None
                self._feed.take()
            elif key.data == "input":
                self._give()
            else:
                self._keep(key.fileobj, key.data)
        return False

    def drain(self) -> None:
        """Keep what is in the pipes by now; it still counts. Somebody who writes without end is not waited for."""
        for key in list(self._selector.get_map().values()):
            if key.data in {"stdout", "stderr"}:
                for _ in range(_FULL // _PIECE):
                    if not self._keep(key.fileobj, key.data):
                        break

    def _keep(self, pipe: Any, name: str) -> bool:
        """Keep one piece; whether there was one."""
        try:
            piece = os.read(pipe.fileno(), _PIECE)
        except BlockingIOError:
            return False
        if not piece:
            self._selector.unregister(pipe)
            return False
        (self._done.out if name == "stdout" else self._done.err).write(piece)
        if self._on_output is not None:
            self._on_output(name, piece)
        return True

    # Its input ---------------------------------------------------------------------------------------------------

    def feed(self) -> None:
        """Watch the source or the command's input, whichever has to move next; close the input at the end."""
        feed = self._feed
        if feed is None or self._input is None:
            return
        if feed.pending:
            self._watch(self._input, selectors.EVENT_WRITE, "input")
        elif feed.source is not None:
            self._watch(feed.source, selectors.EVENT_READ, "source")
        else:
            self._close_input()

    def starve(self) -> None:
        """Feed no more: what is left is for a repeat."""
        if self._watched is not None:
            self._selector.unregister(self._watched)
            self._watched = None

    def _watch(self, fd: int, event: int, name: str) -> None:
        if self._watched == fd:
            return
        self.starve()
        self._selector.register(fd, event, name)
        self._watched = fd

    def _give(self) -> None:
        assert self._feed is not None
        assert self._input is not None
        try:
            self._feed.give(self._input)
        except BlockingIOError:
            pass
        except OSError:  # it reads no more
            self._close_input()

    def _close_input(self) -> None:
        self.starve()
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._input = None

    def close(self) -> None:
        """Let go of all of them."""
        self._selector.close()
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()
