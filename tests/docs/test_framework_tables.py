"""The tables of agent frameworks in the pages."""

import re

from tests.frameworks.table import ALONE, PACKAGES, PAGES, recorded, written


def test_the_tables_are_those_of_the_recorded_outcomes():
    """`python -m tests.frameworks.table --write`."""
    for page in PAGES:
        assert page.read_text() == written(page)


def test_no_recorded_cell_is_paid_twice_or_false():
    """Every framework was measured, and what the page says above the tables holds in them."""
    assert len(recorded()) == len(PACKAGES) == 10
    for record in recorded():
        ours = "".join(
            row for part, rows in record["outcomes"].items() if part != ALONE for row in rows.values()
        )
        assert len(ours.replace("-", "")) > 60, record["name"]
        assert re.fullmatch("[PD-]*", ours), record["name"]
