"""docs/foreign.md: its examples run, and its table matches the code."""

import re

from tests.foreign.table import MARK, PAGE, table


def test_the_page_runs() -> None:
    """Every Python block runs, in order, in one namespace."""
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert len(blocks) == 7
    scope: dict[str, object] = {"__name__": "page"}
    for block in blocks:
        exec(compile(block, PAGE.name, "exec"), scope)


def test_the_table_matches_the_rows() -> None:
    """`python -m tests.foreign.table` writes the table."""
    assert PAGE.read_text().partition(MARK)[2] == table()
