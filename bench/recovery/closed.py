"""
Closed loops, batches and limits: fixed workers make the next call when the last one has ended.

    python -m bench.recovery.closed [names] [--seeds N] [--first SEED] [--contenders amends,tenacity,…] [--keep FILE]

Every contender runs its own code on virtual time, ours too. Waiting costs here: the makespan is the time until the last
operation has ended, as a multiple of that of an oracle, which knows when each call will succeed.
"""

from __future__ import annotations

import argparse
import json
import logging
import multiprocessing
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.recovery.closed_services import Minute, Queue, Refilled, Shedding, Slots, Trouble
from bench.recovery.load import Arrival, poisson
from bench.recovery.metrics import mean, percentile
from bench.recovery.run import Contender, Record, run

PATIENCE = 300.0
"""The most seconds that an operation waits under the default policy."""
LIMITS, SLOTS, BLIPS, COLD_SILENCE = 1.2, 1.3, 4.0, 10.0
"""The wanted makespans, as multiples of the oracle's."""


@dataclass(frozen=True, slots=True)
class Closed:
    """A service, and how much is called how."""

    name: str
    service: Callable[..., Any]
    options: dict[str, Any] = field(default_factory=dict)
    operations: int = 100
    workers: int = 0
    """Operations that run at the same time; 0: all of them, a batch."""
    at: float = 0.0
    """When they begin."""
    before: int = 0
    """Operations a second before that, for the last 30 s of it, which are not measured."""
    load: Callable[[int], list[Arrival]] | None = None
    """An open load instead."""
    clients: int = 1
    """Processes; the operations are dealt out to them."""
    timeout: float = 0.0
    deadline: float | None = None
    wanted: float = LIMITS
    high: bool = False
    """Whether only operations of high priority are measured."""

    def arrivals(self, seed: int) -> list[Arrival]:
        if self.load is not None:
            return self.load(seed)
        warm = [(30.0 * i / max(1, 30 * self.before), 0) for i in range(30 * self.before)]
        return warm + [(self.at, i % self.clients) for i in range(self.operations)]

    def build(self, seed: int) -> Any:
        service = self.service(seed, **self.options)
        # Where answers may be long, clients allow a minute; where none comes, the issue is to notice that.
        service.timeout = self.timeout or (
            max(2.0, 3 * service.latency) if isinstance(service, Trouble) else 60.0
        )
        service.deadline = self.deadline
        return service

    def run(self, contender: Contender, seed: int) -> dict[str, float]:
        record = run(self.build(seed), self.arrivals(seed), contender, seed, workers=self.workers)
        return self.measure(record)

    def measure(self, record: Record) -> dict[str, float]:
        service = record.service
        chosen = range(30 * self.before if self.load is None else 0, len(record.arrivals))
        if self.high:
            chosen = [i for i in chosen if service.priority(i)]
        good = [i for i in chosen if record.succeeded[i]]
        spans = [record.ends[i] - record.starts[i] for i in good]
        return {
            "success": 100.0 * len(good) / len(chosen),
            "in time": 100.0 * sum(span <= PATIENCE for span in spans) / len(chosen),
            "makespan": max(record.ends[i] for i in chosen) - min(record.starts[i] for i in chosen),
            "calls": (service.calls - service.doomed_first) / max(1, sum(record.succeeded)),
            "refused": 100.0 * service.doomed / max(1, service.calls),
            "p50": percentile(spans, 0.5),
            "p99": percentile(spans, 0.99),
        }


def _regimes() -> list[Closed]:
    found = [
        Closed(f"{count} at once, cold, 0.3 s of 503", Trouble, operations=count, wanted=BLIPS)
        for count in (1, 5, 20, 100, 1000)
    ]
    found += [
        Closed("100 at once, cold, 3 s of 503", Trouble, {"length": 3.0}, wanted=BLIPS),
        Closed(
            "100 at once, cold, 2 s of time-outs", Trouble, {"length": 2.0, "status": 0}, wanted=COLD_SILENCE
        ),
        Closed(
            "100 at once after an idle hour, 0.3 s of 503",
            Trouble,
            {"start": 3600.0},
            at=3600.0,
            before=1,
            wanted=BLIPS,
        ),
    ]
    found += [
        Closed(
            f"20 s outage, Retry-After {label}, {workers} workers",
            Trouble,
            {"start": 10.0, "length": 20.0, "hint": hint},
            operations=40 * workers * 20,
            workers=workers,
        )
        for label, hint in (("0", "0"), ("1", "1"))
        for workers in (5,)
    ]
    for requests, operations in ((40, 200), (60, 300), (200, 600), (500, 1500)):
        for label, options in (
            ("bare", {}),
            ("time named", {"named": True}),
            ("published", {"named": True, "published": "x-ratelimit"}),
        ):
            found.append(
                Closed(
                    f"{requests} requests a minute, {label}, 50 workers",
                    Minute,
                    {"requests": requests, **options},
                    operations=operations,
                    workers=50,
                    wanted=1.05 if "published" in options else LIMITS,
                )
            )
    for tokens, operations in ((30_000, 80), (90_000, 240)):
        for label, options in (
            ("bare", {}),
            ("time named", {"named": True}),
            ("published", {"named": True, "published": "x-ratelimit"}),
        ):
            found.append(
                Closed(
                    f"{tokens // 1000}k tokens a minute, {label}, 50 workers",
                    Minute,
                    {"tokens": tokens, **options},
                    operations=operations,
                    workers=50,
                    wanted=1.05 if "published" in options else LIMITS,
                )
            )
    for limit in (5, 10):
        for status, hint in ((429, None), (429, 1.0), (503, None)):
            for varying in (False, True):
                label = f"{status}{'' if hint is None else ' + Retry-After 1'}"
                found.append(
                    Closed(
                        f"at most {limit} in flight, {label}{', lengths vary' if varying else ''}, 60 workers",
                        Slots,
                        {
                            "limit": limit,
                            "status": status,
                            "hint": hint,
                            "varying": varying,
                            "latency": 0.5 if varying else 1.0,
                        },
                        operations=300,
                        workers=60,
                        wanted=SLOTS,
                    )
                )
    found += [
        Closed("queue of 10 before 4 servers, 503, 100 at once", Queue, {"latency": 0.2}, wanted=SLOTS),
        Closed(
            "queue of 10 before 4 servers, 503, 30 workers",
            Queue,
            {"latency": 0.2},
            operations=600,
            workers=30,
            wanted=SLOTS,
        ),
        Closed("bucket 5/s, 200 at once, 429", Refilled, {"latency": 0.2, "varying": False}, operations=200),
        Closed(
            "bucket of tokens, 50 workers, 429",
            Refilled,
            {"rate": 1500.0, "depth": 15_000.0, "least": 500.0, "most": 12_000.0},
            operations=150,
            workers=50,
        ),
    ]
    found += [
        Closed(
            f"60 s of 503, {workers} workers",
            Trouble,
            {"start": 10.0, "length": 60.0},
            operations=400 * workers,
            workers=workers,
        )
        for workers in (5, 50)
    ]
    found += [
        Closed(
            "60 s of time-outs, 20 workers",
            Trouble,
            {"start": 10.0, "length": 60.0, "status": 0},
            operations=8000,
            workers=20,
        ),
        Closed(
            "20 s of 429, 20 workers",
            Trouble,
            {"start": 10.0, "length": 20.0, "status": 429},
            operations=8000,
            workers=20,
        ),
        Closed(
            "503 for 7 of 14 s, 10 workers",
            Trouble,
            {"start": 7.0, "length": 7.0, "period": 14.0, "latency": 0.2},
            operations=2500,
            workers=10,
        ),
        Closed(
            "hangs of 30 s, deadline 90 s, 1/s",
            Trouble,
            {"start": 30.0, "length": 60.0, "status": 0},
            load=_one_a_second,
            timeout=30.0,
            deadline=90.0,
        ),
        *(
            Closed(
                f"low priority shed, {status}{'' if hint is None else ' + Retry-After'}: the high ones",
                Shedding,
                {"status": status, "hint": hint, "latency": 0.05},
                load=_thirty_a_second,
                high=True,
                wanted=2.0,
            )
            for status, hint in ((503, 2.0), (429, None))
        ),
    ]
    return found


def _one_a_second(seed: int) -> list[Arrival]:
    return poisson(seed, rate=1, seconds=120)


def _thirty_a_second(seed: int) -> list[Arrival]:
    return poisson(seed, rate=15, seconds=90)


CLOSED = {regime.name: regime for regime in _regimes()}


def contenders() -> dict[str, Contender]:
    from bench.recovery.contenders.library import AMENDS, AMENDS_BARE
    from bench.recovery.contenders.plain import NO_RETRY, ORACLE
    from bench.recovery.contenders.retry_libraries import STAMINA
    from bench.recovery.contenders.tuned import STAMINA_TUNED, TENACITY_TUNED

    return {
        each.name: each
        for each in (AMENDS, AMENDS_BARE, ORACLE, NO_RETRY, TENACITY_TUNED, STAMINA, STAMINA_TUNED)
    }


Job = tuple[str, str, int]


def one(job: Job) -> tuple[Job, dict[str, float]]:
    """Run one job. It is a module-level function, so that it can be sent to another process."""
    name, contender, seed = job
    logging.disable(logging.CRITICAL)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return job, CLOSED[name].run(contenders()[contender], seed)


def experiment(work: list[Job], jobs: int, keep: Path | None) -> dict[Job, dict[str, float]]:
    known: dict[Job, dict[str, float]] = {}
    if keep is not None and keep.exists():
        for name, contender, seed, numbers in map(json.loads, keep.read_text().splitlines()):
            known[name, contender, seed] = numbers
    missing = [job for job in work if job not in known]
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        for job, numbers in pool.imap_unordered(one, missing, chunksize=1) if missing else ():
            known[job] = numbers
            if keep is not None:
                with keep.open("a") as file:
                    file.write(json.dumps([*job, numbers]) + "\n")
    return known


def row(name: str, contender: str, runs: list[dict[str, float]], bound: list[dict[str, float]]) -> str:
    regime = CLOSED[name]
    ratio = mean([run["makespan"] for run in runs]) / mean([run["makespan"] for run in bound])
    extra = mean([run["calls"] for run in runs]) - mean([run["calls"] for run in bound])
    figures = {key: mean([run[key] for run in runs]) for key in ("success", "refused", "p50", "p99")}
    worst = min(run["success"] for run in runs)
    kept = figures["success"] >= 99 and ratio <= regime.wanted and extra <= 0.3
    return (
        f"{name:56} {contender:14} {figures['success']:5.1f} % (worst {worst:5.1f}) {ratio:7.2f} x (wanted {regime.wanted:g}) "
        f"calls {1 + extra:5.2f} refused {figures['refused']:4.1f} % p50 {figures['p50']:.3g} p99 {figures['p99']:.3g}"
        f"{'' if kept else '  MISSED'}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="parts of names; all by default")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first", type=int, default=1000)
    parser.add_argument("--contenders", default="amends")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--keep", type=Path, help="file of runs to reuse and to add to")
    options = parser.parse_args()
    names = [name for name in CLOSED if not options.names or any(part in name for part in options.names)]
    chosen = options.contenders.split(",")
    seeds = range(options.first, options.first + options.seeds)
    work = [(name, each, seed) for name in names for each in ("oracle", *chosen) for seed in seeds]
    runs = experiment(list(dict.fromkeys(work)), options.jobs, options.keep)
    for name in names:
        for contender in chosen:
            print(
                row(
                    name,
                    contender,
                    *([runs[name, each, seed] for seed in seeds] for each in (contender, "oracle")),
                ),
                flush=True,
            )


if __name__ == "__main__":
    sys.exit(main())
