"""Metrics of runs, and the comparison with the published numbers."""

import math

import pytest
from bench.recovery.metrics import Estimate, estimate, fleet, measure, percentile
from bench.recovery.overload import Overload
from bench.recovery.published import Goal, agrees
from bench.recovery.report import document
from bench.recovery.run import Record
from bench.recovery.services import Service


def test_percentiles_are_by_nearest_rank():
    """The 99th percentile of 1 to 100 is 99; of one value, that value; of none, NaN."""
    values = [float(n) for n in range(1, 101)]
    assert (percentile(values, 0.99), percentile(values, 0.5)) == (99, 50)
    assert percentile([7.0], 0.99) == 7
    assert math.isnan(percentile([], 0.5))


def test_estimates_leave_out_runs_without_a_number():
    """Of 1, NaN and 3: mean 2, standard error 1."""
    found = estimate([1.0, math.nan, 3.0])
    assert (found.mean, found.count) == (2, 2)
    assert found.error == pytest.approx(1.0)


def test_metrics_of_a_run():
    """Two of three operations succeed with four calls; the third failed after 2 s with its write committed."""
    service = Service()
    service.calls = 4
    service.commits.update({0: 1, 1: 2, 2: 1})
    came = [0.0, 1.0, 2.0]
    record = Record(service, [(at, 0) for at in came], came, [0.5, 2.0, 4.0], [True, True, False])
    found = measure(record)
    assert found["success"] == pytest.approx(200 / 3)
    assert (found["calls/success"], found["p50"], found["p99"]) == (2, 0.5, 1)
    assert (found["to failure"], found["duplicates"], found["orphans"]) == (2, 1, 1)


def fleet_record(failing):
    """Return a record of 100 arrivals per second for 60 s; those of the seconds in `failing` fail."""
    arrivals = [(n / 100, 0) for n in range(6000)]
    return Record(
        Overload(),
        arrivals,
        [at for at, _ in arrivals],
        [at + 0.05 for at, _ in arrivals],
        [int(at) not in failing for at, _ in arrivals],
    )


def test_recovery_is_the_last_relapse():
    """Bad until 36: 6 s; a relapse from 50 to 52: 22 s; never bad after 30: 0."""
    assert fleet(fleet_record(range(21, 36)), Overload())["recovery"] == 6
    assert fleet(fleet_record([*range(21, 36), 50, 51]), Overload())["recovery"] == 22
    assert fleet(fleet_record(range(21, 30)), Overload())["recovery"] == 0
    assert fleet(fleet_record([]), Overload())["goodput after"] == pytest.approx(100)


def test_agreement_is_ten_per_cent_or_two_errors_or_rounding():
    """Each of the three is enough."""
    assert agrees(50, Estimate(54.9, 0.1, 20))
    assert not agrees(50, Estimate(55.2, 0.1, 20))
    assert agrees(50, Estimate(58, 4.1, 20))
    assert agrees(3, Estimate(3.4, 0.0, 20))
    assert agrees(0, Estimate(0.0, 0.0, 20))


def test_senses_of_goals():
    """At least, at most, below."""
    assert Goal("a", "success", "at least", 98).met(Estimate(98, 1, 2))
    assert Goal("a", "calls", "at most", 2).met(Estimate(2, 1, 2))
    assert not Goal("a", "p99", "below", 8).met(Estimate(8, 1, 2))


class FakeCell:
    """A cell with the same figure in both runs."""

    def __init__(self, **figures):
        self.runs = [{"success": 0.0, "duplicates": 0.0, **figures}] * 2

    def get(self, metric):
        """Return the estimate of a metric."""
        return estimate([run.get(metric, math.nan) for run in self.runs])


def test_the_page_begins_with_the_chart_and_names_what_is_lost():
    """A paragraph, a chart, the contenders, where ours is behind, and only then the table."""
    cells = {
        ("b", "no retry"): FakeCell(success=49.0, p50=0.1, p99=0.1),
        ("b", "amends"): FakeCell(success=100.0, p50=13.0, p99=40.0),
        ("f+ignored", "stamina"): FakeCell(success=100.0, duplicates=75.0),
        ("f+ignored", "amends"): FakeCell(success=69.0),
    }
    page = document(cells, ["no retry", "stamina", "amends"], 2)
    parts = ("the next best 49.0 % (no retry)", "![Success", "## The contenders", "## Where amends loses")
    places = [page.index(each) for each in (*parts, "## All scenarios")]
    assert places == sorted(places)
    assert "69.0 % success with 0.00 duplicates; stamina 100 % with 75.0.\n" in page
    assert "the median time of a success is 13.0 s in b.\n" in page
