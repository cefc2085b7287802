"""The table of docs/crashes.md."""

from tests.crash.cells import cells
from tests.crash.table import PAGE, chosen, recorded, written
from tests.crash.test_matrix import judged


def test_the_page_has_the_outcomes():
    """The table is that of the recorded outcomes: `python -m tests.crash.table --write`."""
    assert PAGE.read_text() == written()


def test_every_recorded_outcome_is_right():
    """Every chosen cell was measured, and none ordered twice or took too long."""
    found = recorded()
    assert set(found) == set(chosen()) <= set(cells())
    assert list(filter(None, [judged(*each) for each in found.items()])) == []
