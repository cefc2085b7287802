"""Runs every chosen scenario with every chosen contender over a range of seeds, on a few processes."""

import json
import logging
import math
import multiprocessing
import sys
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from bench.recovery.metrics import Estimate, estimate, measure, timeline
from bench.recovery.registry import CONTENDERS
from bench.recovery.run import run
from bench.recovery.scenarios import SCENARIOS, Scenario, variations

REPORT_SEEDS = 0  # reporting starts here; tuning used seeds from 1000 on


Job = tuple[str, str, int]  # scenario, contender, seed
Run = tuple[str, str, int, dict[str, float]]  # the same, and its numbers


@dataclass(frozen=True, slots=True)
class Cell:
    """One scenario with one contender: the metrics of every seed."""

    scenario: str
    contender: str
    runs: tuple[dict[str, float], ...]

    def get(self, metric: str) -> Estimate:
        return estimate([numbers[metric] for numbers in self.runs if metric in numbers])


def find(name: str) -> Scenario:
    """Return a scenario or variation by its name."""
    return SCENARIOS.get(name) or next(scenario for scenario in variations() if scenario.name == name)


def one(job: Job) -> Run:
    """Run one job. It is a module-level function, so that it can be sent to another process."""
    scenario_name, contender_name, seed = job
    scenario = find(scenario_name)
    logging.disable(logging.CRITICAL)  # a line for each retry would take more time than the run
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # peers warn about their own dependencies
        record = run(scenario.build(seed), scenario.load(seed), CONTENDERS[contender_name], seed)
    return scenario_name, contender_name, seed, measure(record)


def goodput(scenario_name: str, contender_name: str, seed: int) -> list[int]:
    """Return the successes in each second of one run."""
    scenario = find(scenario_name)
    return timeline(run(scenario.build(seed), scenario.load(seed), CONTENDERS[contender_name], seed))[1]


def seeds_for(scenario: str, contender: str, seeds: int, *, full: bool) -> int:
    """
    Return the number of seeds for one pair.

    A fleet run of a slow contender takes twenty seconds, so without `full` it gets a quarter of the seeds. The variant
    with a hint always gets a quarter: it differs from h only for contenders that fill the queue.
    """
    share = 1.0
    if scenario.startswith("h") and CONTENDERS[contender].heavy and not full:
        share /= 4
    if scenario == "h+hint":
        share /= 4
    return math.ceil(seeds * share)


def counted(results: Iterable[Run], total: int) -> Iterator[Run]:
    """Yield the results, and print the progress."""
    for index, result in enumerate(results, 1):
        yield result
        if index % 50 == 0 or index == total:
            print(f"{index} of {total} runs", file=sys.stderr, flush=True)


class Kept:
    """
    Earlier runs, in a file with one run per line.

    The other libraries do not change while ours does, so only new runs and the contenders in `fresh` are run.
    """

    def __init__(self, path: Path | None, fresh: Iterable[str] = ()) -> None:
        self.path = path
        self.runs: dict[Job, dict[str, float]] = {}
        if path is not None and path.exists():
            for scenario, contender, seed, numbers in map(json.loads, path.read_text().splitlines()):
                if contender not in fresh:
                    self.runs[scenario, contender, seed] = numbers
            self.path.write_text(
                "".join(json.dumps([*job, numbers]) + "\n" for job, numbers in self.runs.items())
            )

    def add(self, scenario: str, contender: str, seed: int, numbers: dict[str, float]) -> None:
        self.runs[scenario, contender, seed] = numbers
        if self.path is not None:
            with self.path.open("a") as file:
                file.write(json.dumps([scenario, contender, seed, numbers]) + "\n")


def experiment(
    scenarios: Iterable[str],
    contenders: Iterable[str],
    seeds: int,
    *,
    jobs: int = 1,
    full: bool = False,
    kept: Kept | None = None,
) -> dict[tuple[str, str], Cell]:
    """Run all pairs and return their cells. The result does not depend on `jobs`."""
    kept = kept or Kept(None)
    work = [
        (scenario, contender, REPORT_SEEDS + seed)
        for scenario in scenarios
        for contender in contenders
        for seed in range(seeds_for(scenario, contender, seeds, full=full))
    ]
    # The longest runs first, so that they do not remain for one process at the end.
    missing = [job for job in work if job not in kept.runs]
    order = sorted(missing, key=lambda job: (not job[0].startswith("h"), not CONTENDERS[job[1]].heavy, job))
    if jobs > 1 and len(order) > 1:
        with multiprocessing.get_context("spawn").Pool(jobs) as pool:
            for result in counted(pool.imap_unordered(one, order, chunksize=1), len(order)):
                kept.add(*result)
    else:
        for result in counted(map(one, order), len(order)):
            kept.add(*result)
    cells: dict[tuple[str, str], list[dict[str, float]]] = {}
    for scenario, contender, seed in work:
        cells.setdefault((scenario, contender), []).append(kept.runs[scenario, contender, seed])
    return {key: Cell(*key, tuple(runs)) for key, runs in cells.items()}
