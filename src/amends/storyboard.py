"""
AdCP's storyboard check `error_code`, for test suites (A8).

    assert_error_code(response, "RATE_LIMITED")

The check reads the code in AdCP's detection order: first `adcp_error` of the transport, then `errors[0]` of the payload.
`amends.testing` exports it.
"""

from __future__ import annotations

from typing import Any

from amends.carriers.extraction import examine
from amends.core.wrong_calls import explains_wrong_calls
from amends.errors.base import FaultError

__all__ = ["NOT_RESOLVABLE", "ErrorCodeMismatch", "assert_error_code", "error_code"]

NOT_RESOLVABLE = "error_code_not_resolvable"
"""AdCP's name for a response in which neither layer has a code."""
_MISMATCH = "error_code_mismatch"


class ErrorCodeMismatch(AssertionError):
    """
    The check failed. `reason` is AdCP's name for the failure; `found` is the code of the response, or None.

    >>> try:
    ...     assert_error_code({"adcp_error": {"code": "CONFLICT"}}, "RATE_LIMITED")
    ... except ErrorCodeMismatch as mismatch:
    ...     print(mismatch.reason, mismatch.found)
    error_code_mismatch CONFLICT
    """

    def __init__(self, reason: str, wanted: tuple[str, ...], found: str | None) -> None:
        super().__init__(reason, wanted, found)
        self.reason = reason
        self.wanted = wanted
        self.found = found

    def __str__(self) -> str:
        wanted = " or ".join(self.wanted)
        if self.found is None:
            return f"{self.reason}: no layer of the response has a code; expected {wanted}"
        return f"{self.reason}: the response has {self.found}; expected {wanted}"


def error_code(response: Any, via: str | None = None) -> str | None:
    """
    Return the code in a response. A response with only a status or an exit code has none: the result is None.

    >>> error_code({"isError": True, "structuredContent": {"errors": [{"code": "CONFLICT"}]}})
    'CONFLICT'
    """
    if isinstance(response, FaultError):
        return response.fault.code
    _, reading = examine(response, via)
    return None if reading.error is None or reading.fault is None else reading.fault.code


@explains_wrong_calls
def assert_error_code(response: Any, *codes: str, via: str | None = None) -> None:
    """
    Fail unless a response has one of the codes, on either layer.

    >>> assert_error_code({"adcp_error": {"code": "RATE_LIMITED"}}, "RATE_LIMITED")

    Args:
        response: what `amends.extract` accepts (plain values and objects of the SDKs), or a FaultError.
        codes: the expected codes.
        via: the carrier (mcp, a2a, jsonrpc, adcp …); None: detect it from the shape.

    Raises:
        ErrorCodeMismatch: an AssertionError whose `reason` is "error_code_not_resolvable" if no layer has a code,
            "error_code_mismatch" if the code is another one.
        TypeError: if no code is given.

    """
    if not codes:
        raise TypeError("give at least one expected code")
    found = error_code(response, via)
    if found not in codes:
        raise ErrorCodeMismatch(NOT_RESOLVABLE if found is None else _MISMATCH, codes, found)
