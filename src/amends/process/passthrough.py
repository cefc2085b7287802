"""
Passes a command's output on to this process's own stdout and stderr, byte for byte and as fast as they are read.

stderr is passed on at once. stdout is held while the command may still be repeated, up to MAX_HELD bytes: the stdout of
a run that is repeated is dropped. A run that writes more is passed on from then on, and is not repeated, because output
that was passed on cannot be taken back.
"""

from __future__ import annotations

import errno
import os
import select
import signal
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager

from amends.process.termination import SIGNALS

__all__ = ["MAX_HELD", "Passthrough", "signals_held"]

MAX_HELD = 8 * 1024 * 1024
"""Bytes of stdout that are held until it is certain that the run is not repeated."""
_FILE_PIECE = 65536


@contextmanager
def signals_held() -> Iterator[None]:
    """Hold back SIGINT, SIGTERM and SIGHUP: a handler that raised between two steps would leave only one of them done."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class Passthrough:
    """
    The output of one command that may run several times.

    Give it to `run(passthrough=)` to show the output of a command as `amends run` does.

        output = Passthrough()
        run(["gh", "api", "/user"], read_only=True, passthrough=output)
        output.release()
        output.flush()

    Args:
        stdout: the descriptor for its stdout; None if this process has none.
        stderr: the descriptor for its stderr; None: it is dropped.

    """

    def __init__(self, stdout: int | None = 1, stderr: int | None = 2) -> None:
        self._targets = {"stdout": stdout, "stderr": stderr}
        self._pending = {"stdout": bytearray(), "stderr": bytearray()}
        self._pieces = {name: _piece(fd) for name, fd in self._targets.items()}
        self._held: bytearray | None = None
        self.reader_closed = False
        """Whether stdout was closed before all output was passed on."""
        self.error: OSError | None = None
        """Why stdout could not be written, if it was not closed."""

    def begin(self, *, repeatable: bool) -> None:
        """Begin a run. What is held of the run before is dropped; stdout is held if this run is `repeatable`."""
        self.flush()
        self._held = bytearray() if repeatable else None

    @property
    def stopped(self) -> bool:
        """Whether stdout cannot be written any more, so that the run is not of use."""
        return self.reader_closed or self.error is not None

    @property
    def irrevocable(self) -> bool:
        """Whether stdout of this run was passed on."""
        return self._held is None

    def add(self, name: str, piece: bytes) -> None:
        """Take over a piece of output: hold it, or keep it until its target can be written."""
        if name == "stdout" and self._held is not None:
            self._held += piece
            if len(self._held) > MAX_HELD:
                self.release()
        elif not self.stopped or name == "stderr":
            self._pending[name] += piece

    def release(self) -> None:
        """Stop holding stdout."""
        if self._held is not None:
            self._pending["stdout"] += self._held
            self._held = None

    def target(self, name: str) -> int | None:
        """Return the descriptor that has to be written before more of this stream is read; None if there is none."""
        if not self._pending[name]:
            return None
        fd = self._targets[name]
        if fd is None:
            self._fail(name, OSError(errno.EBADF, "closed"))
        return fd

    def write(self, name: str) -> None:
        """Write what the target takes without blocking; call it when the target can be written."""
        fd, pending = self._targets[name], self._pending[name]
        if fd is None or not pending:
            return
        with signals_held():  # otherwise the same bytes could be written again
            try:
                written = os.write(fd, memoryview(pending)[: self._pieces[name]])
                del pending[:written]
            except BlockingIOError:  # another process that shares the descriptor made it non-blocking
                pass
            except OSError as error:
                self._fail(name, error)

    def flush(self, seconds: float | None = None) -> None:
        """Write everything that is not held; wait for the readers, at most `seconds`."""
        deadline = None if seconds is None else time.monotonic() + seconds
        while True:
            waiting = {fd: name for name in self._pending if (fd := self.target(name)) is not None}
            left = None if deadline is None else deadline - time.monotonic()
            if not waiting or (left is not None and left <= 0):
                return
            poll = select.poll()
            for fd in waiting:
                poll.register(fd, select.POLLOUT)
            for fd, _ in poll.poll(None if left is None else left * 1000):
                self.write(waiting[fd])

    def _fail(self, name: str, error: OSError) -> None:
        """Record that a target cannot be written. A stderr without a reader is ignored: its output is dropped."""
        self._targets[name] = None
        self._pending[name].clear()
        if name == "stderr":
            return
        if error.errno in {errno.EPIPE, errno.EBADF}:
            self.reader_closed = True
        else:
            self.error = error


def _piece(fd: int | None) -> int:
    """Return how many bytes can be written at once: without blocking to a pipe, and fast to a file."""
    try:
        is_file = fd is not None and stat.S_ISREG(os.fstat(fd).st_mode)
    except OSError:
        is_file = False
    return _FILE_PIECE if is_file else select.PIPE_BUF
