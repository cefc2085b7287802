"""docs/recovery.md: every Python block runs, in order, as one program, without sleeping."""

import re
from pathlib import Path

from amends.testing import FakeClock

PAGE = Path(__file__).parents[2] / "docs" / "recovery.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)


def test_the_examples_run():
    """The examples work as a reader would copy them."""
    assert len(BLOCKS) > 10
    names = {"__name__": "recipes"}
    with FakeClock():
        for number, block in enumerate(BLOCKS, 1):
            exec(compile(block, f"{PAGE.name}, block {number}", "exec"), names)
