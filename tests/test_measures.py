"""The measures of the source: no import cycles in the packages that were freed of them."""

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
    """All imports count, also those inside functions. These packages have none; the others have the ones listed."""
    found = measures().package_cycles()
    assert {package: len(groups) for package, groups in found.items()} == {
        "amends.bindings": 2,
        "amends.core": 1,
        "amends.errors": 1,
        "amends.recovery": 1,
    }
