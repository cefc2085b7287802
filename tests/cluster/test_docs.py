"""Every failure in the table of docs/cluster.md names an existing test."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_every_failure_names_a_test():
    text = (ROOT / "docs" / "cluster.md").read_text(encoding="utf-8")
    table = text.partition("## What survives which failure")[2].partition("\n## ")[0]
    rows = [line for line in table.splitlines() if line.startswith("| ")][1:]
    assert len(rows) > 10
    for row in rows:
        proof = row.rsplit("|", 2)[1]
        named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", proof)
        assert named, row
        for path, name in named:
            assert re.search(rf"def {name}\b", (ROOT / path).read_text(encoding="utf-8")), (path, name)
