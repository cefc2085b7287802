"""Terminates a command's process group, and defers signals while a command is being started."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

__all__ = ["GRACE", "SIGNALS", "DeferredSignals", "exit_status", "terminate_group"]

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals whose handlers may raise, so that the command is terminated."""

GRACE = 2.0
"""Seconds between SIGTERM and SIGKILL."""
_TICK = 0.05


def exit_status(pid: int) -> os.waitid_result | None:
    """Return the exit status of a child, or None if it runs. The child stays a zombie, so its group id is not reused."""
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT | os.WNOHANG)


def terminate_group(pid: int, transfer: Callable[[float], object]) -> None:
    """
    Send SIGTERM to a child's process group, wait up to GRACE seconds, and send SIGKILL.

    Args:
        pid: the child, and the id of its group.
        transfer: called with the seconds to wait; it must empty the pipes, so that no process hangs on a full one.

    """
    _signal(pid, signal.SIGTERM)
    deadline = time.monotonic() + GRACE
    try:
        while time.monotonic() < deadline:
            transfer(_TICK)
            try:
                if exit_status(pid) is not None:
                    break
            except ChildProcessError:  # other code waited for the child
                break
    finally:  # also if a second interrupt ends the wait
        _signal(pid, signal.SIGKILL)


def _signal(pid: int, number: int) -> None:
    try:
        os.killpg(pid, number)
    except (ProcessLookupError, PermissionError):
        pass


class DeferredSignals:
    """
    Defers SIGINT, SIGTERM and SIGHUP while the command is being started, until code that can terminate it runs.

    The signals are not blocked, because the command would inherit a blocked mask.
    """

    def __init__(self) -> None:
        self._handlers: dict[int, Any] = {}
        self._received: list[int] = []
        if threading.current_thread() is threading.main_thread():
            for number in SIGNALS:
                handler = signal.getsignal(number)
                if callable(handler):
                    self._handlers[number] = handler
                    signal.signal(number, lambda received, _: self._received.append(received))

    def release(self) -> None:
        """Restore the handlers and raise the signals that arrived in the meantime."""
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        for number in self._received:
            signal.raise_signal(number)
