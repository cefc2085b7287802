"""
The answer of an API that a failed tool, task or call quotes: JSON in `structuredContent`, in a data part or in the `data` of a
JSON-RPC error, or as the whole of a text.

Servers turn an exception into a text. The SDKs put a frame of their own before it (`Error executing tool X: `, `MCP error -N: `,
`Error code: 402 - `), which is removed; a number in it counts. Other prose before or after JSON is not read, and a result that is no
failure never is. What is read says what to do, and nothing about the effect of the call: the tool may have done something
before it called the API.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import partial
from http import HTTPStatus
from typing import Any

from msgspec.structs import replace

from amends.carriers.detection import text_items
from amends.core.enums import Executed, Recovery
from amends.core.fault import Fault, Origin
from amends.core.meanings import INVALID, RATE, Meaning, fault_of
from amends.core.wire import Unreadable, as_dict
from amends.core.wire import read as read_json
from amends.dialects.members import integer, mapping, text

__all__ = ["fault_in_data", "fault_in_task", "quoted_fault"]

_FRAME = re.compile(r"(?:Error executing tool [\w.\-/]{1,128}|MCP error (-?[0-9]{1,6})|Error code): ")
_STATUS = re.compile(r"([45][0-9][0-9]) - ")
_MAX_FRAMES = 3
_MAX_TEXTS = 16
_MAX_TEXT = 65536
_STATUSES = ("status", "status_code", "statusCode", "http_status", "httpStatus")
_BODIES = ("body", "error_response", "response", "result", "data", "output")
_FIRST, _LAST = 400, 599


def quoted_fault(
    result: dict[str, Any], numbers: dict[int, Meaning], vendor: str | None = None
) -> Fault | None:
    """
    Return the fault of the answer that a result with `isError` quotes, or None.

    Args:
        result: a plain result of a tool.
        numbers: the meanings of the numbers of JSON-RPC and MCP, which a frame may have.
        vendor: the service that the server's tools call, if known.

    >>> said = 'Error executing tool pay: {"error": {"code": "insufficient_quota"}}'
    >>> quoted_fault({"isError": True, "content": [{"type": "text", "text": said}]}, {}).code
    'QUOTA_EXCEEDED'
    >>> prose = 'It failed: {"error": {"code": "insufficient_quota"}}'
    >>> quoted_fault({"isError": True, "content": [{"type": "text", "text": prose}]}, {}) is None
    True

    """
    if result.get("isError") is not True:
        return None
    structured = as_dict(result.get("structuredContent"))
    return _first(structured, text_items(result.get("content")), numbers, vendor, "mcp")


def fault_in_task(task: dict[str, Any], vendor: str | None = None) -> Fault | None:
    """
    Return the fault of the answer that a failed task of A2A quotes in its status message, else in a data part of an artifact.

    >>> data = {"kind": "data", "data": {"error": {"code": "insufficient_quota"}}}
    >>> fault_in_task({"status": {"state": "failed", "message": {"parts": [data]}}}).code
    'QUOTA_EXCEEDED'

    """
    message = mapping((mapping(task.get("status")) or {}).get("message")) or {}
    found = _in_parts(message.get("parts"), vendor, texts=True)
    artifacts = task.get("artifacts")
    for artifact in artifacts[:_MAX_TEXTS] if found is None and isinstance(artifacts, list) else ():
        found = found or _in_parts((mapping(artifact) or {}).get("parts"), vendor, texts=False)
    return found


def _in_parts(parts: Any, vendor: str | None, *, texts: bool) -> Fault | None:
    """Return the fault of the first part that quotes an answer."""
    for part in parts[:_MAX_TEXTS] if isinstance(parts, list) else ():
        if isinstance(part, dict):
            data = part.get("data")
            said = text(part.get("text")) if texts else None
            found = _first(data, () if said is None else (said,), {}, vendor, "a2a")
            if found is not None:
                return found
    return None


def fault_in_data(data: Any, vendor: str | None = None) -> Fault | None:
    """
    Return the fault of the answer in the `data` of a JSON-RPC error: an object, or a text that is JSON.

    >>> fault_in_data({"status": 429, "body": {"error": {"code": "too_many_requests"}}}).code
    'RATE_LIMITED'
    """
    said = (data,) if isinstance(data, str) else ()
    return _first(None if said else data, said, {}, vendor, "jsonrpc")


_PATHS = {"mcp": "content", "a2a": "status_message", "jsonrpc": "jsonrpc_error"}


def _first(
    document: Any, texts: Iterable[str], numbers: dict[int, Meaning], vendor: str | None, carrier: str
) -> Fault | None:
    """Return the fault of the first place that quotes an answer, else of the first number of a frame."""
    framed: Fault | None = None
    path = _PATHS[carrier]
    for found, status, number in _documents(document, texts):
        fault = None if found is None and status is None else _answer(found, status, vendor)
        if fault is not None:
            dialect = fault.origin.dialect if fault.origin is not None else "vendor"
            return replace(fault, executed=Executed.MAYBE, origin=Origin(dialect, path))
        meaning = None if number is None else numbers.get(number)
        if meaning is not None and framed is None:
            framed = fault_of(meaning, details={"jsonrpc": number}, origin=Origin(carrier, path))
    return None if framed is None else replace(framed, executed=Executed.MAYBE)


def _documents(document: Any, texts: Iterable[str]) -> Iterator[tuple[Any, int | None, int | None]]:
    """Yield (document, status of a frame, number of a frame) of the places."""
    if isinstance(document, (dict, list)) and document:
        yield document, None, None
    for place, said in enumerate(texts):
        if place >= _MAX_TEXTS:
            return
        if len(said) <= _MAX_TEXT:
            yield _framed(said.strip())


def _framed(said: str) -> tuple[Any, int | None, int | None]:
    status: int | None = None
    number: int | None = None
    for _ in range(_MAX_FRAMES):
        frame = _FRAME.match(said)
        if frame is None:
            break
        rest = said[frame.end() :].lstrip()
        if frame[0].startswith("Error code"):
            code = _STATUS.match(rest)
            if code is None:
                break
            status, rest = int(code[1]), rest[code.end() :].lstrip()
        elif frame[1] is not None:
            number = int(frame[1])
        said = rest
    if said[:1] == "<":
        from amends.vendors.markup import is_error_document

        return (said if is_error_document(said) else None), status, number
    if said[:1] not in {"{", "["}:
        return None, status, number
    try:
        value = read_json(said)
    except Unreadable:
        return None, status, number
    return (value if isinstance(value, (dict, list)) else None), status, number


def _answer(document: Any, status: int | None, vendor: str | None) -> Fault | None:
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
        return http.read({"status": status, "headers": headers, "body": body}, vendor=vendor).fault
    stated = next((each for body in (document, *bodies) if (each := _by_phrase(body)) is not None), None)
    undecided: Fault | None = None
    for body in (document, *bodies):
        for reader in (read_bare, partial(read_success, {}), partial(read, _SUCCESS, {})):
            found = reader(body, vendor=vendor)
            if found is None:
                continue
            if found.code != _UNKNOWN or found.recovery is not Recovery.UNCERTAIN:
                return found
            undecided = undecided or found
    if stated is not None:
        return http.read({"status": stated, "headers": {}, "body": document}, vendor=vendor).fault
    if undecided is None:
        return next(filter(None, map(_by_field, (document, *bodies))), None)
    if (word := (undecided.details or {}).get("code")) is not None and (
        named := _status_named(word)
    ) is not None:
        return http.read({"status": named, "headers": {}, "body": document}, vendor=vendor).fault
    if undecided.retry_after is not None:
        # The sender says when to call again.
        rate = fault_of(RATE, retry_after=undecided.retry_after, details=undecided.details)
        return replace(rate, message=undecided.message, trace_id=undecided.trace_id, origin=undecided.origin)
    if undecided.field is not None and not _names_a_server(undecided):
        # What is wrong is in the request.
        more = {"field": undecided.field, "details": undecided.details, "trace_id": undecided.trace_id}
        return replace(fault_of(INVALID, origin=undecided.origin, **more), message=undecided.message)
    return undecided if undecided.details else None


def _by_field(body: Any) -> Fault | None:
    """Return the fault of a document that says nothing but what is wrong with a field of the request."""
    from amends.vendors.reading import beside

    one = body[0] if isinstance(body, list) and body else body
    said = beside(one, {}) if isinstance(one, dict) else None
    if said is None or said.field is None:
        return None
    word = next(iter(said.words()), None)
    fault = fault_of(INVALID, field=said.field, trace_id=said.trace_id, origin=Origin("vendor", "body"))
    fault = replace(
        fault, message=said.message or fault.message, details=None if word is None else {"code": word}
    )
    return None if _names_a_server(fault) else fault


_UNKNOWN = "INTERNAL_ERROR"
_STATUS_NAMES = {
    re.sub("[^a-z]", "", each.phrase.lower()): each.value for each in HTTPStatus if each.value >= _FIRST
}


def _status_named(word: object) -> int | None:
    """Return the status whose registered phrase a code word is: NOT_IMPLEMENTED."""
    return _STATUS_NAMES.get(re.sub("[-_]", "", word.lower())) if isinstance(word, str) else None


def _names_a_server(fault: Fault) -> bool:
    """Whether the code word blames the server."""
    word = str((fault.details or {}).get("code", "")).lower()
    return "server" in word or "internal" in word


_PHRASES = {each.phrase.lower(): each.value for each in HTTPStatus if each.value >= _FIRST}
_PHRASES |= {
    "unauthenticated": 401,
    "invalid argument": 400,
    "permission denied": 403,
    "already exists": 409,
    "resource exhausted": 429,
    "deadline exceeded": 504,
    "unavailable": 503,
}
"""The names of gRPC's codes, which titles have in words."""
_NAMING = ("error", "title", "reason", "statusText", "status", "message", "detail", "code", "name", "type")


def _by_phrase(body: Any) -> int | None:
    """Return the status whose registered phrase a member is, as a whole: `{"message": "Too Many Requests"}`."""
    for name in _NAMING if isinstance(body, dict) else ():
        said = body.get(name)
        if isinstance(said, str) and (found := _PHRASES.get(said.lower())) is not None:
            return found
    return None


_SUCCESS = 200
