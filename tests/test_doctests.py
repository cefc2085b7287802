"""Every example in a docstring runs and prints what it shows."""

import doctest
import importlib
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1] / "src"


def test_the_examples_of_docstrings_are_true():
    """The modules with examples are found by their text, so a new one needs no list."""
    attempted, failed = 0, []
    for path in sorted(SOURCE.rglob("*.py")):
        if ">>> " in path.read_text():
            name = ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
            found = doctest.testmod(importlib.import_module(name))
            attempted += found.attempted
            failed += [name] * bool(found.failed)
    assert failed == []
    assert attempted > 200
