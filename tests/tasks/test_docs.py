"""The tests that docs/tasks-durable.md names exist."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_every_test_a_page_names_exists():
    """Every row of the table of failures has a test."""
    named = re.findall(r"`(tests/tasks/\w+\.py)::(\w+)`", (ROOT / "docs" / "tasks-durable.md").read_text())
    assert len(named) >= 10
    for path, name in named:
        assert re.search(rf"^(async )?def {name}\(", (ROOT / path).read_text(), re.MULTILINE), name
