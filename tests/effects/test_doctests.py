"""The examples in the docstrings of the ledger."""

import doctest
import importlib
import pkgutil

import amends.effects


def test_examples():
    """Every example prints what it shows."""
    attempted = 0
    for module in pkgutil.iter_modules(amends.effects.__path__, "amends.effects."):
        found = doctest.testmod(importlib.import_module(module.name))
        assert not found.failed, module.name
        attempted += found.attempted
    assert attempted >= 30
