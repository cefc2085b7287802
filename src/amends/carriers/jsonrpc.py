"""
JSON-RPC errors (S4): what infrastructure said before a call was dispatched.

The number is never needed for reading: `data.adcp_error` speaks. For writing, three codes are reserved; MCP
2026-07-28 took their range for itself, so there they have moved (design section 8).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from amends.carriers.layers import KEY, envelope_error, truthy
from amends.carriers.reading import FAILED, NOT_FAILED, Reading
from amends.core.enums import Executed
from amends.core.fault import Fault, Origin
from amends.core.vocabulary import vocabulary
from amends.dialects import adcp

__all__ = ["COLLAPSED", "MOVED_SINCE", "RESERVED", "is_response", "number", "read", "write"]

RESERVED = {row.code: row.jsonrpc for row in vocabulary("adcp").rows.values() if row.jsonrpc is not None}
"""The codes that may be rejected before dispatch, with their number up to MCP 2025-11-25."""
COLLAPSED = -32000
"""One number for all three, for servers that would rather not be told apart."""
MOVED_SINCE = "2026-07-28"
_MOVED_BY = 1000

_MOVED = {code: value + _MOVED_BY for code, value in RESERVED.items()}

# M3: rejected before anything ran.
_NOT_RUN = frozenset({-32700, -32600, -32601, -32602, *RESERVED.values(), *_MOVED.values()})
_ORIGIN = Origin("adcp", "jsonrpc_error", "transport")


def is_response(value: dict[str, Any]) -> bool:
    """Whether an object is a JSON-RPC response, also an error of a sender that forgot the version."""
    if "jsonrpc" in value:
        return True
    error = value.get("error")
    # Only here is an error's code a number.
    return error.__class__ is dict and error.get("code").__class__ is int and "ok" not in value


def read(response: Any) -> Reading:
    """The reading of a response's `error`. A response without one did not fail at this level."""
    error = response.get("error") if response.__class__ is dict else None
    if not truthy(error):
        return NOT_FAILED
    if error.__class__ is not dict:
        return FAILED
    executed = Executed.NO if _number(error.get("code")) in _NOT_RUN else None
    for item in _objects(error):
        if truthy(item.get(KEY)):
            return envelope_error(item[KEY], _ORIGIN, executed)
    return FAILED


def _objects(error: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """
    Where the structured error may be: `data`, one object.

    A2A 1.0 sends an array of typed objects there, whose own words are in `metadata`; over REST the array is called
    `details`.
    """
    data = error.get("data")
    if data.__class__ is dict:
        yield data
        return
    for typed in (data, error.get("details")):
        for item in typed if typed.__class__ is list else ():
            if item.__class__ is dict:
                yield item
                metadata = item.get("metadata")
                if metadata.__class__ is dict:
                    yield metadata


def _number(value: Any) -> int | None:
    """A JSON-RPC code; protobuf writes it as a float."""
    return int(value) if value.__class__ in {int, float} and value == value and abs(value) < 1e9 else None  # noqa: PLR0124


def number(code: str, *, protocol: str | None = None, collapse: bool = False) -> int:
    """
    The JSON-RPC number for a rejection before dispatch.

    Raises:
        ValueError: for a code that has none: it belongs into the tool's or task's own answer (A3).

    """
    if code not in RESERVED:
        raise ValueError(f"{code} is not rejected before dispatch; only {', '.join(RESERVED)} are (A3)")
    if collapse:
        return COLLAPSED
    return (_MOVED if protocol is not None and protocol >= MOVED_SINCE else RESERVED)[code]


def write(
    fault: Fault, *, id: str | int | None = None, protocol: str | None = None, collapse: bool = False
) -> dict[str, Any]:
    """A whole JSON-RPC error response that rejects a call before dispatch."""
    error = {
        "code": number(fault.code, protocol=protocol, collapse=collapse),
        "message": vocabulary("adcp").row(fault.code).message,
        "data": {KEY: adcp.encode(fault)},
    }
    return {"jsonrpc": "2.0", "id": id, "error": error}
