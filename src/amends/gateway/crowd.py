"""
Which calls of an upstream are let in when there are many, so that those of one route or caller do not keep out the others.

A call that waits for its turn or between tries is not in flight. Both are counted per credential and route.
"""

from __future__ import annotations

from collections import Counter

__all__ = ["Crowd"]

_SHARE = 8
"""Calls are counted per route from this part of the limit on: below it there is room for everybody."""
_MOST = 2
"""Times the limit that may be in flight while every route gets its share."""


class Crowd:
    """The calls of one upstream that are in flight, and those that wait."""

    def __init__(self, limit: int) -> None:
        """
        Args:
            limit: calls in flight at once.

        """
        self.limit = limit
        self.in_flight = 0
        self.waiting = 0
        self._flying: Counter[str] = Counter()
        self._parked: Counter[str] = Counter()

    @property
    def crowded(self) -> bool:
        """Whether calls are counted per route."""
        return self.in_flight >= self.limit // _SHARE

    def admits(self, route: str) -> bool:
        """
        Return whether one more call of a route may be sent.

        >>> crowd = Crowd(2)
        >>> for _ in range(2):
        ...     crowd.enter("broken")
        >>> crowd.admits("broken"), crowd.admits("healthy")
        (False, True)
        """
        if self.in_flight < self.limit:
            return True
        return self.in_flight < _MOST * self.limit and self._flying[route] < self.limit // (
            len(self._flying) + (route not in self._flying)
        )

    def enter(self, route: str | None) -> None:
        """Count a call that is in flight."""
        self.in_flight += 1
        if route is not None:
            self._flying[route] += 1

    def leave(self, route: str | None) -> None:
        """Count it no more."""
        self.in_flight -= 1
        if route is not None:
            _less(self._flying, route)

    def has_room_to_wait(self, route: str) -> bool:
        """Return whether one more call of a route may wait."""
        return self._parked[route] < max(1, self.limit // 2) and self.waiting < _MOST * self.limit

    def park(self, route: str) -> None:
        """Count a call that waits, or is being repeated."""
        self._parked[route] += 1
        self.waiting += 1

    def unpark(self, route: str) -> None:
        """Count it no more."""
        _less(self._parked, route)
        self.waiting -= 1


def _less(counts: Counter[str], route: str) -> None:
    counts[route] -= 1
    if counts[route] <= 0:
        del counts[route]
