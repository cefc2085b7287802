"""The Upstreams that clients use by default: one per origin, kept while they are used."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import Any

from amends.recovery.clock import CLOCK
from amends.recovery.process_quota import process_quota
from amends.recovery.upstream import Upstream

__all__ = ["configure", "upstream_for"]

MOST = 1000
"""Origins that are kept. More: memory; fewer: a process that calls many services forgets some while it uses them."""
IDLE = 600.0
"""Seconds after which an unused origin without trouble is dropped. Longer: memory; shorter: its usual round trip is
learned again."""
_SWEEP = 60.0

_lock = Lock()
_origins: OrderedDict[str, tuple[Upstream, float]] = OrderedDict()
_swept_at = 0.0


def upstream_for(origin: str) -> Upstream:
    """
    Return the Upstream of an origin such as "https://api.example.com". All clients of this process share it.

    >>> upstream_for("https://api.example.com") is upstream_for("https://api.example.com")
    True
    """
    global _swept_at  # noqa: PLW0603 - the origins belong to the process
    now = CLOCK.now()
    with _lock:
        found = _origins.get(origin)
        upstream = Upstream(origin) if found is None else found[0]
        _origins[origin] = upstream, now
        _origins.move_to_end(origin)
        if not 0.0 <= now - _swept_at < _SWEEP or len(_origins) > MOST:
            _swept_at = now
            _drop_idle(now)
        return upstream


def _drop_idle(now: float) -> None:
    """Drop unused origins, and the least recently used ones above the limit."""
    for origin, (upstream, used) in list(_origins.items()):
        if len(_origins) > MOST or (now - used > IDLE and upstream.idle):
            del _origins[origin]
        elif now - used <= IDLE:
            break


def configure(*, quota: Any = True) -> None:
    """
    Configure recovery in this process.

    `quota=None` turns off the quota of repeats for operations without an Upstream; `quota=True` turns it on again.

    Raises:
        TypeError: for other values.

    """
    if quota is not None and quota is not True:
        raise TypeError("quota is None (no quota) or True (the default one)")
    process_quota.turn(on=quota is not None)
