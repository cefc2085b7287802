"""The example in the docstring of `dashboard` prints what it shows."""

import doctest

from amends.page import app


def test_examples():
    """Every example runs."""
    result = doctest.testmod(app)
    assert result.attempted
    assert not result.failed
