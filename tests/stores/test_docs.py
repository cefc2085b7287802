"""The examples in docs/stores.md run, and the tests it names exist."""

from __future__ import annotations

import ast
import asyncio
import re
from itertools import takewhile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "stores.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_examples_run(number):
    code = compile(
        EXAMPLES[number], f"docs/stores.md example {number}", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    )
    names = {}

    async def run():
        result = eval(code, names)
        if asyncio.iscoroutine(result):
            await result

    asyncio.run(run())


def test_every_guarantee_names_a_test_or_is_marked_not_covered():
    lines = TEXT.splitlines()
    header = next(number for number, line in enumerate(lines) if line.endswith("| test |"))
    rows = list(takewhile(lambda line: line.startswith("|"), lines[header + 2 :]))
    assert len(rows) > 15
    for row in rows:
        proof = row.rsplit("|", 2)[1]
        named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", proof)
        assert named or "not covered" in proof or "rows below" in proof, row
        for path, name in named:
            assert f"def {name}(" in (ROOT / path).read_text(encoding="utf-8"), name
