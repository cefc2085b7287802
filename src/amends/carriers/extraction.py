"""
Read any response into one Fault.

With `via` the carrier is known; without it the shape decides, in the order of SHAPES. Bytes and strings are parsed as
JSON documents; objects of common libraries are recognised by their attributes. Nothing here raises on data.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import time
from typing import Any

from amends.carriers import a2a, arcp, detection, http, jsonrpc, mcp, process, task
from amends.carriers.layers import KEY, document_error
from amends.carriers.native import read as read_native
from amends.carriers.objects import read_object
from amends.carriers.reading import FAILED, NOT_FAILED, Reading
from amends.core.fault import Fault
from amends.core.wire import TOO_DEEP, Unreadable, plain, read
from amends.dialects import adcp, members, problem
from amends.dialects.adcp_document import has_error, listed

__all__ = ["VIAS", "examine", "examine_read", "extract"]


def extract(response: Any, via: str | None = None, *, native: bool = False) -> Fault | None:
    """
    Return the structured error in a response, or None.

    Args:
        response: a mapping, JSON as bytes or str, or an object of a common library (an httpx or requests response,
            an MCP CallToolResult or MCPError, an A2A task, a CompletedProcess).
        via: mcp, a2a, jsonrpc, adcp, http, problem, cli, task or arcp; None: the shape decides.
        native: also read MCP and A2A failures that carry no AdCP error. Without it they give None, as AdCP demands.

    Raises:
        LookupError: for an unknown `via`. Never for what the response holds.

    >>> extract({"status": 429, "headers": {"Retry-After": "7"}}, via="http").retry_after
    7.0
    >>> extract({"isError": True, "content": [{"type": "text", "text": "Disk full"}]}, native=True).message
    'Disk full'

    """
    return examine(response, via, native=native)[1].fault


def examine(response: Any, via: str | None = None, *, native: bool = False) -> tuple[str | None, Reading]:
    """Return the `via` that a response was read by (None if its shape is unknown) and the whole reading."""
    if not native:
        return _examine(response, via)
    if not isinstance(response, dict | bytes | str | bytearray | memoryview):
        seen_via, response = read_object(response)
        via = via or seen_via
    found, reading = _examine(response, via)
    if found not in _NATIVE or (reading.fault is not None and found != "http"):
        return found, reading
    if isinstance(response, bytes | str | bytearray | memoryview):
        try:
            response = read(response)
        except Unreadable:
            return found, reading
    return found, read_native(response, found) or reading


def _examine(response: Any, via: str | None) -> tuple[str | None, Reading]:
    if via is not None and via not in VIAS:
        raise LookupError(f"no via {via!r}; there are {', '.join(VIAS)}")
    if not isinstance(response, dict):
        if isinstance(response, (bytes, str, bytearray, memoryview)):
            try:
                value = read(response)
            except Unreadable:
                return via, NOT_FAILED
            return _read(value, via, len(response) if isinstance(response, bytes) else None)
        seen_via, response = read_object(response)
        via = via or seen_via
    if via == "mcp":
        # The carrier makes plain only what it looks at. With the whole result converted first, extraction takes 0.52 of
        # adcp's time instead of 0.32 (bench/extraction.py; the target is 0.35).
        return via, mcp.read(response)
    return _read(plain(response), via)


def examine_read(value: Any, via: str | None = None, within: int | None = None) -> tuple[str | None, Reading]:
    """
    Do the same for a value that `wire.read` returned. It is plain and bounded, and a string in it is not parsed again.

    `within` is the size of the document in bytes, if known.
    """
    return _read(value, via, within) if isinstance(value, dict) else (via, NOT_FAILED)


def _read(value: Any, via: str | None, within: int | None = None) -> tuple[str | None, Reading]:
    """Read a plain value."""
    if value is None or value is TOO_DEEP:
        return via, NOT_FAILED
    if via is None:
        via = _shape(value)
        if via is None:
            return None, NOT_FAILED
        if via in _DETECTED:
            # The document may have places of the others too.
            reading = detection.read(value, within=within)
            return _VIA_OF.get(reading.path or "", via), reading
    if via == "mcp":
        return via, mcp.read(value, within)
    return via, VIAS[via](value)


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
}


def _is_arcp(value: dict[str, Any]) -> bool:
    return "arcp" in value or members.text(value.get("type")) in arcp.TYPES


def _is_mcp(value: dict[str, Any]) -> bool:
    return isinstance(value.get("content"), list) or "isError" in value or "structuredContent" in value


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
    return "exit" in value or "timed_out" in value or ("stdout" in value and "stderr" in value)


def _is_adcp(value: dict[str, Any]) -> bool:
    """Whether this is a document that contains an AdCP error, and not an error itself."""
    return members.truthy(value.get(KEY)) or ("code" not in value and has_error(value))


def _is_adcp_document(value: dict[str, Any]) -> bool:
    """Exclude problems, envelopes and task responses, which may have a list of errors too."""
    if members.truthy(value.get(KEY)):
        return True
    if not value.keys().isdisjoint(_OTHER_KEYS) or not isinstance(value.get("status", ""), str):
        return False
    first = (listed(value) or [None])[0]
    return isinstance(first, dict) and isinstance(first.get("code"), str)


def _is_task(value: dict[str, Any]) -> bool:
    return members.text(value["status"]) in task.STATUSES


def _is_envelope(value: dict[str, Any]) -> bool:
    return isinstance(value["ok"], bool)


def _is_problem(value: dict[str, Any]) -> bool:
    """Exclude bare errors with a type or an instance: those have a `code` and a `message`, and no member of a problem."""
    if "message" in value and "code" in value:
        return "is_retriable" in value or "detail" in value
    return True


def _has_code(value: dict[str, Any]) -> bool:
    return "code" in value


_PROBLEM_KEYS = frozenset({"type", "title", "detail", "is_retriable", "retry_after_ms", "doc_uri"})

_OTHER_KEYS = _PROBLEM_KEYS | {"code", "error", "ok"}

# In the order of design section 9. An object has a shape if it has one of the keys and passes the test, which only has
# to distinguish the shape from later ones.
SHAPES: tuple[tuple[str, frozenset[str], Callable[[dict[str, Any]], bool]], ...] = (
    ("jsonrpc", frozenset({"jsonrpc", "error"}), jsonrpc.is_response),
    ("arcp", frozenset({"arcp", "payload"}), _is_arcp),
    ("mcp", frozenset({"content", "isError", "structuredContent"}), _is_mcp),
    ("a2a", frozenset({"status", "artifacts", "artifact", *a2a.WRAPPERS}), _is_a2a),
    ("http", frozenset({"headers", "body"}), _is_http),
    ("cli", frozenset({"exit", "timed_out", "stdout"}), _is_process),
    ("adcp", frozenset({KEY, "errors", "payload"}), _is_adcp_document),
    ("task", frozenset({"status"}), _is_task),
    ("cli", frozenset({"ok"}), _is_envelope),
    ("problem", _PROBLEM_KEYS, _is_problem),
    ("task", frozenset({"recoverable"}), _has_code),
    ("arcp", frozenset({"retryable"}), _has_code),
    ("adcp", frozenset({"code"}), _has_code),
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
