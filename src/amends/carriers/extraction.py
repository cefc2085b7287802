"""
Read any response into one Fault.

With `via` the carrier is known; without it the shape decides, in the order of SHAPES. Bytes and strings are parsed as
JSON documents; objects of common libraries are recognised by their attributes. Nothing here raises on data.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import time
from typing import Any

from msgspec.structs import replace

from amends.carriers import a2a, arcp, detection, http, jsonrpc, mcp, process, task
from amends.carriers.headers import wait as header_wait
from amends.carriers.mcp_task import is_task as is_mcp_task
from amends.carriers.native import read as read_native
from amends.carriers.objects import read_object
from amends.core.enums import Executed, Recovery
from amends.core.fault import Fault
from amends.core.reading import FAILED, NOT_FAILED, Reading
from amends.core.validate import shown
from amends.core.vocabularies.adcp import is_standard_code, is_vendor_code
from amends.core.vocabulary import EVERYDAY, vocabulary
from amends.core.wire import DOCUMENTS, MAX_BYTES, TOO_DEEP, Unreadable, plain, read
from amends.core.wrong_calls import explains_wrong_calls
from amends.dialects import adcp, members, problem
from amends.dialects.adcp import KEY
from amends.dialects.adcp_document import document_error, has_error, listed, webhook_error
from amends.dialects.adcp_object import MEMBERS

__all__ = ["VIAS", "examine", "examine_read", "extract"]


@explains_wrong_calls
def extract(
    response: Any,
    via: str | None = None,
    *,
    vendor: str | None = None,
    native: bool = True,
    in_success: bool = False,
    own: bool = False,
) -> Fault | None:
    """
    Return the structured error in a response, or None.

    Args:
        response: a mapping, JSON as bytes or str, or an object of a common library (an httpx or requests response,
            an MCP CallToolResult or MCPError, an A2A task, a CompletedProcess).
        via: mcp, a2a, jsonrpc, adcp, http, problem, cli, task, arcp or websocket; None: the shape decides.
        native: also read MCP and A2A failures that carry no AdCP error. False: AdCP's own reading, which gives None for them.
        vendor: the service that was called, by a name of `amends.vendors.NAMES`. Its words then say whether the call had
            its effect; None: headers and the shape of the body decide what they mean, and the status about the effect.
        in_success: also look for a failure inside a successful answer, in shapes that a vendor documents.
        own: the service is part of your own system: what it states about the effect counts under any HTTP status.

    Raises:
        LookupError: for an unknown `via` or `vendor`. Never for what the response holds.

    >>> extract({"status": 429, "headers": {"Retry-After": "7"}}, via="http").retry_after
    7.0
    >>> extract({"isError": True, "content": [{"type": "text", "text": "Disk full"}]}).message
    'Disk full'
    >>> extract({"close_code": 4008, "reason": "Rate limited."}, vendor="discord").code
    'RATE_LIMITED'

    """
    return examine(response, via, vendor=vendor, native=native, in_success=in_success, own=own)[1].fault


def examine(
    response: Any,
    via: str | None = None,
    *,
    vendor: str | None = None,
    native: bool = False,
    in_success: bool = False,
    own: bool = False,
) -> tuple[str | None, Reading]:
    """Return the `via` that a response was read by (None if its shape is unknown) and the whole reading."""
    if type(response) in _ARRAYS:
        response = plain(response)
    if not native:
        return _examine(response, via, vendor, in_success, own)
    if not isinstance(response, (dict, list, *DOCUMENTS)):
        seen_via, response = read_object(response)
        via = via or seen_via
    found, reading = _examine(response, via, vendor, in_success, own)
    if found not in _NATIVE or (reading.fault is not None and found != "http"):
        return found, reading
    if not reading.failed and found != "a2a":
        # Only a task of A2A can need something without having failed: a sign-in.
        return found, reading
    if isinstance(response, DOCUMENTS):
        try:
            response = read(response)
        except Unreadable:
            return found, reading
    if isinstance(response, list) and (responses := _batch(plain(response), via)):
        return found, _joined([examine(each, via, vendor=vendor, native=True)[1] for each in responses])
    # A2A 1.0 over REST sends the same error objects as Google's services.
    also = (
        "a2a"
        if via is None and found == "http" and isinstance(response, dict) and "status" not in response
        else found
    )
    return found, read_native(response, also, vendor) or reading


def _examine(
    response: Any, via: str | None, vendor: str | None, in_success: bool, own: bool
) -> tuple[str | None, Reading]:
    name: object = via
    if name is not None and (not isinstance(name, str) or name not in VIAS):
        raise LookupError(f"no via {shown(via)}; there are {', '.join(VIAS)}")
    if vendor is not None or in_success or own:
        return _examine_vendor(response, via, vendor, in_success, own)
    if not isinstance(response, dict):
        if isinstance(response, DOCUMENTS):
            try:
                value = read(response)
            except Unreadable:
                return _text(response, via)
            return _read(value, via, len(response) if isinstance(response, bytes) else None)
        if isinstance(response, list):
            return _read(response, via)
        seen_via, response = read_object(response)
        via = via or seen_via
    if via == "mcp":
        # The carrier makes plain only what it looks at. With the whole result converted first, extraction takes 0.52 of
        # adcp's time instead of 0.32 (bench/extraction.py; the target is 0.35).
        return via, detection.read(response, tasks=False)
    if via in {None, "http"} and (ready := _plain_response(response)) is not None:
        return "http", http.read(ready, now=time)
    return _read(plain(response), via)


def _plain_response(response: Any) -> dict[str, Any] | None:
    """
    Return a response of status, headers and body with a plain body, or None for a value that has to be copied whole.

    Without this, a body of 500 bytes takes 17.6 instead of 14 µs (bench/extraction.py; the target is 15). The reader of
    headers takes any values.
    """
    # Exact types: an instance of a subclass has to be copied.
    if type(response) is not dict or len(response) != 3 or type(response.get("status")) is not int:
        return None
    if type(response.get("headers")) is not dict or "body" not in response:
        return None
    body = response["body"]
    return response if type(body) in _TEXTS else {**response, "body": plain(body)}


_TEXTS = frozenset({str, bytes})


def examine_read(value: Any, via: str | None = None, within: int | None = None) -> tuple[str | None, Reading]:
    """
    Do the same for a value that `wire.read` returned. It is plain and bounded, and a string in it is not parsed again.

    `within` is the size of the document in bytes, if known.
    """
    return _read(value, via, within) if isinstance(value, dict) else (via, NOT_FAILED)


def _examine_vendor(
    response: Any, via: str | None, vendor: str | None, in_success: bool, own: bool
) -> tuple[str | None, Reading]:
    """Examine a response of a known vendor or of the user's own system, or a successful one."""
    if vendor is not None:
        from amends.vendors.registry import check

        vendor = check(vendor)
    if isinstance(response, DOCUMENTS):
        try:
            value = read(response)
        except Unreadable:
            return _text(response, via, vendor)
    elif isinstance(response, dict):
        if via in {None, "http"} and (ready := _plain_response(response)) is not None:
            return "http", http.read(ready, now=time, vendor=vendor, in_success=in_success, own=own)
        value = plain(response)
    else:
        seen_via, value = read_object(response)
        via, value = via or seen_via, plain(value)
    if value is None or value is TOO_DEEP:
        return via, NOT_FAILED
    shape = via or _shape(value)
    if shape == "websocket":
        return shape, _websocket(value, vendor)
    if shape == "http":
        return shape, http.read(value, now=time, vendor=vendor, in_success=in_success, own=own)
    if via is None and (vendor is not None or in_success):
        found = _bare_vendor(value, vendor)
        if found is not None:
            return "http", found
        if in_success:
            return "http", http.read({"status": 200, "body": value}, now=time, vendor=vendor, in_success=True)
    return _read(value, via)


def _text(data: Any, via: str | None, vendor: str | None = None) -> tuple[str | None, Reading]:
    """Read a text that is no JSON document: an event stream or an XML error of a vendor."""
    data = str.__str__(data) if isinstance(data, str) else bytes(data)
    if via not in {None, "http"} or len(data) > MAX_BYTES:
        return via, NOT_FAILED
    if not any(mark in data[:4096] for mark in (_MARKS if isinstance(data, str) else _BYTE_MARKS)):
        return via, NOT_FAILED
    from amends.vendors.streams import read_text

    fault = read_text(data, vendor=vendor, now=time)
    if fault is None:
        return via, NOT_FAILED
    path = "body" if fault.origin is None else fault.origin.path
    return "http", Reading(failed=True, fatal=True, path=path, fault=fault)


_MARKS = ("data:", "event:", "{", "<Error")
_BYTE_MARKS = tuple(mark.encode() for mark in (*_MARKS, ":exception-type"))


def _bare_vendor(value: Any, vendor: str | None = None) -> Reading | None:
    """Read a document without a status in a vendor's format."""
    from amends.vendors.reading import read_bare

    def quoted(inner: Mapping[str, str]) -> float | None:
        return header_wait(inner, time)

    fault = read_bare(value, vendor=vendor, now=time, quoted=quoted)
    return None if fault is None else Reading(failed=True, fatal=True, path="body", error=value, fault=fault)


def _read(value: Any, via: str | None, within: int | None = None) -> tuple[str | None, Reading]:
    """Read a plain value."""
    if isinstance(value, list) and (responses := _batch(value, via)):
        return "jsonrpc" if via is None else via, _joined([_read(each, via)[1] for each in responses])
    if via == "mcp":
        return via, detection.read(value, tasks=False, within=within)
    if value is None or value is TOO_DEEP:
        return via, NOT_FAILED
    if via is None:
        via = _shape(value)
        certain = via in _SURE or (via == "jsonrpc" and "jsonrpc" in value) or _is_plainly_adcp(value, via)
        # Several vendors use members of our formats with another meaning.
        found = None if certain else _bare_vendor(value)
        if found is not None and (via is None or _sender(found) != "vendor" or via == "jsonrpc"):
            return "http", found
        if via is None:
            return None, NOT_FAILED
        if via in _DETECTED:
            # The document may have places of the others too.
            reading = detection.read(value, within=within)
            return _VIA_OF.get(reading.path or "", via), reading
    return via, VIAS[via](value)


_MOST_RESPONSES = 1000


def _batch(value: list[Any], via: str | None) -> list[dict[str, Any]]:
    """Return the responses of a JSON-RPC batch; none for another list."""
    if via not in _BATCHED or not value:
        return []
    responses = [each for each in value if isinstance(each, dict) and "jsonrpc" in each]
    return responses[:_MOST_RESPONSES] if len(responses) == len(value) else []


_ARRAYS = (list, tuple)
_BATCHED = frozenset({None, "jsonrpc", "mcp", "a2a"})


def _joined(readings: list[Reading]) -> Reading:
    """
    Return one reading for the responses of a batch, whose parts decide one by one.

    As with a multi-status response, a batch with a success is not a failure as a whole, and is never sent again whole.
    """
    failed = [reading for reading in readings if reading.failed]
    if len(readings) == 1 or not failed:
        return readings[0]
    faults = tuple(reading.fault for reading in failed if reading.fault is not None)
    if not faults:
        return failed[0]
    fatal = len(failed) == len(readings)
    recoveries = {fault.recovery for fault in faults}
    recovery = faults[0].recovery if len(recoveries) == 1 else Recovery.CORRECTABLE
    if Recovery.TERMINAL in recoveries:
        recovery = Recovery.TERMINAL
    effects = {fault.executed for fault in faults}
    executed = Executed.NO if effects == {Executed.NO} and len(faults) == len(failed) else Executed.MAYBE
    if not fatal or Executed.YES in effects:
        executed = Executed.YES
    named = next((fault for fault in faults if fault.recovery is recovery), faults[0])
    waits = [fault.retry_after for fault in faults if fault.retry_after is not None]
    joined = replace(
        named,
        recovery=recovery,
        executed=executed,
        retry_after=max(waits, default=None),
        errors=faults,
        fatal=fatal,
    )
    return Reading(fatal, joined, failed[0].path, failed[0].error, fatal)


# Shapes that no vendor's bare error has.
_SURE = frozenset({"arcp", "mcp", "a2a", "http", "task", "websocket"})


def _sender(reading: Reading) -> str:
    origin = None if reading.fault is None else reading.fault.origin
    return "vendor" if origin is None else origin.dialect


def _adcp(error: Any) -> Reading:
    if isinstance(error, dict) and _is_adcp(error):
        return document_error(error)
    found = adcp.plain_error(error)
    if found is None:
        return FAILED
    return Reading(failed=True, fatal=True, error=found, fault=adcp.fault_of(found, adcp.BARE))


def _http(response: Any) -> Reading:
    return http.read(response, now=time)


def _problem(document: Any) -> Reading:
    fault = problem.fault_of(document) if isinstance(document, dict) else None
    if fault is None:
        return FAILED
    return Reading(failed=fault.fatal, fatal=fault.fatal, path="body", error=document, fault=fault)


def _cli(value: Any) -> Reading:
    if isinstance(value, dict) and not _is_process(value):
        return process.read_envelope(value)
    return process.read(value)


def _task(value: Any) -> Reading:
    if isinstance(value, dict) and "code" in value and "status" not in value:
        return task.read_error(value)
    return task.read(value)


def _arcp(value: Any) -> Reading:
    if isinstance(value, dict) and "code" in value and "payload" not in value:
        return arcp.read_error(value)
    return arcp.read(value)


def _websocket(value: Any, vendor: str | None = None) -> Reading:
    """Read a closed WebSocket: {"close_code": 4004, "reason": "…"}."""
    from amends.vendors.closes import read_close

    code = members.integer(value.get("close_code")) if isinstance(value, dict) else None
    if code is None:
        return NOT_FAILED
    fault = read_close(code, members.text(value.get("reason")) or "", vendor)
    return NOT_FAILED if fault is None else Reading(failed=True, fatal=True, path="close", fault=fault)


VIAS: Mapping[str, Callable[[Any], Reading]] = {
    "mcp": mcp.read,
    "a2a": a2a.read,
    "jsonrpc": jsonrpc.read,
    "adcp": _adcp,
    "http": _http,
    "problem": _problem,
    "cli": _cli,
    "task": _task,
    "arcp": _arcp,
    "websocket": _websocket,
}


def _is_arcp(value: dict[str, Any]) -> bool:
    return "arcp" in value or members.text(value.get("type")) in arcp.TYPES


def _is_mcp(value: dict[str, Any]) -> bool:
    if isinstance(value.get("content"), list) or "isError" in value or "structuredContent" in value:
        return True
    # The response to a request that makes a task has it inside.
    inner = value.get("task")
    return is_mcp_task(value) or (isinstance(inner, dict) and is_mcp_task(inner))


def _is_a2a(value: dict[str, Any]) -> bool:
    if _has_state(value) or isinstance(value.get("artifacts"), list) or a2a.task_in(value) is not value:
        return True
    # An event of a 0.3 stream has one artifact.
    artifact = value.get("artifact")
    return isinstance(artifact, dict) and isinstance(artifact.get("parts"), list)


def _has_state(value: dict[str, Any]) -> bool:
    status = value.get("status")
    return isinstance(status, dict) and "state" in status


def _is_http(value: dict[str, Any]) -> bool:
    status = value.get("status")
    return isinstance(status, int) and not isinstance(status, bool)


def _is_process(value: dict[str, Any]) -> bool:
    # `timed_out` alone is a member of search results.
    return "exit" in value or ("stdout" in value and ("stderr" in value or "timed_out" in value))


def _is_adcp(value: dict[str, Any]) -> bool:
    """Whether this is a document that contains an AdCP error, and not an error itself."""
    return members.truthy(value.get(KEY)) or ("code" not in value and has_error(value))


def _is_adcp_document(value: dict[str, Any]) -> bool:
    """Exclude problems, envelopes and task responses, which may have a list of errors too."""
    if members.truthy(value.get(KEY)) or _is_webhook(value):
        return True
    if not value.keys().isdisjoint(_OTHER_KEYS) or not isinstance(value.get("status", ""), str):
        return False
    first = (listed(value) or [None])[0]
    if not isinstance(first, dict) or not isinstance(first.get("code"), str):
        return False
    if "payload" in value and "status" in value:
        return True
    # The results of a linter are a list of errors with codes, too.
    code = first["code"]
    return "recovery" in first or "retry_after" in first or is_standard_code(code) or is_vendor_code(code)


def _is_webhook(value: dict[str, Any]) -> bool:
    """Whether this is a webhook of AdCP with an error: those of other services have a status and a result, too."""
    result = value.get("result")
    if not isinstance(result, dict) or webhook_error(value) is None:
        return False
    return members.truthy(result.get(KEY)) or ("task_id" in value and "error" not in value)


def _is_plainly_adcp(value: Any, via: str | None) -> bool:
    """Whether there is an `adcp_error`, or errors with AdCP's `recovery` or a published code and only members of AdCP."""
    if via != "adcp" or "code" in value:
        return False
    if members.truthy(value.get(KEY)) or _is_webhook(value):
        return True
    first = (listed(value) or [{}])[0]
    if first.get("recovery") in _RECOVERIES:
        return True
    return is_standard_code(first.get("code", "")) and MEMBERS.issuperset(first)


_RECOVERIES = ("transient", "correctable", "terminal")


def _is_task(value: dict[str, Any]) -> bool:
    """
    Return whether an object is a task response. Jobs of other services have a status and an error, too.

    Beside members that a task response does not have, the error has to be one of the agent error contract.
    """
    if members.text(value["status"]) not in task.STATUSES:
        return False
    error = value.get("error")
    if _TASK.issuperset(value) or not isinstance(error, dict):
        return True
    return "recoverable" in error or members.text(error.get("code")) in vocabulary("task").rows


_TASK = frozenset({"id", "status", "error", "metadata", "result"})


def _is_envelope(value: dict[str, Any]) -> bool:
    return isinstance(value["ok"], bool)


def _is_problem(value: dict[str, Any]) -> bool:
    """
    Return whether an object is a problem. One member of the same name is not enough: books have a title, too.

    Bare errors with a type or an instance have a `code` and a `message`, and no member of a problem.
    """
    if "message" in value and "code" in value:
        return "is_retriable" in value or "detail" in value
    if isinstance(value.get("is_retriable"), bool) or "retry_after_ms" in value:
        return True
    status, uri = value.get("status"), value.get("type")
    if isinstance(status, str) or (isinstance(status, int) and not 100 <= status <= 599):
        # The state of a resource: an article is published, a ticket has the state 2.
        return False
    if isinstance(status, int) and not isinstance(status, bool) and (status == 207 or 400 <= status <= 599):
        return True
    if isinstance(uri, str) and (uri.startswith(("about:", "urn:", "/")) or "://" in uri):
        return not _PROBLEM_TEXT.isdisjoint(value)
    return (
        isinstance(value.get("title"), str)
        and isinstance(value.get("detail"), str)
        and _BARE_PROBLEM.issuperset(value)
    )


_BARE_PROBLEM = frozenset(
    {"type", "title", "status", "detail", "instance", "code", "errors", "trace_id", "doc_uri"}
)
_PROBLEM_TEXT = frozenset({"title", "detail", "status", "instance", "suggestions", "doc_uri"})


def _is_close(value: dict[str, Any]) -> bool:
    return members.integer(value["close_code"]) is not None and value.keys() <= _CLOSE


_CLOSE = frozenset({"close_code", "reason", "was_clean"})


def _has_code(value: dict[str, Any]) -> bool:
    return "code" in value


def _is_bare_error(value: dict[str, Any]) -> bool:
    """Return whether an object with a code is an error: countries and vouchers have codes, too."""
    code = value["code"]
    if "recovery" in value or "retry_after" in value:
        return True
    if not isinstance(code, str) or not _ERROR_TEXT.issuperset(value):
        return False
    if "message" not in value:
        return False
    return is_standard_code(code) or is_vendor_code(code) or code in vocabulary(EVERYDAY).rows


_ERROR_TEXT = frozenset({"code", "message", "field", "suggestion", "details", "type", "issues", "instance"})


_PROBLEM_KEYS = frozenset({"type", "title", "detail", "is_retriable", "retry_after_ms", "doc_uri"})

_OTHER_KEYS = _PROBLEM_KEYS | {"code", "error", "ok"}

# In the order of design section 9. An object has a shape if it has one of the keys and passes the test, which only has
# to distinguish the shape from later ones.
SHAPES: tuple[tuple[str, frozenset[str], Callable[[dict[str, Any]], bool]], ...] = (
    ("jsonrpc", frozenset({"jsonrpc", "error"}), jsonrpc.is_response),
    ("arcp", frozenset({"arcp", "payload"}), _is_arcp),
    ("mcp", frozenset({"content", "isError", "structuredContent", "taskId", "task"}), _is_mcp),
    ("a2a", frozenset({"status", "artifacts", "artifact", *a2a.WRAPPERS}), _is_a2a),
    ("http", frozenset({"headers", "body"}), _is_http),
    ("websocket", frozenset({"close_code"}), _is_close),
    ("cli", frozenset({"exit", "timed_out", "stdout"}), _is_process),
    ("adcp", frozenset({KEY, "errors", "payload", "result"}), _is_adcp_document),
    ("task", frozenset({"status"}), _is_task),
    ("cli", frozenset({"ok"}), _is_envelope),
    ("problem", _PROBLEM_KEYS, _is_problem),
    ("task", frozenset({"recoverable"}), _has_code),
    ("arcp", frozenset({"retryable"}), _has_code),
    ("adcp", frozenset({"code"}), _is_bare_error),
)


# The carriers that AdCP's detection order covers, and the one that each of its paths belongs to.
_DETECTED = frozenset({"jsonrpc", "mcp", "a2a"})
_VIA_OF = {
    "structuredContent": "mcp",
    "artifact": "a2a",
    "status_message": "a2a",
    "jsonrpc_error": "jsonrpc",
    "text_fallback": "mcp",
}


_NATIVE = _DETECTED | {"http"}


def _shape(value: Any) -> str | None:
    """Return the first shape of a value; for a JSON-RPC response with a result, that of its result."""
    if not isinstance(value, dict):
        return None
    for via, keys, has_shape in SHAPES:
        if value.keys().isdisjoint(keys) or not has_shape(value):
            continue
        if via == "jsonrpc" and value.get("error") is None and isinstance(value.get("result"), dict):
            # Looked into once: no protocol puts a response into a result.
            result = value["result"]
            return "mcp" if _is_mcp(result) else "a2a" if _is_a2a(result) else via
        return via
    return None
