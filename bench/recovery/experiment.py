"""Many runs: every chosen scenario with every chosen contender over a range of seeds, on a few processes."""

import json
import math
import multiprocessing
import sys
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from bench.recovery.metrics import Estimate, estimate, measure, timeline
from bench.recovery.roster import CONTENDERS
from bench.recovery.run import run
from bench.recovery.scenarios import SCENARIOS, Scenario, variations

REPORT_SEEDS = 0  # reporting starts here; tuning used seeds from 1000 on


Job = tuple[str, str, int]  # scenario, contender, seed
Run = tuple[str, str, int, dict[str, float]]  # the same, and its numbers


@dataclass(frozen=True, slots=True)
class Cell:
    """One scenario with one contender: every number of every seed."""

    scenario: str
    contender: str
    runs: tuple[dict[str, float], ...]

    def get(self, metric: str) -> Estimate:
        return estimate([numbers[metric] for numbers in self.runs if metric in numbers])


def find(name: str) -> Scenario:
    """A scenario or variation by its name."""
    return SCENARIOS.get(name) or next(scenario for scenario in variations() if scenario.name == name)


def one(job: Job) -> Run:
    """One run, named so that it can be sent to another process."""
    scenario_name, contender_name, seed = job
    scenario = find(scenario_name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # peers warn about their own dependencies
        record = run(scenario.build(seed), scenario.load(seed), CONTENDERS[contender_name], seed)
    return scenario_name, contender_name, seed, measure(record)


def goodput(scenario_name: str, contender_name: str, seed: int) -> list[int]:
    """Successes in each second of one run."""
    scenario = find(scenario_name)
    return timeline(run(scenario.build(seed), scenario.load(seed), CONTENDERS[contender_name], seed))[1]


def seeds_for(scenario: str, contender: str, seeds: int, *, full: bool) -> int:
    """
    A fleet run of a slow contender takes twenty seconds, so without `full` it gets a quarter of the seeds.

    So does the variant with a hint, always: it differs from h only for those who fill the queue.
    """
    share = 1.0
    if scenario.startswith("h") and CONTENDERS[contender].heavy and not full:
        share /= 4
    if scenario == "h+hint":
        share /= 4
    return math.ceil(seeds * share)


def counted(results: Iterable[Run], total: int) -> Iterator[Run]:
    """Pass results on, and say now and then how far it is."""
    for index, result in enumerate(results, 1):
        yield result
        if index % 50 == 0 or index == total:
            print(f"{index} of {total} runs", file=sys.stderr, flush=True)


class Kept:
    """
    Runs of an earlier time, in a file of one run per line.

    Peers do not change while ours does: with this, only what is new or named in `fresh` is run again.
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
    """Run the grid; the result does not depend on `jobs`."""
    kept = kept or Kept(None)
    work = [
        (scenario, contender, REPORT_SEEDS + seed)
        for scenario in scenarios
        for contender in contenders
        for seed in range(seeds_for(scenario, contender, seeds, full=full))
    ]
    # The long ones first, so that no process is left alone with them at the end.
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
