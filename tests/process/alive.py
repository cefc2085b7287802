"""Checks whether processes have ended, by asking the system."""

import time
from pathlib import Path

TIMEOUT = 30.0
"""Seconds: enough for a busy machine, and less than any of the processes would run by itself."""


def alive(pid):
    """Return whether a process runs; a zombie does not count."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in {"Z", "X"}


def all_gone(pids):
    """Return whether all processes end before the timeout."""
    deadline = time.monotonic() + TIMEOUT
    while any(map(alive, pids)):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


class JumpingClock:
    """
    A stand-in for the time module of `amends.process.child`: a timeout of up to 1000 s expires once `file` grows.

    A test can wait for the event that way, instead of for a time that may be too short on a busy machine.
    """

    def __init__(self, file, lines=1):
        self.file, self.lines = file, lines

    def monotonic(self):
        written = self.file.read_text().count("\n") if self.file.exists() else 0
        return time.monotonic() + written // self.lines * 1000


def read_pids(file, count=1):
    """Wait until a file has `count` lines, and return them as process ids."""
    deadline = time.monotonic() + TIMEOUT
    while time.monotonic() < deadline:
        if file.exists() and len(found := file.read_text().split("\n")[:-1]) >= count:
            return [int(line) for line in found]
        time.sleep(0.01)
    raise AssertionError(f"{file.name} never had {count} lines")
