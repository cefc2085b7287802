"""The crash matrix: a sample in every run, all of it in `make soak`."""

import random

import pytest

from tests.crash.cells import BOUND, cells, run

SEED = 20261119
SAMPLE = 8


def judged(cell, outcome):
    """Return what is wrong with an outcome, or an empty text."""
    if outcome.seconds > BOUND:
        return f"{cell}: {outcome.seconds:.0f} s"
    if outcome.effects > 1:
        return f"{cell}: {outcome.effects} orders, told {outcome.told}"
    if outcome.told == "done" and outcome.effects != 1:
        return f"{cell}: told done, {outcome.effects} orders"
    return ""


def failing(chosen, tmp_path):
    """Run cells, and return one line per failing cell."""
    wrong = []
    for number, cell in enumerate(chosen):
        folder = tmp_path / str(number)
        folder.mkdir()
        wrong += filter(None, [judged(cell, run(cell, folder))])
    return wrong


def test_a_sample(tmp_path):
    """A seeded sample: nothing is ordered twice, and every reader has an answer within the bound."""
    everything = [cell for cell in cells() if cell.how != "stop"]
    assert failing(random.Random(SEED).sample(everything, SAMPLE), tmp_path) == []


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_every_cell(tmp_path):
    """All cells."""
    assert failing(list(cells()), tmp_path) == []
