"""Workers, batches and limits: the goals on a sample of the regimes, with an Upstream and without, beside the oracle."""

import pytest
from bench.recovery.closed import CLOSED, contenders
from bench.recovery.closed_services import Minute
from bench.recovery.metrics import mean
from bench.recovery.random import regime

KEPT = (
    "5 at once, cold, 0.3 s of 503",
    "100 at once, cold, 0.3 s of 503",
    "100 at once, cold, 3 s of 503",
    "100 at once, cold, 2 s of time-outs",
    "20 s outage, Retry-After 0, 5 workers",
    "40 requests a minute, bare, 50 workers",
    "60 requests a minute, time named, 50 workers",
    "at most 10 in flight, 429, lengths vary, 60 workers",
    "at most 5 in flight, 503, 60 workers",
    "queue of 10 before 4 servers, 503, 30 workers",
)


@pytest.mark.parametrize("contender", ["amends", "amends bare"])
@pytest.mark.parametrize("name", KEPT)
def test_the_goals(name, contender):
    """Nearly all succeed, nearly as soon as they can, with few calls more than an oracle."""
    drawn, known = CLOSED[name], contenders()
    ours, best = ([drawn.run(known[each], seed) for seed in (1000, 1001)] for each in (contender, "oracle"))
    success, makespan, calls = (mean([run[key] for run in ours]) for key in ("success", "makespan", "calls"))
    assert success >= 99
    assert makespan <= drawn.wanted * mean([run["makespan"] for run in best]) * 1.02
    assert calls - mean([run["calls"] for run in best]) <= 0.3


@pytest.mark.parametrize("contender", ["amends", "amends bare"])
def test_a_small_batch_over_a_limit_is_held(contender):
    """Fifteen calls, five a minute, and no time is named: refusals concern single callers only while others succeed."""
    drawn, known = regime(7085), contenders()
    assert drawn.service is Minute
    ours, loop = (drawn.run(known[each], 7085)["success"] for each in (contender, "tuned tenacity"))
    assert ours > 80
    assert loop < 40
