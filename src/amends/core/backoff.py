"""How waits grow when the failing service names none."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from math import inf

import msgspec

from amends.core.named_options import NamedOptions
from amends.core.validate import check_seconds, shown

__all__ = ["Backoff", "BackoffKind"]


class BackoffKind(StrEnum):
    """How a sequence of waits grows."""

    EXPONENTIAL = "exponential"
    LINEAR = "linear"
    CONSTANT = "constant"


class Backoff(msgspec.Struct, frozen=True, kw_only=True, repr_omit_defaults=True, metaclass=NamedOptions):
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
    """Largest share by which jitter changes a wait. It shortens our own waits and lengthens those a service asks for."""

    def __post_init__(self) -> None:
        kind: object = self.kind
        if not isinstance(kind, str) or kind not in _GROWTH:
            raise ValueError(f"backoff kind is one of {', '.join(BackoffKind)}, not {shown(kind)}")
        check_seconds("first", self.first)
        check_seconds("cap", self.cap)
        if isinstance(self.spread, bool) or not isinstance(self.spread, int | float):
            raise TypeError(f"spread is a share from 0 to 1, not {type(self.spread).__name__}")
        if not (0 <= self.first < inf and 0 <= self.cap < inf and 0 <= self.spread <= 1):
            raise ValueError("first and cap are finite and not negative; spread is a share from 0 to 1")

    def wait(self, retry: int) -> float:
        """Return the wait before retry number `retry` (1-based), without jitter."""
        # Every kind starts with the first wait.
        growth = 1.0 if retry == 1 else _GROWTH[self.kind](retry)
        return min(self.cap, self.first * growth)

    def jitter(self, wait: float, draw: float | None) -> float:
        """
        Shorten one of our own waits by a share that depends on `draw` (0 ≤ draw < 1). Without a draw it stays as it is.

        >>> Backoff().jitter(4.0, 0.5)
        3.0
        """
        return wait if draw is None else wait - wait * self.spread * draw

    def above(self, hint: float, draw: float | None) -> float:
        """
        Lengthen a wait that the failing service asked for, by a share that depends on `draw`. It is never shortened.

        Adds at most a tenth, or a quarter of a second if that is more: many clients that were asked to wait one
        second must not all return at the same moment. Never adds more than the spread allows.

        >>> Backoff().above(10.0, 0.5)
        10.5
        """
        if draw is None:
            return hint
        return hint + draw * min(self.spread * hint, max(_LEAST_ADDED, hint / 10))


_LEAST_ADDED = 0.25  # seconds

# Every realistic cap is reached before 2**62; the bound keeps the arithmetic finite.
_GROWTH: dict[str, Callable[[int], float]] = {
    BackoffKind.EXPONENTIAL: lambda retry: float(2 ** min(retry - 1, 62)),
    BackoffKind.LINEAR: float,
    BackoffKind.CONSTANT: lambda _retry: 1.0,
}
