# ruff: noqa: D102  (what a method means is said once, in the protocol)
"""
Two clocks, because a lease and an appointment are different things.

*wall* says when something is due: it must mean the same after a reboot, and may jump when somebody sets it.
*steady* measures leases: it never jumps, is the same for every process of the machine, and starts anew with it; `boot`
tells the boots apart, so that leases of an earlier one (whose holders are dead for certain) are recognised.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Protocol

__all__ = ["Clock", "SystemClock"]


class Clock(Protocol):
    """Where a store reads the time; tests bring their own."""

    def wall(self) -> float:
        """Seconds since 1970, as set."""
        ...

    def steady(self) -> float:
        """Seconds since the boot named by `boot()`."""
        ...

    def boot(self) -> str:
        """Which boot of which machine `steady` counts from."""
        ...


class SystemClock:
    """
    The machine's clocks.

    Where the system does not tell its boots apart (other than Linux), the wall clock serves as the steady one: leases
    then end early or late when it is set, and the epochs alone keep two workers from finishing one task.
    """

    def __init__(self) -> None:
        self._boot = _boot_id()

    def wall(self) -> float:
        return time.time()

    def steady(self) -> float:
        if not self._boot:
            return time.time()
        # BOOTTIME rather than MONOTONIC: a lease also ends while the laptop sleeps.
        return time.clock_gettime(time.CLOCK_BOOTTIME)

    def boot(self) -> str:
        return self._boot or "wall"


def _boot_id() -> str:
    if not hasattr(time, "CLOCK_BOOTTIME"):
        return ""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""
