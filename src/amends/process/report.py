"""
The failure documents that commands write for `run`, to a descriptor beside stdout and stderr.

`run` gives a command the write end of a pipe, and names it in the environment: number, device and inode. A program with the
`main` of amends writes the envelope of its failure there, whatever it writes to stdout and stderr, so that both stay as they
are for the programs around it (`sh -c 'shop list | grep x'`). The device and the inode prove that the number still means this pipe:
programs close what they inherit, and a number is used again.

A document of the command itself counts as its envelope. Of a program below it (a shell's), the code, the class, the wait and the text
count; that nothing happened does not, because the programs beside it may have done something.
"""

from __future__ import annotations

import os
from typing import Any

__all__ = ["VARIABLE", "Report"]

VARIABLE = "AMENDS_FAILURE_FD"
"""The same name as in `amends.cli.failure_pipe`, which writes."""
_LIMIT = 65536
"""Bytes of all documents of one run. It is what a pipe holds: writers do not wait."""


class Report:
    """The pipe for the failure documents of one run."""

    def __init__(self) -> None:
        self._read, self.fd = os.pipe()
        os.set_blocking(self._read, False)
        os.set_blocking(self.fd, False)

    def environment(self) -> dict[str, str]:
        """Return what names the pipe to the command."""
        found = os.fstat(self.fd)
        return {VARIABLE: f"{self.fd}:{found.st_dev}:{found.st_ino}"}

    def started(self) -> None:
        """Close the write end, which the command has now."""
        os.close(self.fd)
        self.fd = -1

    def last(self) -> tuple[int, dict[str, Any]] | None:
        """Return the process id and the envelope of the last document, or None if there is none."""
        import msgspec

        received = b""
        while len(received) < _LIMIT:
            try:
                part = os.read(self._read, _LIMIT - len(received))
            except OSError:  # nothing more now; a program below may still have the pipe
                break
            if not part:
                break
            received += part
        for line in reversed(received.split(b"\n")[:-1]):
            try:
                document = msgspec.json.decode(line)
            except (msgspec.DecodeError, RecursionError, UnicodeError):
                continue
            if isinstance(document, dict):
                pid, envelope = document.get("pid"), document.get("envelope")
                if isinstance(pid, int) and isinstance(envelope, dict):
                    return pid, envelope
        return None

    def close(self) -> None:
        """Close the pipe."""
        os.close(self._read)
        if self.fd >= 0:
            os.close(self.fd)
