"""The measures of the source: no import cycles, a test file per module."""

import doctest
import importlib.util
from pathlib import Path

PATH = Path(__file__).parents[1] / "scripts" / "measures.py"


def measures():
    spec = importlib.util.spec_from_file_location("measures", PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_its_examples():
    """The examples in the docstrings hold."""
    assert doctest.testmod(measures()).failed == 0


def test_import_cycles():
    """No modules import each other. All imports count, also those inside functions."""
    assert measures().import_cycles() == []


def test_a_test_file_per_module():
    """Each module of these packages has a test file of its name."""
    assert measures().without_tests({"durable", "http", "recovery"}) == []
