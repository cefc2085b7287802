"""
JSON-RPC errors with AdCP errors (S4): sent by infrastructure before a call was dispatched.

Reading uses `data.adcp_error` and not the number. For writing, three numbers are reserved. MCP 2026-07-28 reserves
their range for itself, so from that version on other numbers are written (design section 8).
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from amends.core.enums import Executed
from amends.core.fault import Fault, Origin
from amends.core.reading import FAILED, NOT_FAILED, Reading
from amends.core.text import truncate
from amends.core.vocabulary import vocabulary
from amends.core.wire import Unreadable, as_dict, read_strict
from amends.dialects import adcp, record
from amends.dialects.adcp import KEY, parts_beside
from amends.dialects.adcp_document import envelope_error, webhook_error
from amends.dialects.members import integer, text, truthy
from amends.proof import Claim, Proof, rests_on

__all__ = [
    "COLLAPSED",
    "MOVED_SINCE",
    "RESERVED",
    "collapsed",
    "error_in",
    "is_response",
    "number",
    "read",
    "write",
]

RESERVED = {row.code: row.jsonrpc for row in vocabulary("adcp").rows.values() if row.jsonrpc is not None}
"""The codes for rejections before dispatch, with their numbers up to MCP 2025-11-25."""
COLLAPSED = -32000
"""One number for all three up to MCP 2025-11-25, for servers that do not want to reveal which one it is."""
MOVED_SINCE = "2026-07-28"
_MOVED_BY = 1000

_MOVED = {code: value + _MOVED_BY for code, value in RESERVED.items()}

# M3: rejected before anything ran.
_NOT_RUN = frozenset({-32700, -32600, -32601, -32602, *RESERVED.values(), *_MOVED.values()})
_ORIGIN = Origin("adcp", "jsonrpc_error", "transport")
_LONGEST_MESSAGE = 1024


def is_response(value: dict[str, Any]) -> bool:
    """Whether an object is a JSON-RPC response, or an error response whose sender left out the version."""
    if "jsonrpc" in value:
        return True
    if "error" not in value or "ok" in value:
        return False
    error = as_dict(value["error"])
    code = None if error is None else error.get("code")
    # In the other shapes an error's code is a string.
    return isinstance(code, int) and not isinstance(code, bool)


def read(response: Any) -> Reading:
    """Read the `error` of a response. A response without one did not fail at this level."""
    if not isinstance(response, dict):
        return NOT_FAILED
    error = response.get("error")
    if not truthy(error):
        return webhook_error(response) or NOT_FAILED
    return error_in(error) or FAILED


@rests_on(Claim.NOT_HAPPENED, Proof.STATUS)
def error_in(error: Any) -> Reading | None:
    """
    Read the `adcp_error` of a response's `error`. Returns None if there is none.

    If it has no message, the fault gets that of the JSON-RPC error.
    """
    if not isinstance(error, dict):
        return None
    for item in _objects(error):
        if KEY in item and truthy(item[KEY]):
            # Protobuf writes the number as a float.
            executed = Executed.NO if integer(error.get("code")) in _NOT_RUN else None
            reading = envelope_error(item[KEY], _ORIGIN, executed, beside=(item,), meta=item)
            return _with_message(reading, text(error.get("message")))
    return None


def _with_message(reading: Reading, message: str | None) -> Reading:
    fault = reading.fault
    if fault is None or fault.message or not message:
        return reading
    return replace(reading, fault=replace(fault, message=truncate(message, _LONGEST_MESSAGE)))


def _objects(error: dict[str, Any]) -> list[dict[str, Any]]:
    """
    Return the objects that may hold the structured error: `data`, if it is an object, and what it wraps.

    A2A 1.0 sends an array of typed objects there, with the server's own members in `metadata`; over REST the array
    is called `details`. A Struct is wrapped in `value`. The metadata of google.rpc's ErrorInfo are strings, so that an error in
    them is JSON text.
    """
    found: list[dict[str, Any]] = []
    data = error.get("data")
    if isinstance(data, dict):
        return [data, *_wrapped(data)]
    for typed in (data, error.get("details")):
        for item in typed if isinstance(typed, list) else ():
            if isinstance(item, dict):
                found += [item, *_wrapped(item)]
                metadata = item.get("metadata")
                if isinstance(metadata, dict):
                    found.append(_parsed(metadata))
    return found


def _wrapped(item: dict[str, Any]) -> list[dict[str, Any]]:
    value = item.get("value")
    return [value] if "@type" in item and isinstance(value, dict) else []


def _parsed(metadata: dict[str, Any]) -> dict[str, Any]:
    """Return metadata with a structured error that is JSON text as an object."""
    written = metadata.get(KEY)
    if isinstance(written, str) and "{" in written:
        try:
            return {**metadata, KEY: read_strict(written)}
        except Unreadable:
            pass
    return metadata


def number(code: str, *, protocol: str | None = None, collapse: bool = False) -> int:
    """
    Return the JSON-RPC number for a rejection before dispatch.

    Raises:
        ValueError: for a code that has none: such an error belongs in the result of the tool or task (A3).

    """
    if code not in RESERVED:
        raise ValueError(f"{code} is not rejected before dispatch; only {', '.join(RESERVED)} are (A3)")
    if collapse:
        return collapsed(protocol)
    return (_MOVED if _has_moved(protocol) else RESERVED)[code]


def collapsed(protocol: str | None = None) -> int:
    """
    Return the one number for all rejections: -32000, and -31000 on MCP from 2026-07-28 on.

    >>> collapsed(), collapsed("2025-11-25"), collapsed("2026-07-28")
    (-32000, -32000, -31000)
    """
    return COLLAPSED + _MOVED_BY if _has_moved(protocol) else COLLAPSED


def _has_moved(protocol: str | None) -> bool:
    return protocol is not None and protocol >= MOVED_SINCE


def write(
    fault: Fault, *, id: str | int | None = None, protocol: str | None = None, collapse: bool = False
) -> dict[str, Any]:
    """Return a whole JSON-RPC error response that rejects a call before dispatch."""
    error = {
        "code": number(fault.code, protocol=protocol, collapse=collapse),
        "message": vocabulary("adcp").row(fault.code).message,
        "data": _data(fault),
    }
    return {"jsonrpc": "2.0", "id": id, "error": error}


def _data(fault: Fault) -> dict[str, Any]:
    data: dict[str, Any] = {KEY: adcp.encode_alone(fault), **record.beside(fault)}
    parts = [adcp.encode_alone(part) for part in parts_beside(fault)]
    return {**data, "errors": parts} if parts else data
