"""
Keeping file descriptor 1 for the answer alone.

The descriptor is moved aside and stderr put in its place, so that whatever prints — this program, a library, a C
extension, a child process — ends up on stderr. It is never moved back: buffers of C libraries are written when the
process ends, after everything Python can do.
"""

from __future__ import annotations

import os
import select
import sys

__all__ = ["Answer", "flush", "reader_left", "silence"]

_STDOUT, _STDERR = 1, 2


class Answer:
    """Where the one document goes. Made before anything else happens, written to once."""

    def __init__(self, *, keep_words: bool = False) -> None:
        """`keep_words`: keep what is printed instead of passing it to stderr, because it is the answer (a help text)."""
        self._fd: int | None = None
        self._kept: int | None = None
        if sys.stdout is None:
            return  # stdout was closed, and its number may belong to something else by now
        try:
            self._fd = _copy(_STDOUT)
        except OSError:
            return
        if keep_words:
            self._kept = _scratch()
        place = self._kept if self._kept is not None else _error_descriptor()
        os.dup2(place, _STDOUT)

    def words(self) -> str:
        """What was printed, where it was kept."""
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
        Hand over the document.

        Raises:
            OSError: when it cannot be delivered; BrokenPipeError when nobody reads any more.

        """
        if self._fd is None:
            raise OSError("there is no stdout")
        flush()
        left = memoryview(data)
        while left:
            try:
                left = left[os.write(self._fd, left) :]
            except BlockingIOError:  # somebody made it non-blocking; that holds for all who share it
                select.select([], [self._fd], [])


def flush() -> None:
    """Empty Python's buffer to wherever stdout leads now; a full disk there is not worth failing for."""
    try:
        sys.stdout.flush()
    except (OSError, ValueError, AttributeError):
        pass


def _copy(fd: int) -> int:
    """A copy that no child inherits, above the numbers of the standard streams, one of which may be free."""
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


def _scratch() -> int:
    import tempfile

    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def reader_left(fd: int = _STDOUT) -> bool:
    """Whether the other end of a pipe on stdout is gone, which tells its BrokenPipeError from that of a socket."""
    if not hasattr(select, "poll"):
        return True
    watch = select.poll()
    watch.register(fd, select.POLLERR)
    return any(event & (select.POLLERR | select.POLLNVAL) for _, event in watch.poll(0))


def silence() -> None:
    """Let what Python still holds for stdout vanish, so that it does not complain once more while closing it."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, _STDOUT)
    os.close(null)
