"""
AdCP's storyboard check `error_code` for test suites (A8).

    assert_error_code(response, "RATE_LIMITED")

The code is found in AdCP's detection order, so the check works whichever layer an agent uses: `adcp_error` of the
transport first, then `errors[0]` of the payload. Also available as `amends.testing.assert_error_code`.
"""

from __future__ import annotations

from typing import Any

from amends.carriers.extraction import examine
from amends.errors.base import FaultError

__all__ = ["NOT_RESOLVABLE", "ErrorCodeMismatch", "assert_error_code", "error_code"]

NOT_RESOLVABLE = "error_code_not_resolvable"
"""AdCP's name for a response in which neither layer has a code."""
_DIFFERENT = "error_code_mismatch"


class ErrorCodeMismatch(AssertionError):
    """The check failed. `reason` says how, `found` is the code of the response or None."""

    def __init__(self, reason: str, wanted: tuple[str, ...], found: str | None) -> None:
        super().__init__(reason, wanted, found)
        self.reason = reason
        self.wanted = wanted
        self.found = found

    def __str__(self) -> str:
        wanted = " or ".join(self.wanted)
        if self.found is None:
            return f"{self.reason}: no layer of the response has a code, {wanted} was expected"
        return f"{self.reason}: the response has {self.found}, {wanted} was expected"


def error_code(response: Any, via: str | None = None) -> str | None:
    """
    Return the code in a response, or None. A status or an exit code alone is not a code.

    >>> error_code({"isError": True, "structuredContent": {"errors": [{"code": "CONFLICT"}]}})
    'CONFLICT'
    """
    if isinstance(response, FaultError):
        return response.fault.code
    _, reading = examine(response, via)
    return None if reading.error is None or reading.fault is None else reading.fault.code


def assert_error_code(response: Any, *codes: str, via: str | None = None) -> None:
    """
    Raise unless a response has one of the codes, on either layer.

    Args:
        response: what `amends.extract` takes (plain values or an SDK's object), or a FaultError.
        codes: the expected codes.
        via: mcp, a2a, jsonrpc, adcp …; None: the shape decides.

    Raises:
        ErrorCodeMismatch: an AssertionError whose `reason` is "error_code_not_resolvable" if no layer has a code, and
            "error_code_mismatch" if it is another one.
        TypeError: if no code is given.

    """
    if not codes:
        raise TypeError("assert_error_code needs at least one expected code")
    found = error_code(response, via)
    if found not in codes:
        raise ErrorCodeMismatch(NOT_RESOLVABLE if found is None else _DIFFERENT, codes, found)
