"""
Run chains:

    python -m tests.hops "mcp:both,http:client" lost            one chain, with what arrived
    python -m tests.hops --lengths 1 2 --sides both --part 4     a part of all, with one line of totals
"""

import argparse
import asyncio
import json
import random
import time
from collections import Counter

import msgspec

from tests.hops.chains import SIDES, TRUST, Case, cases, run, run_all, totals
from tests.hops.failures import FAILURES, MORE_FAILURES
from tests.hops.formats import FORMATS, MORE
from tests.hops.zygote import zygote


def show(outcome):
    fault = outcome.fault
    print(outcome.case)
    for name, good in outcome.found.items():
        print(f"  {'ok ' if good else 'BAD'} {name}")
    print(f"  calls of the last service: {outcome.calls}")
    if fault is not None:
        print("  fault:", {name: value for name, value in msgspec.structs.asdict(fault).items() if value})
    print("  document:", json.dumps(outcome.document, default=str)[:4000])
    print("  ids in logs:", *outcome.ids)


def main():
    parser = argparse.ArgumentParser(prog="tests.hops", description=__doc__)
    parser.add_argument("chain", nargs="?")
    parser.add_argument("failure", nargs="?", choices=[*FAILURES, *MORE_FAILURES])
    parser.add_argument("--trust", nargs="+", choices=TRUST, default=["own"])
    parser.add_argument("--lengths", nargs="+", type=int, default=[1])
    parser.add_argument("--sides", nargs="+", choices=SIDES, default=["both"])
    parser.add_argument("--formats", nargs="+", choices=[*FORMATS, *MORE], default=list(FORMATS))
    parser.add_argument("--failures", nargs="+", choices=[*FAILURES, *MORE_FAILURES], default=list(FAILURES))
    parser.add_argument("--part", type=int, default=1, help="run one of so many")
    parser.add_argument("--seed", type=int, default=41)
    parser.add_argument("--seconds", type=float, default=36000)
    parser.add_argument("--roots", action="store_true", help="a new OpenTelemetry trace in every handler")
    parser.add_argument("--jobs", type=int, default=1)
    given = parser.parse_args()
    if given.chain:
        with zygote():
            for failure in [given.failure] if given.failure else FAILURES:
                show(asyncio.run(run(Case(given.chain, failure, given.trust[0], given.roots))))
        return
    chosen = cases(
        given.lengths,
        sides=given.sides,
        trust=given.trust,
        formats=given.formats,
        failures=given.failures,
        roots=given.roots,
    )
    random.Random(given.seed).shuffle(chosen)
    began = time.monotonic()
    outcomes = run_all(chosen[: len(chosen) // given.part], jobs=given.jobs, seconds=given.seconds)
    for outcome in outcomes:
        if not outcome.good:
            print(outcome.case, *[name for name, good in outcome.found.items() if not good])
    print(Counter(name for outcome in outcomes for name, good in outcome.found.items() if not good))
    print(f"{time.monotonic() - began:.0f} s:", totals(outcomes))


if __name__ == "__main__":
    main()
