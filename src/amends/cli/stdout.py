"""
Reserves file descriptor 1 for the one document a command writes.

The descriptor is duplicated and stderr takes its place, so that everything that prints to stdout (this program, a
library, a C extension, a child process) writes to stderr instead. It is never restored: C libraries flush their buffers
when the process exits, after all Python code has run.
"""

from __future__ import annotations

import os
import select
import sys
from errno import EPIPE

__all__ = ["ReservedStdout", "discard_stdout", "flush", "flush_stdout", "reader_closed"]

_STDOUT, _STDERR = 1, 2


class ReservedStdout:
    """The real stdout. Create it before the command runs, and write the document once."""

    def __init__(self, *, keep_printed: bool = False) -> None:
        """`keep_printed`: keep printed text for `printed()` instead of passing it to stderr; --help needs this."""
        self._fd: int | None = None
        self._kept: int | None = None
        if sys.stdout is None:
            return  # stdout was closed, and another file may have its number by now
        try:
            self._fd = _copy(_STDOUT)
        except OSError:
            return
        if keep_printed:
            self._kept = _temporary_file()
        target = self._kept if self._kept is not None else _error_descriptor()
        os.dup2(target, _STDOUT)

    def printed(self) -> str:
        """Return the printed text, if it was kept. From then on printed text goes to stderr."""
        if self._kept is None:
            return ""
        flush()
        os.lseek(self._kept, 0, os.SEEK_SET)
        with os.fdopen(os.dup(self._kept), "rb") as file:
            text = file.read().decode("utf-8", "replace")
        os.dup2(_error_descriptor(), _STDOUT)
        os.close(self._kept)
        self._kept = None
        return text

    def write(self, data: bytes) -> None:
        """
        Write the document.

        Raises:
            OSError: if it cannot be written; BrokenPipeError if stdout is closed.

        """
        if self._fd is None:
            raise BrokenPipeError(EPIPE, "stdout is closed")
        flush()
        left = memoryview(data)
        while left:
            try:
                left = left[os.write(self._fd, left) :]
            except BlockingIOError:  # another process that shares the descriptor made it non-blocking
                select.select([], [self._fd], [])


def flush() -> None:
    """Flush sys.stdout to the current descriptor 1, and ignore errors."""
    try:
        flush_stdout()
    except (OSError, ValueError):
        pass


def flush_stdout() -> None:
    """Flush sys.stdout, if there is one."""
    if sys.stdout is not None:
        sys.stdout.flush()


def _copy(fd: int) -> int:
    """Duplicate a descriptor: not inherited by children, and numbered above the standard streams, which may be closed."""
    try:
        from fcntl import F_DUPFD_CLOEXEC, fcntl
    except ImportError:
        return os.dup(fd)
    return fcntl(fd, F_DUPFD_CLOEXEC, 10)


def _error_descriptor() -> int:
    try:
        os.fstat(_STDERR)
    except OSError:
        return os.open(os.devnull, os.O_WRONLY)
    return _STDERR


def _temporary_file() -> int:
    import tempfile

    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def reader_closed(fd: int = _STDOUT) -> bool:
    """Return whether the reader of stdout closed the pipe. It distinguishes this BrokenPipeError from one of a socket."""
    if not hasattr(select, "poll"):
        return True
    poll = select.poll()
    poll.register(fd, select.POLLERR)
    return any(event & (select.POLLERR | select.POLLNVAL) for _, event in poll.poll(0))


def discard_stdout() -> None:
    """Redirect stdout to the null device, so that Python's flush at exit does not report the broken pipe again."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, _STDOUT)
    os.close(null)
