"""The examples in the docstrings of the recorder print what they show."""

import doctest
import importlib

import pytest

MODULES = ("event", "reader", "recorder", "summary", "traces")


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    """Every example runs."""
    result = doctest.testmod(importlib.import_module(f"amends.recorder.{name}"))
    assert result.attempted
    assert not result.failed
