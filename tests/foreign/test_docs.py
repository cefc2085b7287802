"""docs/foreign.md runs as it stands, and its table is the code's."""

import re

from tests.foreign.table import MARK, PAGE, table


def test_the_page_runs() -> None:
    """Every python block, one after the other in one namespace, as a reader would type them."""
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert len(blocks) == 6
    scope: dict[str, object] = {"__name__": "page"}
    for block in blocks:
        exec(compile(block, PAGE.name, "exec"), scope)


def test_the_table_is_the_codes() -> None:
    """Written from the rows; `python -m tests.foreign.table` writes it anew."""
    assert PAGE.read_text().partition(MARK)[2] == table()
