"""Checks of arguments, with messages that say what would have been right."""

from datetime import timedelta

import pytest

from amends import Operation, Policy
from amends.core.validate import check_count, check_kind, check_seconds, in_seconds


def test_counts():
    """A count is a whole number and no boolean."""
    check_count("attempts", 3)
    for wrong in (True, 1.5, "3", None):
        with pytest.raises(TypeError, match=f"attempts is a whole number, not {type(wrong).__name__}"):
            check_count("attempts", wrong)


def test_seconds():
    """Seconds are a number; a timedelta is accepted by functions only, and the message says what to write."""
    check_seconds("wait", 1)
    check_seconds("wait", 1.5)
    for wrong in (True, "3", None):
        with pytest.raises(TypeError, match=r"wait is a number of seconds, not \w+$"):
            check_seconds("wait", wrong)
        with pytest.raises(TypeError):
            in_seconds("wait", wrong)
    with pytest.raises(TypeError, match=r"not timedelta: write 90$"):
        check_seconds("wait", timedelta(seconds=90))
    assert in_seconds("wait", timedelta(seconds=90)) == 90.0


def test_kinds():
    """The message names the class with its article, and an example."""
    check_kind("policy", Policy(), Policy, "x")
    with pytest.raises(TypeError, match=r"^policy is a Policy, not int: write Policy\(\)$"):
        check_kind("policy", 3, Policy, "Policy()")
    with pytest.raises(TypeError, match=r"^operation is an Operation, not str: write x$"):
        check_kind("operation", "a", Operation, "x")
