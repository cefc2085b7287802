"""
Random regimes: mixes of a service, its trouble, a load and a client. The worst ten are listed.

    python -m bench.recovery.random [--count 100] [--first 0] [--contender amends]

Every number is one regime, drawn from the number alone, so a bad one can be run again. A regime counts as worse the less of
what an oracle does in the same time succeeds, and then the longer the makespan is as a multiple of the oracle's. The goals are those of the
closed regimes; in short ones the first wait of a second is allowed beside them, and a time that the service names.
"""

from __future__ import annotations

import argparse
import logging
import sys
import warnings
from random import Random

from bench.recovery.closed import BLIPS, COLD_SILENCE, LIMITS, SLOTS, Closed, contenders
from bench.recovery.closed_services import Minute, Queue, Refilled, Slots, Trouble

Numbers = dict[str, float]


def _log(random: Random, low: float, high: float) -> float:
    return low * (high / low) ** random.random()


def regime(number: int) -> Closed:
    """Return the random regime of this number."""
    random = Random(f"regime:{number}")
    workers = round(_log(random, 1, 200))
    latency = round(_log(random, 0.02, 3.0), 3)
    status, hint = random.choice([(503, None), (429, None), (503, 1), (429, 1), (503, 0)])
    kind = random.choice([Trouble, Trouble, Slots, Queue, Minute, Refilled])
    options: dict[str, object] = {"latency": latency}
    if kind is Trouble:
        options |= {
            "start": random.choice([0.0, round(_log(random, 0.1, 30), 2)]),
            "length": round(_log(random, 0.1, 60), 2),
            "status": random.choice([status, status, 0]),
            "hint": None if hint is None else str(hint),
        }
    elif kind is Minute:
        limit = round(_log(random, 0.5 * workers + 1, 40 * workers))
        options |= {"requests": limit, "named": random.random() < 0.5}
        options |= {"published": random.choice(["", "x-ratelimit"])}
    elif kind is Refilled:
        rate = round(_log(random, 0.5, 50), 2)
        options |= {"rate": rate, "depth": round(rate * _log(random, 1, 30), 2) + 1, "status": 429}
    else:
        options |= {"limit" if kind is Slots else "servers": max(1, round(workers * _log(random, 0.05, 1.5)))}
        options |= {"status": status, "hint": hint, "varying": random.random() < 0.5}
    operations = max(workers, min(600, round(workers * _log(random, 1, 30))))
    if kind is Minute:
        operations = min(operations, round(3 * float(options["requests"])))
    shown = ", ".join(f"{name} {value}" for name, value in options.items())
    batch = random.random() < 0.3
    name = f"{number}: {kind.__name__} ({shown}), {operations} {'at once' if batch else f'by {workers}'}"
    return Closed(name, kind, options, operations, 0 if batch else workers, wanted=_wanted(kind, options))


def _wanted(kind: type, options: dict[str, object]) -> float:
    """Return the wanted makespan as a multiple of the oracle's."""
    if kind in {Slots, Queue}:
        return SLOTS
    if kind is Trouble and options["start"] == 0.0 and not options["status"]:
        return COLD_SILENCE
    return BLIPS if kind is Trouble and float(str(options["length"])) <= _BLIP else LIMITS


_BLIP = 3.0
"""Seconds of the longest blip."""
_FIRST_WAIT = 1.0
"""Seconds of the first wait. Nothing that takes less can be told apart from it."""


def missed(drawn: Closed, ours: Numbers, best: Numbers, none: Numbers) -> list[str]:
    """Return the goals that were missed. What an oracle does not end within the patience of the policy is not counted."""
    hint = drawn.options.get("hint") or 0.0
    found = []
    if ours["success"] < best["in time"] - 1.0:
        found.append("success")
    if ours["makespan"] > drawn.wanted * best["makespan"] + _FIRST_WAIT + float(str(hint)):
        found.append("makespan")
    if ours["calls"] > best["calls"] + 0.3:
        found.append("calls")
    if ours["success"] < none["success"]:
        found.append("below no retry")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--contender", default="amends")
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    known = contenders()
    rows = []
    for number in range(options.first, options.first + options.count):
        drawn = regime(number)
        ours, best, none = (
            drawn.run(known[name], number) for name in (options.contender, "oracle", "no retry")
        )
        lost, ratio = best["in time"] - ours["success"], ours["makespan"] / max(best["makespan"], 1e-9)
        extra = ours["calls"] - best["calls"]
        rows.append((missed(drawn, ours, best, none), max(0.0, lost), ratio, extra, drawn.name))
    print(f"{sum(not row[0] for row in rows)} of {len(rows)} meet all goals; the worst ten:")
    for goals, lost, ratio, extra, name in sorted(
        rows, key=lambda row: (-round(row[1]), -len(row[0]), -row[2])
    )[:10]:
        print(
            f"{lost:5.1f} points lost, {ratio:6.2f} x, {1 + extra:5.2f} calls  {', '.join(goals) or 'all met':20}  {name}"
        )


if __name__ == "__main__":
    sys.exit(main())
