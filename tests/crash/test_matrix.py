"""The crash matrix: a sample in every run, all of it in `make soak`."""

import random
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.crash.cells import BOUND, FAMILIES, cells, run

SEED = 20261119
AT_ONCE = 6
"""Cells that run at once. Most of their time they wait."""
SLACK = 5.0
"""Seconds that a busy machine may add."""


def judged(cell, outcome):
    """Return what is wrong with an outcome, or an empty text."""
    if outcome.effects > 1:
        return f"{cell}: {outcome.effects} orders, told {outcome.told}"
    if outcome.told == "done" and outcome.effects != 1:
        return f"{cell}: told done, {outcome.effects} orders"
    if outcome.told in {"", "nothing"}:
        return f"{cell}: no answer"
    if outcome.longest > BOUND + SLACK:
        return f"{cell}: {outcome.longest:.0f} s"
    return ""


def failing(chosen, folder):
    """Run cells, and return one line per failing cell."""

    def one(numbered):
        number, cell = numbered
        place = folder / str(number)
        place.mkdir()
        return judged(cell, run(cell, place))

    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(filter(None, pool.map(one, enumerate(chosen))))


def sample(seed):
    """Return a cell of each family that takes a short time, in a random order."""
    draw = random.Random(seed)
    short = [cell for cell in cells() if cell.how in {"kill", "cut"} and cell.store == "sqlite"]
    return [
        draw.choice([cell for cell in short if cell.family == name]) for name in FAMILIES if name != "tasks"
    ]


def test_a_sample(tmp_path):
    """A seeded sample: nothing is ordered twice, and every reader has an answer within the bound."""
    assert failing(sample(SEED), tmp_path) == []


@pytest.mark.soak
@pytest.mark.timeout(4 * 3600)
def test_every_cell(tmp_path):
    """All cells, in a random order, so that long ones and busy ones run beside each other."""
    everything = list(cells())
    random.Random(SEED).shuffle(everything)
    assert failing(everything, tmp_path) == []


def test_the_cells_cover_the_matrix():
    """Every binding, side, victim and instant has cells; every HTTP client and server meets each side and victim."""
    everything = list(cells())
    assert len(set(everything)) == len(everything)
    assert {cell.family for cell in everything} == set(FAMILIES)
    for name, family in FAMILIES.items():
        ours = [cell for cell in everything if cell.family == name]
        assert {cell.side for cell in ours} == set(family.sides)
        assert {cell.dies for cell in ours} == set(family.dies)
