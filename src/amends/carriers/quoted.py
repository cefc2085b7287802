"""
The answer of an API that a failed tool quotes in its result: JSON in `structuredContent`, or as the whole of a text.

Servers turn an exception into a text. The SDKs put a frame of their own before it (`Error executing tool X: `, `MCP error -N: `,
`Error code: 402 - `), which is removed; a number in it counts. Other prose before or after JSON is not read, and a result that is no
failure never is. What is read says what to do, and nothing about the effect of the call: the tool may have done something
before it called the API.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from amends.carriers.detection import text_items
from amends.core.enums import Executed
from amends.core.fault import Fault, Origin
from amends.core.meanings import Meaning, fault_of
from amends.core.wire import Unreadable, as_dict
from amends.core.wire import read as read_json
from amends.dialects.members import integer

__all__ = ["quoted_fault"]

_FRAME = re.compile(r"(?:Error executing tool [\w.\-/]{1,128}|MCP error (-?[0-9]{1,6})|Error code): ")
_STATUS = re.compile(r"([45][0-9][0-9]) - ")
_MAX_FRAMES = 3
_MAX_TEXTS = 16
_MAX_TEXT = 65536
_STATUSES = ("status", "status_code", "statusCode", "http_status", "httpStatus")
_BODIES = ("body", "error_response", "response", "result", "data", "output")
_FIRST, _LAST = 400, 599


def quoted_fault(result: dict[str, Any], numbers: dict[int, Meaning]) -> Fault | None:
    """
    Return the fault of the answer that a result with `isError` quotes, or None.

    Args:
        result: a plain result of a tool.
        numbers: the meanings of the numbers of JSON-RPC and MCP, which a frame may have.

    >>> said = 'Error executing tool pay: {"error": {"code": "insufficient_quota"}}'
    >>> quoted_fault({"isError": True, "content": [{"type": "text", "text": said}]}, {}).code
    'QUOTA_EXCEEDED'
    >>> prose = 'It failed: {"error": {"code": "insufficient_quota"}}'
    >>> quoted_fault({"isError": True, "content": [{"type": "text", "text": prose}]}, {}) is None
    True

    """
    if result.get("isError") is not True:
        return None
    framed: Fault | None = None
    for document, status, number in _documents(result):
        found = None if document is None and status is None else _answer(document, status)
        if found is not None:
            dialect = found.origin.dialect if found.origin is not None else "vendor"
            return replace(found, executed=Executed.MAYBE, origin=Origin(dialect, "content"))
        meaning = None if number is None else numbers.get(number)
        if meaning is not None and framed is None:
            framed = fault_of(meaning, details={"jsonrpc": number}, origin=Origin("mcp", "content"))
    return None if framed is None else replace(framed, executed=Executed.MAYBE)


def _documents(result: dict[str, Any]) -> Iterator[tuple[Any, int | None, int | None]]:
    """Yield (document, status of a frame, number of a frame) of the places of a result."""
    structured = as_dict(result.get("structuredContent"))
    if structured:
        yield structured, None, None
    for place, text in enumerate(text_items(result.get("content"))):
        if place >= _MAX_TEXTS:
            return
        if len(text) <= _MAX_TEXT:
            yield _framed(text.strip())


def _framed(text: str) -> tuple[Any, int | None, int | None]:
    status: int | None = None
    number: int | None = None
    for _ in range(_MAX_FRAMES):
        frame = _FRAME.match(text)
        if frame is None:
            break
        rest = text[frame.end() :].lstrip()
        if frame[0].startswith("Error code"):
            code = _STATUS.match(rest)
            if code is None:
                break
            status, rest = int(code[1]), rest[code.end() :].lstrip()
        elif frame[1] is not None:
            number = int(frame[1])
        text = rest
    if text[:1] not in {"{", "["}:
        return None, status, number
    try:
        value = read_json(text)
    except Unreadable:
        return None, status, number
    return (value if isinstance(value, (dict, list)) else None), status, number


def _answer(document: Any, status: int | None) -> Fault | None:
    """Return the fault of a quoted answer: by its status, else by a code word that decides."""
    from amends.carriers import http
    from amends.vendors.reading import read, read_bare
    from amends.vendors.successes import read_success

    members = document if isinstance(document, dict) else {}
    for name in _STATUSES:
        stated = integer(members.get(name))
        if status is None and stated is not None and _FIRST <= stated <= _LAST:
            status = stated
    bodies = [body for name in _BODIES if isinstance(body := members.get(name), (dict, list)) and body]
    if status is not None:
        headers = as_dict(members.get("headers")) or {}
        body = bodies[0] if bodies and any(name in members for name in _STATUSES) else document
        return http.read({"status": status, "headers": headers, "body": body}).fault
    for body in (document, *bodies):
        found = read_bare(body) or read_success({}, body) or read(_SUCCESS, {}, body)
        if found is not None and (found.details or found.retry_after is not None or found.field):
            return found
    return None


_SUCCESS = 200
