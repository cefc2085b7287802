"""Tests of what is chance and what is an outage."""

from amends.recovery.evidence import AGAIN, ALONE, HINT, LEARNED, PLAIN, REFUSED, SILENT, STALE, Evidence


def known(*, failing=0.0, calls=400):
    """Return the evidence of a service that answered ten calls per second, and the time."""
    evidence, now = Evidence(), 100.0
    for number in range(calls):
        now += 0.1
        if number * 7 % 100 < 100 * failing:
            evidence.count_failure(now, now - 0.01, PLAIN, repeat=False)
        else:
            evidence.succeeded_open(now, now - 0.01)
    evidence.succeeded_open(now, now - 0.01)
    return evidence, now


def needed(evidence, now, kind, *, repeat=False):
    """Return how many failures in a row are no chance."""
    for number in range(1, 200):
        if evidence.count_failure(now + number / 10, now + 0.05, kind, repeat=repeat):
            return number
    return 200


def test_the_usual_share_of_failures_decides():
    """The more calls fail here, the longer a run has to be."""
    counts = [needed(*known(failing=share), PLAIN) for share in (0.0, 0.3, 0.5)]
    assert counts == sorted(counts)
    assert counts[0] == 6
    assert counts[2] > 2 * counts[0]


def test_the_kind_of_failure_decides():
    """Silence needs fewer failures than plain answers, a hint fewest."""
    assert [needed(*known(), kind) for kind in (PLAIN, REFUSED, SILENT, HINT)] == [6, 6, 3, 2]


def test_old_failures_are_no_evidence():
    """After STALE seconds the run begins again."""
    evidence, now = known()
    for _ in range(5):
        assert not evidence.count_failure(now, now - 0.01, PLAIN, repeat=False)
    assert not evidence.count_failure(now + STALE + 1, now + STALE, PLAIN, repeat=False)
    assert evidence.run == 1


def test_operations_that_are_refused_again_are_no_evidence():
    """Until a repeat succeeds, the refusals concern single callers."""
    evidence, now = known()
    evidence.count_repeat(refused=True)
    assert not evidence.refused_alone
    for _ in range(round(1 / AGAIN / (1 - ALONE))):
        evidence.count_repeat(refused=True)
    assert evidence.refused_alone
    assert needed(evidence, now, REFUSED, repeat=True) > 30
    assert evidence.run == 0
    for _ in range(3):
        evidence.count_repeat(refused=False)
    assert not evidence.refused_alone


def test_a_long_run_is_learned_as_a_short_one():
    """A service that was down and is back is not taken for unreliable."""
    evidence, now = known()
    for number in range(100):
        evidence.count_failure(now + number, now + number, PLAIN, repeat=False)
    assert evidence.failing < 0.3
    evidence.succeeded_open(now + 101, now + 100.9)
    assert evidence.share < (LEARNED + 1) / 32
    assert evidence.run == 0
