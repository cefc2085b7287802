"""The pipes to a running command: keeps and passes on its output, and feeds its input."""

from __future__ import annotations

import os
import selectors
import subprocess
from collections.abc import Callable

from amends.process.feed import Feed
from amends.process.finished import Finished
from amends.process.passthrough import Passthrough, signals_held

__all__ = ["OnOutput", "Pipes"]

_PIECE = 65536
_PIPE_CAPACITY = 1024 * 1024
"""The largest size of a pipe under the system's default limit."""

OnOutput = Callable[[str, bytes], object]
"""Called with "stdout" or "stderr" and the bytes, as they arrive."""


class Pipes:
    """
    Transfers all input and output of a command, with one selector.

    Args:
        process: the command.
        done: receives its output.
        feed: its input, if it does not inherit stdin.
        on_output: called with its output as well.
        passthrough: passes its output on. While a stream waits for its reader, no more of it is read.
        stop_fd: a descriptor that becomes readable when the run should stop.

    """

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        done: Finished,
        feed: Feed | None,
        on_output: OnOutput | None,
        passthrough: Passthrough | None,
        stop_fd: int | None,
    ) -> None:
        self._process, self._done, self._feed, self._on_output = process, done, feed, on_output
        self._passthrough = passthrough
        self._selector = selectors.PollSelector()
        self._output: dict[str, int] = {}
        self._targets: dict[str, int] = {}
        for name, pipe in (("stdout", process.stdout), ("stderr", process.stderr)):
            assert pipe is not None
            fd = pipe.fileno()
            os.set_blocking(fd, False)
            self._selector.register(fd, selectors.EVENT_READ, name)
            self._output[name] = fd
        self._input: int | None = None
        if process.stdin is not None:
            self._input = process.stdin.fileno()
            os.set_blocking(self._input, False)
        self._watched: int | None = None
        if stop_fd is not None:
            self._selector.register(stop_fd, selectors.EVENT_READ, "stop")

    @property
    def open(self) -> bool:
        """Whether stdout or stderr is still open."""
        return bool(self._output)

    def transfer(self, seconds: float) -> bool:
        """Wait up to `seconds` for the pipes and transfer what is ready. Return whether the run should stop."""
        for key, _ in self._selector.select(max(0.0, seconds)):
            with signals_held():
                if self._transfer(key):
                    return True
        return self._passthrough is not None and self._passthrough.stopped

    def _transfer(self, key: selectors.SelectorKey) -> bool:
        """Transfer what is ready at one descriptor. Return whether it is the one that stops the run."""
        if key.data == "stop":
            self._selector.unregister(key.fileobj)
            return True
        if key.data == "source":
            assert self._feed is not None
            self._feed.read_source()
        elif key.data == "input":
            self._write_input()
        elif key.data in self._targets:
            assert self._passthrough is not None
            self._passthrough.write(key.data)
            self._watch_output(key.data)
        else:
            self._read_output(key.data)
        return False

    def drain(self) -> None:
        """Read what the pipes hold now, at most one full pipe each, because a writer may never stop."""
        for name in list(self._output):
            for _ in range(_PIPE_CAPACITY // _PIECE):
                with signals_held():
                    if not self._read_output(name):
                        break

    def _read_output(self, name: str) -> bool:
        """Read one piece of output. Return whether there was one."""
        try:
            piece = os.read(self._output[name], _PIECE)
        except BlockingIOError:
            return False
        if not piece:
            fd = self._output.pop(name)
            if name not in self._targets:
                self._selector.unregister(fd)
            return False
        (self._done.out if name == "stdout" else self._done.err).write(piece)
        if self._on_output is not None:
            self._on_output(name, piece)
        if self._passthrough is not None:
            self._passthrough.add(name, piece)
            self._watch_output(name)
        return True

    def _watch_output(self, name: str) -> None:
        """Watch the target of a stream if it has to be written first, else the stream."""
        assert self._passthrough is not None
        target, watched = self._passthrough.target(name), self._targets.get(name)
        if target == watched:
            return
        output = self._output.get(name)
        if target is not None:
            if output is not None:
                self._selector.unregister(output)
            self._selector.register(target, selectors.EVENT_WRITE, name)
            self._targets[name] = target
        elif watched is not None:
            self._selector.unregister(watched)
            del self._targets[name]
            if output is not None:
                self._selector.register(output, selectors.EVENT_READ, name)

    # The command's input -----------------------------------------------------------------------------------------

    def watch_input(self) -> None:
        """Watch the command's input if bytes are pending, else the source; close the input at the end."""
        feed = self._feed
        if feed is None or self._input is None:
            return
        if feed.pending:
            self._watch(self._input, selectors.EVENT_WRITE, "input")
        elif feed.source is not None:
            self._watch(feed.source, selectors.EVENT_READ, "source")
        else:
            self._close_input()

    def pause_input(self) -> None:
        """Stop feeding the command; the rest stays in the feed for a retry."""
        if self._watched is not None:
            self._selector.unregister(self._watched)
            self._watched = None

    def _watch(self, fd: int, event: int, name: str) -> None:
        if self._watched == fd:
            return
        self.pause_input()
        self._selector.register(fd, event, name)
        self._watched = fd

    def _write_input(self) -> None:
        assert self._feed is not None
        assert self._input is not None
        try:
            self._feed.write_to(self._input)
        except BlockingIOError:
            pass
        except OSError:  # the command closed its stdin
            self._close_input()

    def _close_input(self) -> None:
        self.pause_input()
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._input = None

    def close(self) -> None:
        """Close the selector and all pipes."""
        self._selector.close()
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()
