"""
The targets of recovery, each on random parameters inside its stated ranges: every seed has parameters of its own.

    python -m bench.recovery.targets [names] [--first 101] [--seeds 20] [--keep FILE]

Nothing here was used to choose a constant with the seeds that `docs/recovery-regimes.md` reports; the page names them.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random

from bench.recovery import services as known
from bench.recovery.load import burst, poisson
from bench.recovery.overload import Overload
from bench.recovery.regime_list import Known, Regime, after, fleet, hour, tenants
from bench.recovery.regime_services import Bucket, Failing, Flapping, HalfDead, Lying, OneHint, Stalls
from bench.recovery.regimes import Simulation, measure

Numbers = dict[str, float]


@dataclass(frozen=True, slots=True)
class Target:
    """Regimes with random parameters, and what has to hold."""

    name: str
    build: Callable[[Random], Regime]
    wanted: str
    """The target in words."""
    holds: Callable[[Numbers, Numbers], bool]
    """Whether the means of our runs reach it; the second argument has the means without retries."""
    policy: str = "amends"


def _log(random: Random, low: float, high: float) -> float:
    return round(low * (high / low) ** random.random(), 4)


def _fleet(random: Random) -> Regime:
    return fleet(
        round(_log(random, 20, 1000)),
        round(random.uniform(10, 120), 1),
        random.randrange(100, 1001),
        _log(random, 0.005, 1.0),
        tail=605,
    )


def _short_fleet(low: float, high: float, random: Random) -> Regime:
    """As h, which ends 90 s after the spell: the share of the run that a relapse takes is larger."""
    return fleet(
        round(_log(random, low, high)),
        round(random.uniform(10, 60), 1),
        random.randrange(100, 1001),
        _log(random, 0.005, 1.0),
        tail=90,
    )


def _one_hint(random: Random) -> Regime:
    latency, hint = _log(random, 0.01, 60), round(_log(random, 1, 3600))
    rate, at = _log(random, 1, 30), 60.0
    settled = at + max(2 * latency, 10.0)
    return Regime(
        f"one hint of {hint} s, {latency:g} s calls at {rate:g}/s",
        OneHint,
        partial(poisson, rate=rate, seconds=settled + 60),
        {"latency": latency, "hint": float(hint), "at": at},
        max(2.0, 4 * latency),
        only=after(settled),
        latency=latency,
    )


def _failing(share: float, random: Random) -> Regime:
    rate, latency = _log(random, 10, 500), _log(random, 0.005, 1.0)
    return Regime(
        f"{share:.0%} fail at {rate:g}/s, {latency:g} s",
        Failing,
        partial(poisson, rate=rate, seconds=max(20.0, 3000 / rate)),
        {"share": share, "latency": latency},
    )


def _processes_of(count: int) -> str:
    return "1 process" if count == 1 else f"{count} processes"


def _overload(clients: int, random: Random) -> Regime:
    factor, capacity = random.uniform(1.5, 2.0), _log(random, 20, 120)
    queue, latency = random.randrange(100, 1001), _log(random, 0.005, 0.5)
    return Regime(
        f"offered {factor:.2f} × {capacity:g}/s, {_processes_of(clients)}, queue {queue}, {latency:g} s",
        Known,
        partial(poisson, rate=capacity * factor / clients, seconds=240, clients=clients),
        {"service": Overload, "rate": capacity, "slow_rate": capacity, "queue": queue, "latency": latency},
        capacity=capacity,
        settled=60.0,
    )


def _bucket(hinted: bool, random: Random) -> Regime:
    rate, factor, clients = _log(random, 2, 50), random.uniform(1.3, 2.5), random.choice((1, 1, 5, 20))
    hint = float(random.randrange(1, 6)) if hinted else None
    depth = max(1.0, round(rate * random.uniform(0.5, 3)))
    return Regime(
        f"bucket {rate:g}/s, depth {depth:g}, offered {factor:.2f} ×, {_processes_of(clients)}, hint {hint}",
        Bucket,
        partial(poisson, rate=rate * factor / clients, seconds=240, clients=clients),
        {"rate": rate, "depth": depth, "hint": hint, "latency": _log(random, 0.01, 0.5)},
        capacity=rate,
    )


def _tenants(random: Random) -> Regime:
    return tenants(
        random.randrange(4, 21),
        float(round(_log(random, 2, 3600))),
        _log(random, 5, 100),
        latency=_log(random, 0.02, 3.0),
        multiples=True,
    )


def _hour(random: Random) -> Regime:
    return hour(_log(random, 0.02, 10), 300.0)


def _lying(random: Random) -> Regime:
    length, hint, rate = random.uniform(2, 60), _log(random, 1, 120), _log(random, 1, 30)
    return Regime(
        f"hint of {hint:.3g} s in an outage of {length:.3g} s at {rate:.3g}/s",
        Lying,
        partial(poisson, rate=rate, seconds=150),
        {"length": length, "hint": float(round(hint)), "latency": _log(random, 0.01, 1.0)},
    )


def _flapping(random: Random) -> Regime:
    period, rate = _log(random, 0.5, 30), _log(random, 0.5, 30)
    return Regime(
        f"flapping every {period:.3g} s at {rate:.3g}/s",
        Flapping,
        partial(poisson, rate=rate, seconds=180),
        {"period": period, "latency": _log(random, 0.01, 0.5)},
    )


def _low_traffic(random: Random) -> Regime:
    rate, share = _log(random, 1 / 3600, 1 / 20), random.uniform(0.1, 0.5)
    return Regime(
        f"a call in {1 / rate:.0f} s, {share:.0%} fail",
        Failing,
        partial(poisson, rate=rate, seconds=400 / rate),
        {"share": share},
    )


def _half_dead(random: Random) -> Regime:
    share, rate = random.uniform(0.2, 0.7), _log(random, 2, 100)
    return Regime(
        f"{share:.0%} of the replicas dead at {rate:.3g}/s",
        HalfDead,
        partial(poisson, rate=rate, seconds=120),
        {"share": share, "latency": _log(random, 0.01, 0.5)},
    )


def _stalls(random: Random) -> Regime:
    latency, rate = random.uniform(20, 40), _log(random, 0.5, 5)
    return Regime(
        f"{latency:.3g} s calls, 20 % stall, {rate:.3g}/s",
        Stalls,
        partial(poisson, rate=rate, seconds=400),
        {"latency": latency},
        random.uniform(1.5, 2.5) * latency,
    )


def _processes(random: Random) -> Regime:
    return Regime(
        "b from 20 processes",
        Known,
        partial(poisson, rate=0.1, seconds=60, clients=20),
        {"service": known.Outage},
    )


def _window(random: Random) -> Regime:
    window = round(random.uniform(5, 60), 1)
    return Regime(
        f"a: window {window:g} s",
        Known,
        partial(burst, count=60, within=1.0),
        {"service": known.Window, "window": window},
    )


def _outage(random: Random) -> Regime:
    length, rate = round(random.uniform(5, 120), 1), _log(random, 1, 30)
    return Regime(
        f"b: outage {length:g} s at {rate:g}/s",
        Known,
        partial(poisson, rate=rate, seconds=length + 30),
        {"service": known.Outage, "length": length},
    )


def _brownout(random: Random) -> Regime:
    share, rate = random.uniform(0.1, 0.6), _log(random, 3, 100)
    return Regime(
        f"c: brownout {share:.0%} at {rate:.3g}/s",
        Known,
        partial(poisson, rate=rate, seconds=60),
        {"service": known.Brownout, "share": share},
    )


def _losses(random: Random) -> Regime:
    loss, rate = random.uniform(0.01, 0.3), _log(random, 1, 50)
    return Regime(
        f"f: loss {loss:.0%} at {rate:.3g}/s",
        Known,
        partial(poisson, rate=rate, seconds=100),
        {"service": known.Lossy, "loss": loss},
    )


def _not_worse(by: float = 0.0) -> Callable[[Numbers, Numbers], bool]:
    return lambda ours, none: ours["success"] >= none["success"] - by


def _goodput(share: float) -> Callable[[Numbers, Numbers], bool]:
    return lambda ours, none: ours["goodput"] >= share


def _back(ours: Numbers, none: Numbers) -> bool:
    return ours["success"] >= none["success"] - 1 and ours["back"] <= 35 and ours["relapses"] == 0


TARGETS = {
    target.name: target
    for target in (
        Target("fleet", _fleet, "≥ no retry − 1, back ≤ 35 s, no relapse", _back),
        Target(
            "one hint",
            _one_hint,
            "p50 ≤ 1.5 × a call",
            lambda ours, none: ours["p50"] <= 1.5,
        ),
        Target(
            "30 % failing",
            partial(_failing, 0.3),
            "≥ 99 %, p99 ≤ 8 s",
            lambda ours, none: ours["success"] >= 99 and ours["p99"] <= 8,
        ),
        Target(
            "50 % failing",
            partial(_failing, 0.5),
            "≥ 95.5 %, p99 ≤ 16 s",
            lambda ours, none: ours["success"] >= 95.5 and ours["p99"] <= 16,
        ),
        Target("overload, 1 process", partial(_overload, 1), "goodput ≥ 0.9", _goodput(0.9)),
        Target("overload, 200 processes", partial(_overload, 200), "goodput ≥ 0.9", _goodput(0.9)),
        Target("bucket, Retry-After", partial(_bucket, True), "goodput ≥ 0.9", _goodput(0.9)),
        Target("bucket, no header", partial(_bucket, False), "goodput ≥ 0.75", _goodput(0.75)),
        Target("tenants", _tenants, "p50 ≤ 1.2 × a call", lambda ours, none: ours["p50"] <= 1.2),
        Target("an hour", _hour, "≤ 8 refused calls", lambda ours, none: ours["refused"] <= 8),
        Target("lying hints", _lying, "≥ no retry", _not_worse()),
        Target("flapping", _flapping, "≥ no retry", _not_worse()),
        Target("low traffic", _low_traffic, "≥ no retry", _not_worse()),
        Target("half-dead", _half_dead, "≥ no retry", _not_worse()),
        Target("stalls", _stalls, "≥ no retry", _not_worse()),
        Target(
            "b from 20 processes",
            _processes,
            "≥ 93 % at ≤ 2.5 calls",
            lambda ours, none: ours["success"] >= 93 and ours["calls"] <= 2.5,
        ),
        Target(
            "fleet of 20–500, no Upstream",
            partial(_short_fleet, 20, 500),
            "≥ no retry − 1",
            _not_worse(1.0),
            "bare",
        ),
        Target(
            "fleet of 500–1,000, no Upstream",
            partial(_short_fleet, 500, 1000),
            "≥ no retry − 1",
            _not_worse(1.0),
            "bare",
        ),
        Target("a", _window, "≥ no retry", _not_worse()),
        Target("b", _outage, "≥ no retry", _not_worse()),
        Target("c", _brownout, "≥ no retry", _not_worse()),
        Target("f", _losses, "≥ no retry", _not_worse()),
    )
}


def regime_of(target: Target, seed: int) -> Regime:
    """Return the regime of one seed."""
    return target.build(Random(f"{target.name}:{seed}"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="parts of names; all by default")
    parser.add_argument("--first", type=int, default=101)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--keep", type=Path)
    options = parser.parse_args()
    for target in TARGETS.values():
        if options.names and not any(part in target.name for part in options.names):
            continue
        pairs = []
        for seed in range(options.first, options.first + options.seeds):
            regime = regime_of(target, seed)
            ours, none = (
                measure(Simulation(regime, seed, each).run()) for each in (target.policy, "no retry")
            )
            pairs.append((ours, none))
            if not target.holds(ours, none):
                print("   ", seed, regime.name, short(ours), "| no retry", short(none), flush=True)
            if options.keep:
                with options.keep.open("a") as file:
                    file.write(json.dumps([target.name, seed, regime.name, target.policy, ours, none]) + "\n")
        ours, none = (mean([pair[side] for pair in pairs]) for side in (0, 1))
        verdict = "holds" if target.holds(ours, none) else "MISSED"
        alone = sum(target.holds(*pair) for pair in pairs)
        print(
            f"{target.name:26} {verdict} ({alone} of {len(pairs)} alone; {target.wanted})",
            short(ours),
            "| no retry",
            short(none),
            flush=True,
        )


def mean(runs: list[Numbers]) -> Numbers:
    """Return the mean of each number; of the successes' times only where there are successes."""
    found = {}
    for key in runs[0]:
        values = [run[key] for run in runs if not math.isnan(run[key])]
        found[key] = sum(values) / len(values) if values else math.nan
    return found


def short(numbers: Numbers) -> str:
    return " ".join(f"{key} {value:.4g}" for key, value in numbers.items())


if __name__ == "__main__":
    main()
