"""
Random regimes: mixes of a service, its trouble, a load and a client. The worst ten are listed.

    python -m bench.recovery.random [--count 100] [--first 0] [--contender amends]

Every number is one regime, drawn from the number alone, so a bad one can be run again. A regime counts as worse the less of
what an oracle does succeeds, and the longer the makespan is as a multiple of the oracle's.
"""

from __future__ import annotations

import argparse
import logging
import sys
import warnings
from random import Random

from bench.recovery.closed import Closed, contenders
from bench.recovery.closed_services import Minute, Queue, Refilled, Slots, Trouble


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
    return Closed(name, kind, options, operations, 0 if batch else workers)


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
        best, ours = (drawn.run(known[name], number) for name in ("oracle", options.contender))
        ratio = ours["makespan"] / max(best["makespan"], 1e-9)
        rows.append((ours["success"] - best["success"], ratio, drawn.name))
    met = sum(lost >= -1 and ratio <= 1.3 for lost, ratio, _ in rows)
    print(f"{met} of {len(rows)} within 1 point and 1.3 x of the oracle; the worst ten:")
    for lost, ratio, name in sorted(rows, key=lambda row: (round(row[0]), -row[1]))[:10]:
        print(f"{lost:7.1f} points {ratio:7.2f} x  {name}")


if __name__ == "__main__":
    sys.exit(main())
