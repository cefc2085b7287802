"""How waits grow when the failing side names none."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from math import inf

import msgspec

from amends.core.validate import check_seconds

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
    """Share of a wait that jitter moves it by: our own waits become shorter, those asked for become longer."""

    def __post_init__(self) -> None:
        if self.kind not in _GROWTH:
            raise ValueError(f"backoff kind is one of {', '.join(BackoffKind)}, not {self.kind!r}")
        check_seconds("first", self.first)
        check_seconds("cap", self.cap)
        if not (0 <= self.first < inf and 0 <= self.cap < inf and 0 <= self.spread <= 1):
            raise ValueError("first and cap are finite and not negative; spread is a share from 0 to 1")

    def wait(self, retry: int) -> float:
        """The wait before retry number `retry` (1-based), without jitter."""
        # Every kind begins with the first wait.
        growth = 1.0 if retry == 1 else _GROWTH[self.kind](retry)
        return min(self.cap, self.first * growth)

    def jitter(self, wait: float, draw: float | None) -> float:
        """
        One of our own waits, shortened by a share that `draw` (0 ≤ draw < 1) picks. No draw, no jitter.

        >>> Backoff().jitter(4.0, 0.5)
        3.0
        """
        return wait if draw is None else wait - wait * self.spread * draw

    def above(self, hint: float, draw: float | None) -> float:
        """
        A wait the failing side asked for, never shortened: up to a tenth is added (a quarter second at least, so
        that a crowd told "1" does not come back as one), and never more than the spread allows.

        >>> Backoff().above(10.0, 0.5)
        10.5
        """
        if draw is None:
            return hint
        return hint + draw * min(self.spread * hint, max(_CROWD, hint / 10))


_CROWD = 0.25  # seconds

# Past 2**62 every cap has long been reached; the bound keeps the arithmetic finite.
_GROWTH: dict[str, Callable[[int], float]] = {
    BackoffKind.EXPONENTIAL: lambda retry: float(2 ** min(retry - 1, 62)),
    BackoffKind.LINEAR: float,
    BackoffKind.CONSTANT: lambda _retry: 1.0,
}
