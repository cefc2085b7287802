"""
S4's storyboard check `error_code` for test suites (A8).

    assert_error_code(response, "RATE_LIMITED")

The code is found in S4's detection order, so the check holds whichever layer an agent speaks on: `adcp_error` of the
transport first, then `errors[0]` of the payload. It is offered as `amends.testing.assert_error_code`.
"""

from __future__ import annotations

from typing import Any

from amends.carriers.extraction import examine
from amends.errors.base import FaultError

__all__ = ["NOT_RESOLVABLE", "ErrorCodeMismatch", "assert_error_code", "error_code"]

NOT_RESOLVABLE = "error_code_not_resolvable"
"""S4's name for a response in which neither layer carries a code."""
_DIFFERENT = "error_code_mismatch"


class ErrorCodeMismatch(AssertionError):
    """The check failed; `reason` says how, `found` is the code that was there instead."""

    def __init__(self, reason: str, wanted: tuple[str, ...], found: str | None) -> None:
        super().__init__(reason, wanted, found)
        self.reason = reason
        self.wanted = wanted
        self.found = found

    def __str__(self) -> str:
        wanted = " or ".join(self.wanted)
        if self.found is None:
            return f"{self.reason}: no layer of the response carries a code, {wanted} was expected"
        return f"{self.reason}: the response says {self.found}, {wanted} was expected"


def error_code(response: Any, via: str | None = None) -> str | None:
    """
    The code a response carries, or None: a status or an exit code alone is no code of anybody's.

    >>> error_code({"isError": True, "structuredContent": {"errors": [{"code": "CONFLICT"}]}})
    'CONFLICT'
    """
    if isinstance(response, FaultError):
        return response.fault.code
    _, reading = examine(response, via)
    return None if reading.error is None or reading.fault is None else reading.fault.code


def assert_error_code(response: Any, *codes: str, via: str | None = None) -> None:
    """
    Fail unless a response carries one of the codes, on whichever layer.

    Args:
        response: as `amends.extract` takes it, plain values and the objects of the SDKs alike; or a FaultError.
        codes: those expected.
        via: mcp, a2a, jsonrpc, adcp …; None: the shape decides.

    Raises:
        ErrorCodeMismatch: an AssertionError whose `reason` is "error_code_not_resolvable" where no layer carries a code,
            "error_code_mismatch" where it is another.
        TypeError: when no code is given.

    """
    if not codes:
        raise TypeError("name at least one code to be expected")
    found = error_code(response, via)
    if found not in codes:
        raise ErrorCodeMismatch(NOT_RESOLVABLE if found is None else _DIFFERENT, codes, found)
