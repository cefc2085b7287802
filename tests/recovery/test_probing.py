"""Tests of when an unavailable service is probed."""

import pytest

from amends.recovery.evidence import HINT, PLAIN, SILENT
from amends.recovery.probing import Probing


def known(rate):
    """Return a service that answered `rate` calls per second for a minute, and the time."""
    probing, now = Probing(), 100.0
    while now < 160.0:
        now += 1.0 / rate
        probing.succeeded_open(now, now - 0.01)
    return probing, now


@pytest.mark.parametrize(
    ("kind", "rate", "first", "longest"),
    [(PLAIN, 10.0, 0.5, 5.0), (PLAIN, 0.1, 5.0, 10.0), (SILENT, 10.0, 5.0, 5.0), (SILENT, 0.1, 7.5, 15.0)],
)
def test_processes_that_send_few_calls_probe_less_often(kind, rate, first, longest):
    """Many of them may share the service. Each failed probe doubles the gap, up to a cap."""
    probing, now = known(rate)
    gaps = []
    for failed in range(12):
        probing.failed_probes = failed
        probing.hold(now, 0.5, kind, 0.0)
        gaps.append(probing.resume_at - now)
    assert gaps[0] == pytest.approx(first, rel=0.1)
    assert gaps[-1] == pytest.approx(longest, rel=0.1)
    assert gaps == sorted(gaps)


def test_hints_are_kept_whole_up_to_half_a_minute():
    """Longer ones are probed sooner, if the service has answered before."""
    probing, now = known(10.0)
    probing.hold(now, 0.5, HINT, 20.0)
    assert probing.resume_at == now + 20.0
    gaps = []
    for service in (known(10.0), (Probing(), 1.0)):
        probing, now = service
        for _ in range(3):
            probing.hold(now, 0.5, HINT, 3600.0)
            gaps.append(probing.resume_at - now)
    assert gaps == pytest.approx([2.0, 14.0, 98.0, 30.0, 90.0, 270.0])


def test_the_end_of_a_hold_forgets_it():
    """The next one begins with the first gap."""
    probing, now = known(10.0)
    probing.failed_probes, probing.until, probing.probe_sent = 3, now + 5.0, now
    assert probing.is_probe(now)
    assert not probing.is_probe(now - 1.0)
    probing.end_hold()
    assert (probing.failed_probes, probing.until) == (0, 0.0)
    assert not probing.is_probe(now)
