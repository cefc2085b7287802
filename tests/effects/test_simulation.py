"""No duplicates and no silent losses, in a sample with fixed seeds; the full number runs with `make soak`."""

import pytest

from amends.core.enums import Executed
from amends.effects import flow
from tests.effects.simulation import run


def test_a_sample():
    """Every operation is checked while it runs; the sample has deaths, lost answers and doubts."""
    seen = run(2_500, seed=25)
    assert (seen["operations"], seen["duplicates"]) == (2_500, 0)
    for kind in ("deaths", "lost answers", "doubts"):
        assert seen[kind] > 250, seen


def test_the_simulation_finds_a_broken_ledger(monkeypatch):
    """A ledger that takes a lost answer for a call that did not happen has duplicates."""
    monkeypatch.setattr(flow, "_executed", lambda exc, direct: Executed.NO)
    with pytest.raises(AssertionError, match="duplicate"):
        run(2_000, seed=25)


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_a_million_operations():
    """The goal: 0 duplicates and 0 silent losses in 1,000,000 operations."""
    seen = run(1_000_000, seed=1)
    print(dict(seen))
    assert (seen["operations"], seen["duplicates"]) == (1_000_000, 0)
