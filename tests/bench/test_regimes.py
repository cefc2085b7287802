"""The discrete event simulator of the regimes gives the same results as the whole engine."""

from functools import partial

import pytest
from bench.recovery import metrics, services
from bench.recovery.contenders.library import AMENDS
from bench.recovery.contenders.shared import AWAY, SHARED
from bench.recovery.load import burst, poisson
from bench.recovery.overload import Overload
from bench.recovery.regime_list import REGIMES, Known, Regime
from bench.recovery.regimes import Simulation, measure
from bench.recovery.run import run
from bench.recovery.targets import TARGETS, mean, regime_of

SAMPLES = {
    "window": (services.Window, {}, partial(burst, count=60, within=1.0)),
    "outage": (services.Outage, {}, partial(poisson, rate=2, seconds=60)),
    "brownout": (services.Brownout, {"share": 0.5}, partial(poisson, rate=10, seconds=40)),
    "hostile": (services.Hostile, {}, partial(burst, count=10, within=1.0)),
    "fleet": (Overload, {}, partial(poisson, rate=2.5, seconds=50, clients=40)),
}


@pytest.mark.parametrize("name", SAMPLES)
def test_both_simulators_agree(name):
    """Success within two points and calls within a tenth, over one to three seeds."""
    service, options, load = SAMPLES[name]
    regime = Regime(name, Known, load, {"service": service, **options})
    found = {"success": [], "calls": []}
    seeds = 1 if name == "fleet" else 3
    for seed in range(seeds):
        fast = measure(Simulation(regime, seed).run())
        whole = run(service(seed, **options), load(seed), AMENDS, seed)
        numbers = metrics.measure(whole)
        found["success"].append((fast["success"], numbers["success"]))
        made = fast["calls"] * max(1, round(fast["success"] / 100 * len(whole.arrivals)))
        found["calls"].append((made, numbers["calls"]))
    fast, whole = (sum(pair[side] for pair in found["success"]) / seeds for side in (0, 1))
    assert abs(fast - whole) <= 2.0
    fast, whole = (sum(pair[side] for pair in found["calls"]) / seeds for side in (0, 1))
    assert fast == pytest.approx(whole, rel=0.1, abs=1.0)


def test_reported_parameters_are_not_those_of_tuning():
    """The published table has other regimes than those the constants were chosen on; b from 20 processes is the same in both."""
    tuned = {(regime.name.split(" at ")[0], str(regime.load.keywords)) for regime in REGIMES.values()}
    for target in TARGETS.values():
        for seed in range(301, 321) if target.name != "b from 20 processes" else ():
            regime = regime_of(target, seed)
            assert (regime.name.split(" at ")[0], str(regime.load.keywords)) not in tuned


def test_processes_share_what_they_know():
    """b from 20 processes, with a store, with a store that is away, and without one."""
    load = partial(poisson, rate=0.1, seconds=60, clients=20)
    found = [run(services.Outage(7), load(7), contender, 7) for contender in (SHARED, AWAY, AMENDS)]
    shared = metrics.measure(found[0])
    assert shared["success"] >= 97
    assert shared["calls/success"] <= 1.3
    assert found[1].ends == found[2].ends
    assert found[1].succeeded == found[2].succeeded


@pytest.mark.parametrize("name", ["30 % failing", "one hint", "tenants", "b from 20 processes"])
def test_a_target_on_random_parameters(name):
    """Two seeds of those targets that run quickly; docs/recovery-regimes.md has twenty of all."""
    target = TARGETS[name]
    pairs = []
    for seed in (7, 8):
        regime = regime_of(target, seed)
        pairs.append([measure(Simulation(regime, seed, each).run()) for each in (target.policy, "no retry")])
    ours, none = (mean([pair[side] for pair in pairs]) for side in (0, 1))
    assert target.holds(ours, none)
