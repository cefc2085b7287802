"""
The regimes of docs/recovery-regimes.md with fixed workers and with batches, beside an oracle.

    python -m bench.recovery.closed_targets [names] [--seeds N] [--first SEED] [--contenders amends,amends bare]

The parameters of every seed are drawn from the ranges of `bench.recovery.targets`. Workers begin before the trouble, and make calls
until it is over; a batch begins in the middle of it. Each cell: success in percent / makespan as a multiple of the oracle's /
calls per success. A success is counted only where it is possible: not for the tenant that is refused.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
import warnings
from pathlib import Path
from typing import Any

from bench.recovery.closed import Closed, contenders
from bench.recovery.metrics import mean
from bench.recovery.overload import Overload
from bench.recovery.regime_list import Known, Regime
from bench.recovery.regime_services import Bucket, Flapping, Lying, OneHint, Tenants
from bench.recovery.services import Answer, Service
from bench.recovery.targets import TARGETS, regime_of
from bench.recovery.wire import Request, Response

BATCHES = (1, 5, 20, 100, 1000)
WORKERS, MOST = 20, 3000
"""Fixed workers of each row, and the most operations that they make."""
SECONDS = 90.0
"""How long the workers would be busy without trouble."""


class Adapted(Service):
    """A service of the open regimes."""

    def __init__(self, regime: Regime, seed: int) -> None:
        super().__init__(seed)
        self.inner = regime.build(seed)
        self.timeout = regime.timeout
        self.promised, self.promised_at = getattr(self.inner, "depth", 0.0), 0.0

    @property
    def latency(self) -> float:
        inner: Any = self.inner.service if isinstance(self.inner, Known) else self.inner
        return float(inner.latency)

    @latency.setter
    def latency(self, value: float) -> None:
        """It is that of the service inside."""

    def answer(self, now: float, request: Request) -> Answer:
        when, status, hint = self.inner.call(now, request.operation, request.number, 0)
        if status >= 400 or when is None:
            self.doomed += 1
            self.doomed_first += request.number == 1
        if when is None:
            return None
        return when, Response(status, {} if hint is None else {"Retry-After": f"{hint:g}"})

    def priority(self, operation: int) -> int:
        """1 for the operations that are measured."""
        return int(not isinstance(self.inner, Tenants) or self.inner.tenant(operation) > 0)

    def opportunity(self, now: float, operation: int) -> float | None:
        inner = self.inner
        if isinstance(inner, Known):
            return inner.service.opportunity(now, operation)
        if isinstance(inner, Lying):
            return inner.end if inner.start <= now < inner.end else now
        if isinstance(inner, OneHint) and inner.true:
            return inner.at + inner.hint if inner.at <= now < inner.at + inner.hint else now
        if isinstance(inner, Flapping):
            return now if now // inner.period % 2 == 0 else (now // inner.period + 1) * inner.period
        if isinstance(inner, Bucket):
            at = max(now, self.promised_at)
            level = min(inner.depth, self.promised + (at - self.promised_at) * inner.rate)
            at += max(0.0, 1.0 - level) / inner.rate
            self.promised = min(inner.depth, self.promised + (at - self.promised_at) * inner.rate) - 1.0
            self.promised_at = at
            return at + 1e-9
        return (
            None
            if isinstance(inner, Tenants) and not self.priority(operation) and now >= inner.start
            else now
        )


def trouble_at(service: Adapted) -> float:
    """Return a time in the middle of the trouble."""
    inner: Any = service.inner.service if isinstance(service.inner, Known) else service.inner
    if isinstance(inner, Overload):
        return float(inner.slow_from + 1.0)
    if isinstance(inner, Flapping):
        return float(1.5 * inner.period)
    return float(getattr(inner, "at", 0.0) or getattr(inner, "start", 0.0)) + 1.0


def closed(regime: Regime, seed: int, load: str) -> Closed:
    """Return a regime with fixed workers (`load` is "workers"), or with a batch of as many calls as `load` says."""
    service = Adapted(regime, seed)
    clients = 1 + max(client for _, client in regime.load(seed))

    def build(seed: int) -> Adapted:
        return Adapted(regime, seed)

    if load == "workers":
        workers = max(WORKERS, clients)
        begun = min(trouble_at(service), 60.0)
        operations = min(MOST, round(workers * (SECONDS + begun) / max(service.latency, 0.05)))
        return Closed(regime.name, build, operations=max(workers, operations), workers=workers, clients=clients,
                      timeout=regime.timeout, at=max(0.0, trouble_at(service) - 5.0), high=True)  # fmt: skip
    return Closed(regime.name, build, operations=int(load), clients=clients, timeout=regime.timeout,
                  at=trouble_at(service), high=True)  # fmt: skip


def measure(name: str, seed: int, load: str, contender: str) -> dict[str, float]:
    """Return the figures of one run."""
    drawn = closed(regime_of(TARGETS[name], seed), seed, load)
    return drawn.run(contenders()[contender], seed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="parts of names; all by default")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first", type=int, default=301)
    parser.add_argument("--contenders", default="amends")
    parser.add_argument("--keep", type=Path, help="file of runs to reuse and to add to")
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    known: dict[tuple[str, int, str, str], dict[str, float]] = {}
    if options.keep is not None and options.keep.exists():
        for *job, numbers in map(json.loads, options.keep.read_text().splitlines()):
            known[job[0], job[1], job[2], job[3]] = numbers
    loads = ("workers", *map(str, BATCHES))
    seeds = range(options.first, options.first + options.seeds)
    names = [each for each in TARGETS if not options.names or any(part in each for part in options.names)]
    for name in names:
        if "no Upstream" in name:
            continue  # the same regimes
        for contender in options.contenders.split(","):
            cells = []
            for load in loads:
                figures: dict[str, list[dict[str, float]]] = {"oracle": [], contender: []}
                for each, runs in figures.items():
                    for seed in seeds:
                        job = name, seed, load, each
                        if job not in known:
                            known[job] = measure(*job)
                            if options.keep is not None:
                                with options.keep.open("a") as file:
                                    file.write(json.dumps([*job, known[job]]) + "\n")
                        runs.append(known[job])
                ours, best = figures[contender], figures["oracle"]
                success = mean([run["success"] for run in ours])
                ratio = mean([run["makespan"] for run in ours]) / mean([run["makespan"] for run in best])
                extra = mean([run["calls"] for run in ours]) - mean([run["calls"] for run in best])
                cells.append(f"{success:.3g} / {ratio:.3g} / {1 + extra:.3g}")
            print(f"| {name} | {contender} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    sys.exit(main())
