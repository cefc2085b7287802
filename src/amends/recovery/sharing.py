"""
Sharing what is known about a service between processes, through an object that the caller hands in.

A process writes one record when a service becomes unavailable and at every failed probe. It reads the record while its
own calls wait, and before a call if its last answer is old. A process whose calls succeed neither reads nor writes.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Protocol

from amends.recovery.clock import CLOCK
from amends.recovery.schedule import Hold

__all__ = ["Shared", "Sharing"]

OLD = 60.0
"""Seconds after which a record is ignored. Longer: a process that died while its service was down holds others back."""
LEASE = 5.0
"""Seconds for which one process may probe. Longer: if it dies, the others wait; shorter: more probes."""
INTERVAL = 1.0
"""Seconds between two reads. Shorter: others learn sooner; longer: fewer reads."""
FRESH = 5.0
"""A process whose last answer is younger does not read. Longer: it learns later; shorter: more reads."""


class Shared(Protocol):
    """
    Where processes share what they know. Times are seconds since the epoch; values are plain numbers.

    The methods are called on the thread that makes the call and have to return quickly. If one raises, recovery
    continues without sharing.

        class InRedis:
            def read(self, name: str) -> dict[str, float] | None:
                return json.loads(redis.get(f"upstream:{name}") or "null")

            def write(self, name: str, record: Mapping[str, float] | None) -> None:
                redis.set(f"upstream:{name}", json.dumps(record))

            def lease(self, name: str, seconds: float) -> bool:
                return bool(redis.set(f"probe:{name}", 1, nx=True, px=int(seconds * 1000)))

        shop = Upstream("shop", shared=InRedis())
    """

    def read(self, name: str) -> Mapping[str, float] | None:
        """Return the record of a service, or None."""

    def write(self, name: str, record: Mapping[str, float] | None) -> None:
        """Replace the record of a service; None removes it."""

    def lease(self, name: str, seconds: float) -> bool:
        """Return whether this caller may probe the service; for `seconds` no other caller gets True."""


class Sharing:
    """One Upstream's use of a `Shared`. Every failure of it is ignored."""

    interval = INTERVAL

    def __init__(self, shared: Shared, name: str) -> None:
        self._shared = shared
        self._name = name
        self._read_at = float("-inf")
        self._seen = 0.0

    def read(self, now: float, last_answered: float) -> tuple[float, float, bool] | None:
        """Return (resume_at, until, shut) on this process's clock if there is a new record; at most once a second."""
        if now - self._read_at < INTERVAL or now - last_answered < FRESH:
            return None
        self._read_at = now
        offset = now - CLOCK.wall()
        try:
            record = self._shared.read(self._name)
            if record is None:
                was, self._seen = self._seen, 0.0
                return (now, 0.0, False) if was else None
            at, resume_at, until = (float(record[key]) for key in ("at", "resume_at", "until"))
        except Exception:  # noqa: BLE001 - without the other processes' knowledge recovery works alone
            return None
        if not all(map(isfinite, (at, resume_at, until))) or not 0.0 <= now - (at + offset) < OLD:
            return None
        if at == self._seen:
            return None
        self._seen = at
        return resume_at + offset, until + offset if until else 0.0, True

    def write(self, hold: Hold, now: float) -> None:
        """Write that the service is unavailable."""
        offset = CLOCK.wall() - now
        self._seen = now + offset
        record = {
            "at": self._seen,
            "resume_at": hold.resume_at + offset,
            "until": hold.until + offset if hold.until else 0.0,
        }
        self._try(record)

    def clear(self) -> None:
        """Remove the record: the service is available again."""
        self._seen = 0.0
        self._try(None)

    def may_probe(self) -> bool:
        """Return whether this process may send the next probe."""
        try:
            return bool(self._shared.lease(self._name, LEASE))
        except Exception:  # noqa: BLE001
            return True

    def _try(self, record: Mapping[str, float] | None) -> None:
        try:
            self._shared.write(self._name, record)
        except Exception:  # noqa: BLE001
            return
