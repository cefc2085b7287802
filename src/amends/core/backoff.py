"""How waits grow when the failing side names none."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

import msgspec

__all__ = ["Backoff", "BackoffKind"]


class BackoffKind(StrEnum):
    """The shapes a sequence of waits can have."""

    EXPONENTIAL = "exponential"
    LINEAR = "linear"
    CONSTANT = "constant"


class Backoff(msgspec.Struct, frozen=True, kw_only=True):
    """
    A sequence of waits in seconds.

    >>> [Backoff().wait(n) for n in (1, 2, 3, 9)]
    [1.0, 2.0, 4.0, 60.0]
    >>> [Backoff(kind="linear").wait(n) for n in (1, 2, 3)]
    [1.0, 2.0, 3.0]
    """

    kind: str = BackoffKind.EXPONENTIAL
    first: float = 1.0
    cap: float = 60.0
    spread: float = 0.5
    """Share of the wait that jitter may add. It only ever adds: no wait becomes shorter than it should be."""

    def __post_init__(self) -> None:
        if self.kind not in _GROWTH:
            raise ValueError(f"backoff kind is one of {', '.join(BackoffKind)}, not {self.kind!r}")
        if not (self.first >= 0 and self.cap >= 0 and self.spread >= 0):
            raise ValueError("first, cap and spread are not negative")

    def wait(self, retry: int) -> float:
        """The wait before retry number `retry` (1-based), without jitter."""
        return min(self.cap, self.first * _GROWTH[self.kind](retry))

    def jitter(self, wait: float, draw: float | None) -> float:
        """`wait`, lengthened by a share that `draw` (0 ≤ draw < 1) picks. No draw, no jitter."""
        return wait if draw is None else wait + wait * self.spread * draw


# Past 2**62 every cap has long been reached; the bound keeps the arithmetic finite.
_GROWTH: dict[str, Callable[[int], float]] = {
    BackoffKind.EXPONENTIAL: lambda retry: float(2 ** min(retry - 1, 62)),
    BackoffKind.LINEAR: float,
    BackoffKind.CONSTANT: lambda _retry: 1.0,
}
