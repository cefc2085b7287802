"""
How two things are compared on a noisy machine.

CPU time per call, ours and the other in turn, many short rounds; the ratio is the median of the rounds' ratios with
the interval in which half of them lie. A round that was disturbed disturbs both sides or falls out of the median.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median, quantiles
from typing import NamedTuple


class Ratio(NamedTuple):
    """Ours over the other's, with both in microseconds."""

    name: str
    ours: float
    other: float
    ratio: float
    low: float
    high: float
    want: str

    def row(self) -> str:
        return (
            f"| {self.name} | {self.ours:.2f} | {self.other:.2f} | "
            f"{self.ratio:.2f} ({self.low:.2f}–{self.high:.2f}) | {self.want} |"
        )


def compare(
    name: str,
    ours: Callable[[], object],
    other: Callable[[], object],
    *,
    want: str,
    rounds: int = 200,
    calls: int = 1000,
) -> Ratio:
    """The ratio of `ours` to `other`."""
    pairs = []
    for number in range(rounds + 5):
        first, second = (ours, other) if number % 2 else (other, ours)
        a, b = _cpu(first, calls), _cpu(second, calls)
        if number >= 5:  # the first rounds warm caches
            pairs.append((a, b) if number % 2 else (b, a))
    ratios = [a / b for a, b in pairs]
    low, _, high = quantiles(ratios, n=4)
    return Ratio(
        name, median(a for a, _ in pairs), median(b for _, b in pairs), median(ratios), low, high, want
    )


def _cpu(call: Callable[[], object], calls: int) -> float:
    """Microseconds of CPU per call."""
    begin = time.process_time_ns()
    for _ in range(calls):
        call()
    return (time.process_time_ns() - begin) / calls / 1000


HEADER = "| what | ours µs | other µs | ratio (middle half) | want |\n|---|---|---|---|---|"
