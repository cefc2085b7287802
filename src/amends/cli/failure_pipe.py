"""Write a failure for the `amends run` that started this program, beside stdout and stderr; `amends.process.report` reads it."""

from __future__ import annotations

import os
import stat

__all__ = ["VARIABLE", "write_failure"]

VARIABLE = "AMENDS_FAILURE_FD"
"""The variable that names the pipe: its number, device and inode."""
_LARGEST = 16384
"""Bytes of one document."""


def write_failure(envelope: bytes) -> None:
    """
    Write the envelope of a failure. It never waits and never fails.

    The device and the inode prove that the number still means that pipe: programs close what they inherit, and a number is
    used again.

    Args:
        envelope: the document, as it is written to stdout with `--output json`.

    """
    named = os.environ.get(VARIABLE, "")
    number = named.partition(":")[0]
    if not number.isdecimal() or len(number) > 9 or len(envelope) > _LARGEST:
        return
    try:
        fd = int(number)
        found = os.fstat(fd)
        if stat.S_ISFIFO(found.st_mode) and f"{fd}:{found.st_dev}:{found.st_ino}" == named:
            os.write(fd, b'{"pid":%d,"envelope":%s}\n' % (os.getpid(), envelope.strip()))
    except OSError:
        return  # the pipe is full, or was closed
