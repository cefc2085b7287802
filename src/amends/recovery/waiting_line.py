"""The calls that wait for their turn: the highest priority first, and within a priority in the order of their arrival. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from amends.recovery.async_library import Waiter

__all__ = ["WaitingLine"]


class WaitingLine:
    """A queue of waiters. Each operation is constant in the number of waiters, and linear in that of the priorities in use."""

    __slots__ = ("_lines",)

    def __init__(self) -> None:
        # A dict keeps the order of insertion.
        self._lines: dict[int, dict[Waiter, None]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._lines.values()))

    def __bool__(self) -> bool:
        return bool(self._lines)

    def __contains__(self, waiter: Waiter) -> bool:
        return waiter in self._lines.get(waiter.priority, ())

    def __iter__(self) -> Iterator[Waiter]:
        for priority in sorted(self._lines, reverse=True):
            yield from self._lines[priority]

    def add(self, waiter: Waiter) -> None:
        """Add a waiter at the end of its priority."""
        self._lines.setdefault(waiter.priority, {})[waiter] = None

    def discard(self, waiter: Waiter) -> None:
        """Remove a waiter, if it waits."""
        line = self._lines.get(waiter.priority)
        if line is not None:
            line.pop(waiter, None)
            if not line:
                del self._lines[waiter.priority]

    def head(self) -> Waiter:
        """Return the waiter whose turn is next."""
        return next(iter(self._lines[max(self._lines)]))
