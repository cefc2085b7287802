"""Whole runs: they repeat exactly, no-retry matches the arithmetic, and the driver keeps its guarantees."""

import asyncio

import pytest
from bench.recovery.contenders.plain import NO_RETRY, ORACLE
from bench.recovery.contenders.sketch_driver import SKETCH
from bench.recovery.load import burst, poisson
from bench.recovery.metrics import estimate, measure
from bench.recovery.overload import Overload
from bench.recovery.run import Contender, run
from bench.recovery.scenarios import SCENARIOS, variations
from bench.recovery.services import Brownout, Expiry, Hostile, Lossy, Outage, Service
from bench.recovery.wire import RefusedError


def numbers(scenario, contender, seed):
    chosen = SCENARIOS[scenario]
    return measure(run(chosen.build(seed), chosen.load(seed), contender, seed))


def test_loads_have_the_right_size_and_repeat():
    """A burst is exact, Poisson streams have their rate, and a client's stream does not depend on other clients."""
    assert burst(1, count=60, within=1.0) == burst(1, count=60, within=1.0) != burst(2, count=60, within=1.0)
    arrivals = poisson(3, rate=0.5, seconds=100, clients=40)
    assert len(arrivals) == pytest.approx(2000, rel=0.07)
    assert arrivals == sorted(arrivals)
    few = poisson(3, rate=0.5, seconds=100, clients=2)
    assert [arrival for arrival in arrivals if arrival[1] < 2] == few


@pytest.mark.parametrize("contender", [NO_RETRY, SKETCH, ORACLE], ids=lambda contender: contender.name)
@pytest.mark.parametrize("scenario", "abcdefg")
def test_a_seed_repeats_exactly(scenario, contender):
    """The same seed gives the same times for every operation, and another seed gives others."""
    chosen = SCENARIOS[scenario]
    first, again, other = (
        run(chosen.build(seed), chosen.load(seed), contender, seed) for seed in (11, 11, 12)
    )
    assert (first.ends, first.succeeded) == (again.ends, again.succeeded)
    assert first.ends != other.ends


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("tenacity", "TENACITY"),
        ("stamina", "STAMINA"),
        ("redress", "REDRESS"),
        ("httpx_retries", "HTTPX_RETRIES"),
        ("urllib3", "URLLIB3"),
        ("openai", "OPENAI"),
        ("botocore", "BOTOCORE"),
    ],
)
@pytest.mark.filterwarnings("default")
def test_peers_repeat_exactly(module, name):
    """Real libraries, on asyncio or in threads, also give the same run for the same seed."""
    for needed in ("tenacity", "stamina", "redress", "httpx_retries", "urllib3", "openai", "botocore"):
        pytest.importorskip(needed)
    from bench.recovery.contenders import http_clients, retry_libraries, sdks

    contender = next(getattr(m, name) for m in (retry_libraries, http_clients, sdks) if hasattr(m, name))
    arrivals = poisson(4, rate=4, seconds=12)
    first, again = (run(Outage(4, start=4, length=4), arrivals, contender, 4) for _ in range(2))
    assert (first.ends, first.succeeded, first.service.calls) == (
        again.ends,
        again.succeeded,
        again.service.calls,
    )
    assert any(first.succeeded)


@pytest.mark.parametrize(
    ("scenario", "metric", "expected", "tolerance"),
    [
        ("a", "success", 100 / 3, 0.001),
        ("a", "calls/success", 3, 0.001),
        ("b", "success", 50, 0.08),
        ("c", "success", 70, 0.03),
        ("d", "success", 80 * 0.95, 0.03),
        ("e", "success", 100 / 3, 0.1),
        ("f", "success", 70, 0.03),
        ("f", "orphans", 50, 0.15),
        ("g", "blocked", 0.05, 0.001),
        ("g", "calls", 10, 0.001),
    ],
)
def test_no_retry_matches_the_arithmetic(scenario, metric, expected, tolerance):
    """Eight seeds are within a few per cent of the expected value."""
    measured = estimate([numbers(scenario, NO_RETRY, seed)[metric] for seed in range(8)])
    assert measured.mean == pytest.approx(expected, rel=tolerance, abs=2 * measured.error)


def test_no_retry_in_the_fleet_fails_while_the_queue_is_too_long():
    """It fails from 0.9 s after the slow-down until the queue is down to 2 s again: about 22 of 120 s."""
    assert numbers("h", NO_RETRY, 1)["success"] == pytest.approx(82, abs=4)


@pytest.mark.parametrize(
    "scenario", [scenario.name for scenario in variations() if scenario.name[0] in "abcdef"]
)
def test_ours_is_never_worse_than_no_retry(scenario):
    """One seed of every variation except the fleet; the full run has more."""
    chosen = next(candidate for candidate in variations() if candidate.name == scenario)
    ours, plain = (
        measure(run(chosen.build(2), chosen.load(2), contender, 2)) for contender in (SKETCH, NO_RETRY)
    )
    assert ours["success"] >= plain["success"]
    assert ours["duplicates"] <= plain["duplicates"]


def test_one_refresh_serves_all_operations():
    """However many operations are rejected at the same moment."""
    record = run(Expiry(death=0), [(0.001 * n, 0) for n in range(50)], SKETCH, 1)
    assert all(record.succeeded)
    assert record.service.refreshes == 1


def test_a_hint_beyond_the_wait_left_is_given_up_at_once_by_all():
    """The first operation makes a call; the others give up without one."""
    record = run(Hostile(), [(0.1 * n, 0) for n in range(10)], SKETCH, 1)
    assert record.service.calls == 1
    assert record.ends[0] == pytest.approx(0.05)
    assert record.ends[1:] == pytest.approx([0.1 * n for n in range(1, 10)])


def test_a_write_without_a_key_is_not_retried_after_a_timeout():
    """It may have had its effect, so the decision is `verify`."""
    service = Lossy(seed=5)
    service.keyed = False
    record = run(service, poisson(5, rate=5, seconds=40), SKETCH, 5)
    assert service.duplicates == 0
    assert sum(record.succeeded) / len(record.succeeded) > 0.75  # clean 503s are repeated


def test_every_operation_makes_at_least_one_call():
    """Also if the service hardly ever responds."""
    service = Brownout(seed=9, share=0.97)
    arrivals = poisson(9, rate=2, seconds=60)
    asked = set()
    receive = service.receive
    service.receive = lambda now, request: (asked.add(request.operation), receive(now, request))[1]
    record = run(service, arrivals, SKETCH, 9)
    assert asked == set(range(len(arrivals)))
    assert max(end - at for end, (at, _) in zip(record.ends, arrivals, strict=True)) < 310


def test_the_fleet_recovers_with_the_sketch():
    """A small, fast fleet: nearly all operations succeed, with few extra calls."""
    service = Overload(rate=12, slow_rate=3, queue=50)
    record = run(service, poisson(1, rate=0.5, seconds=120, clients=20), SKETCH, 1)
    found = measure(record)
    assert found["success"] > 98
    assert found["calls/success"] < 1.2


def test_a_contender_may_fail_in_any_way():
    """Any exception is a failed operation, with its time."""

    async def perform(call):
        await asyncio.sleep(1)
        raise RefusedError(await call.send())

    record = run(Service(), [(0.0, 0)], Contender("broken", "", lambda process: perform), 1)
    assert (record.succeeded, record.ends) == ([False], [1.05])
