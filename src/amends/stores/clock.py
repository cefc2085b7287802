# ruff: noqa: D102  (the protocol documents the methods)
"""
The two clocks of a store: wall time for due times, steady time for leases.

The *wall* clock decides when a message is due. It keeps its meaning after a reboot, and it jumps when it is set.
The *steady* clock measures leases. It never jumps, all processes of the machine share it, and it restarts at each boot.
`boot` identifies the boot, so that a store recognises leases of an earlier boot; the processes that held them have ended.
"""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import Protocol

__all__ = ["NO_BOOT", "Clock", "SystemClock"]

NO_BOOT = "wall"
"""What `Clock.boot` returns where boots have no id; `Clock.steady` is then the wall clock."""


class Clock(Protocol):
    """
    The time source of a store. Pass your own to `stores.open` in tests, so that leases and delays need no real time.

    >>> import asyncio
    >>> from amends import stores
    >>> class Stopped(SystemClock):
    ...     def wall(self):
    ...         return 1000.0
    >>> store = asyncio.run(stores.open("memory:", clock=Stopped()))
    >>> asyncio.run(store.queue("mail").now())
    1000.0
    """

    def wall(self) -> float:
        """Seconds since 1970, as the machine's clock is set."""

    def steady(self) -> float:
        """Seconds since the boot named by `boot()`."""

    def boot(self) -> str:
        """An id of the boot that `steady` counts from."""


def _boot_id() -> str:
    if not hasattr(time, "CLOCK_BOOTTIME"):
        return ""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""


_BOOT = _boot_id()


class SystemClock:
    """
    The machine's clocks.

    On systems without a boot id (all but Linux), the wall clock is also the steady clock. Leases then end early or late
    when the clock is set, and only the epochs keep two workers from finishing the same message.
    """

    wall = staticmethod(time.time)
    # BOOTTIME instead of MONOTONIC: a lease also expires while the machine is suspended.
    steady = staticmethod(partial(time.clock_gettime, time.CLOCK_BOOTTIME) if _BOOT else time.time)

    def boot(self) -> str:
        return _BOOT or NO_BOOT
