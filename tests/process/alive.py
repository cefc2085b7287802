"""Whether processes that somebody started are gone, asked of the system instead of waiting for what they would do."""

import time
from pathlib import Path

PATIENCE = 30.0
"""Seconds: for a busy machine, and well below what any of them would live by itself."""


def alive(pid):
    """Whether a process still runs; one that has ended and was not yet waited for does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in {"Z", "X"}


def all_gone(pids):
    """Whether all of them end within a moment."""
    until = time.monotonic() + PATIENCE
    while any(map(alive, pids)):
        if time.monotonic() > until:
            return False
        time.sleep(0.01)
    return True


def written(file, count=1):
    """The process numbers in a file, once there are so many."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        if file.exists() and len(found := file.read_text().split("\n")[:-1]) >= count:
            return [int(line) for line in found]
        time.sleep(0.01)
    raise AssertionError(f"{file.name} never held {count} lines")
