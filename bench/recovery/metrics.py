"""The metrics of one run, and means with intervals over many runs."""

import math
from dataclasses import dataclass

from bench.recovery.overload import Overload
from bench.recovery.run import Record

BIN = 2.0  # seconds at least, and ...
PER_BIN = 150  # ... arrivals at least, so that the noise of one bin is not taken for a relapse
BACK = 0.9  # the share of the arrivals that has to succeed for the fleet to count as recovered


def percentile(values: list[float], share: float) -> float:
    """Return the percentile by nearest rank; NaN for an empty list."""
    if not values:
        return math.nan
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, math.ceil(share * len(ordered)) - 1)]


def mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else math.nan


def measure(record: Record) -> dict[str, float]:
    """Return the metrics of one run, by name."""
    service, arrivals = record.service, record.arrivals
    spans = [end - at for end, (at, _) in zip(record.ends, arrivals, strict=True)]
    won = [span for span, ok in zip(spans, record.succeeded, strict=True) if ok]
    lost = [span for span, ok in zip(spans, record.succeeded, strict=True) if not ok]
    failed = [index for index, ok in enumerate(record.succeeded) if not ok]
    numbers = {
        "operations": float(len(arrivals)),
        "success": 100 * len(won) / len(arrivals),
        "calls": float(service.calls),
        "calls/success": service.calls / len(won) if won else math.nan,
        "p50": percentile(won, 0.50),
        "p99": percentile(won, 0.99),
        "to failure": mean(lost),
        "blocked": mean(spans),
        "doomed": float(service.doomed),
        "wasted": float(service.wasted),
        "duplicates": float(service.duplicates),
        "orphans": float(sum(service.commits[index] > 0 for index in failed)),
        "refreshes": float(service.refreshes),
    }
    if isinstance(service, Overload):
        numbers |= fleet(record, service)
    return numbers


def timeline(record: Record, width: float = 1.0) -> tuple[list[int], list[int]]:
    """Count arrivals and successful ends in bins of `width` seconds, until the last arrival."""
    bins = math.ceil(record.arrivals[-1][0] / width)
    came, went = [0] * bins, [0] * bins
    for (at, _), end, ok in zip(record.arrivals, record.ends, record.succeeded, strict=True):
        came[min(int(at / width), bins - 1)] += 1
        if ok and end < bins * width:
            went[int(end / width)] += 1
    return came, went


def fleet(record: Record, service: Overload) -> dict[str, float]:
    """
    Return how the fleet recovered after the server was slow.

    `recovery` is the time from the end of the slow phase until the first bin from which goodput stays at 90 % of the
    arrivals or more. A run that never recovers counts with all the time that was left. `goodput after` is the number of
    successes per second over the second half of the load.
    """
    width = max(BIN, PER_BIN * record.arrivals[-1][0] / len(record.arrivals))
    came, went = timeline(record, width)
    back = first = math.ceil(service.slow_until / width)
    for index in range(first, len(came) - 1):  # the last bin is cut short by the end of the load
        if went[index] < BACK * came[index]:
            back = index + 1
    half = len(went) // 2
    return {
        "recovery": 0.0 if back == first else back * width - service.slow_until,
        "goodput after": sum(went[half:-1]) / (width * len(went[half:-1])),
    }


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over seeds, its standard error, and the number of seeds that have a value."""

    mean: float
    error: float
    count: int

    @property
    def half(self) -> float:
        """Half the width of the 95 % interval."""
        return 1.96 * self.error


def estimate(values: list[float]) -> Estimate:
    """Return mean and standard error. Runs without a value (nothing succeeded) are left out."""
    values = [value for value in values if not math.isnan(value)]
    if not values:
        return Estimate(math.nan, math.nan, 0)
    centre = mean(values)
    spread = math.sqrt(sum((value - centre) ** 2 for value in values) / max(1, len(values) - 1))
    return Estimate(centre, spread / math.sqrt(len(values)), len(values))
