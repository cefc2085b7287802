"""Helpers that read the fault of an exception."""

from collections.abc import Callable

import pytest

from amends import Fault, from_exception


def facts(fault: Fault) -> tuple[str, str, str]:
    """Return the code, the recovery, and whether the call was executed."""
    return fault.code, fault.recovery.value, fault.executed.value


def raised_fault(call: Callable[[], object]) -> Fault:
    """Return the fault of the exception that a call raises."""
    with pytest.raises(BaseException) as caught:
        call()
    return from_exception(caught.value)
