"""How a command ends: by itself, with its whole group when it is no longer wanted, and never halfway started."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

__all__ = ["GRACE", "HeldSignals", "end_group", "ended"]

GRACE = 2.0
"""Seconds between asking a group to end and ending it."""
_TICK = 0.05


def ended(pid: int) -> os.waitid_result | None:
    """How a child ended, or None; it stays unreaped, so that its group keeps its number."""
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT | os.WNOHANG)


def end_group(pid: int, meanwhile: Callable[[float], Any]) -> None:
    """
    Ask the whole group of a child to end, give it a moment, and end it.

    Args:
        pid: the child, and the number of its group.
        meanwhile: is called with seconds to spend, so that nobody hangs on a full pipe.

    """
    _signal(pid, signal.SIGTERM)
    until = time.monotonic() + GRACE
    while time.monotonic() < until:
        meanwhile(_TICK)
        try:
            if ended(pid) is not None:
                break
        except ChildProcessError:  # somebody else waited for it
            break
    _signal(pid, signal.SIGKILL)


def _signal(pid: int, number: int) -> None:
    try:
        os.killpg(pid, number)
    except (ProcessLookupError, PermissionError):
        pass


class HeldSignals:
    """
    Signals that arrive while the command is being started wait until somebody is there to end it.

    They are not blocked, because the command would inherit that.
    """

    def __init__(self) -> None:
        self._before: dict[int, Any] = {}
        self._came: list[int] = []
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                handler = signal.getsignal(number)
                if callable(handler):
                    self._before[number] = handler
                    signal.signal(number, lambda came, _: self._came.append(came))

    def release(self) -> None:
        """Let those through that came meanwhile."""
        for number, handler in self._before.items():
            signal.signal(number, handler)
        for number in self._came:
            signal.raise_signal(number)
