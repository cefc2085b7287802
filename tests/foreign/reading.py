"""What an exception is read as, in three words."""

from collections.abc import Callable

import pytest

from amends import Fault, from_exception


def told(fault: Fault) -> tuple[str, str, str]:
    """Code, recovery, and whether it ran."""
    return fault.code, fault.recovery.value, fault.executed.value


def of(call: Callable[[], object]) -> Fault:
    """The fault of what a call raises."""
    with pytest.raises(BaseException) as caught:
        call()
    return from_exception(caught.value)
