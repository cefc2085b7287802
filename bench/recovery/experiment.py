"""Many runs: every chosen scenario with every chosen contender over a range of seeds, on a few processes."""

import math
import multiprocessing
import os
import warnings
from collections.abc import Iterable
from dataclasses import dataclass

from bench.recovery.metrics import Estimate, estimate, measure, timeline
from bench.recovery.roster import CONTENDERS
from bench.recovery.run import run
from bench.recovery.scenarios import SCENARIOS, Scenario, variations

REPORT_SEEDS = 0  # reporting starts here; tuning used seeds from 1000 on


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


def one(job: tuple[str, str, int]) -> tuple[str, str, int, dict[str, float]]:
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

    The variant with a hint always does: it differs from h only for those who fill the queue.
    """
    slow = scenario.startswith("h") and CONTENDERS[contender].heavy and not full
    return math.ceil(seeds / 4) if slow or scenario == "h+hint" else seeds


def experiment(
    scenarios: Iterable[str], contenders: Iterable[str], seeds: int, *, jobs: int = 1, full: bool = False
) -> dict[tuple[str, str], Cell]:
    """Run the grid; the result does not depend on `jobs`."""
    work = [
        (scenario, contender, REPORT_SEEDS + seed)
        for scenario in scenarios
        for contender in contenders
        for seed in range(seeds_for(scenario, contender, seeds, full=full))
    ]
    # The long ones first, so that no process is left alone with them at the end.
    order = sorted(work, key=lambda job: (not job[0].startswith("h"), not CONTENDERS[job[1]].heavy, job))
    if jobs > 1:
        with multiprocessing.get_context("spawn").Pool(jobs, initializer=os.nice, initargs=(5,)) as pool:
            results = list(pool.imap_unordered(one, order, chunksize=1))
    else:
        results = [one(job) for job in order]
    found: dict[tuple[str, str], list[tuple[int, dict[str, float]]]] = {}
    for scenario, contender, seed, numbers in results:
        found.setdefault((scenario, contender), []).append((seed, numbers))
    return {
        key: Cell(*key, tuple(numbers for _, numbers in sorted(runs, key=lambda pair: pair[0])))
        for key, runs in found.items()
    }
