"""Errors of JSON-RPC that carry none of our formats, inside successful answers and streams."""

from __future__ import annotations

from amends.core.fault import Fault
from amends.core.meanings import INTERNAL, INVALID, NOT_FOUND, RATE, SIGN_IN
from amends.vendors.evidence import Evidence, collect
from amends.vendors.meaning import by_status
from amends.vendors.reading import build

__all__ = ["read_error"]

_NUMBERS = {
    -32700: INVALID,
    -32600: INVALID,
    -32601: NOT_FOUND,
    -32602: INVALID,
    -32005: RATE,
    -32603: INTERNAL,
    # MCP: a person has to open a page, for example to sign in.
    -32042: SIGN_IN,
}
_REFUSED = frozenset({-32700, -32600, -32601, -32602, -32042})
"""Numbers of the protocols with which a call is refused before it runs (M3)."""


def read_error(error: dict[str, object]) -> Fault | None:
    """
    Return the fault of an error object, or None if it has no number.

    >>> read_error({"code": -32602, "message": "Unknown tool"}).code
    'VALIDATION_ERROR'
    """
    code = error.get("code")
    if not isinstance(code, int) or isinstance(code, bool) or abs(code) > 10**9:
        return None
    evidence = Evidence(proved=code in _REFUSED)
    message = error.get("message")
    data = error.get("data")
    said = collect({"data": data}, Evidence()) if isinstance(data, dict) else evidence
    evidence.message = message if isinstance(message, str) else ""
    meaning = _NUMBERS.get(code)
    status = code if _FAILED <= code <= _LAST else said.status
    if status is not None and (meaning is None or meaning is INTERNAL):
        # Alchemy: 429; tRPC: {"code": -32029, "data": {"httpStatus": 429}}.
        return build(by_status(status, None, False), status, evidence, "jsonrpc", str(code), None, None)
    return build(meaning or INTERNAL, None, evidence, "jsonrpc", str(code), None, None)


_FAILED, _LAST = 400, 599
