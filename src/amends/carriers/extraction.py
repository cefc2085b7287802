"""
From any response to one Fault.

With `via` the carrier is known; without it the shape decides, in the order of SHAPES. Plain values are read as they
are; bytes and strings are JSON documents; other objects are looked at by duck type. Nothing here raises on data.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import time
from typing import Any

from amends.carriers import a2a, arcp, http, jsonrpc, mcp, process, task
from amends.carriers.objects import plain
from amends.carriers.reading import FAILED, NOT_FAILED, Reading
from amends.core.fault import Fault
from amends.core.wire import TOO_DEEP, Unreadable, deep, read
from amends.dialects import adcp, problem

__all__ = ["VIAS", "examine", "examine_read", "extract"]


def extract(response: Any, via: str | None = None) -> Fault | None:
    """
    The structured error a response holds, or None.

    Args:
        response: a mapping, JSON as bytes or str, or an object of the usual libraries (an httpx or requests
            response, an MCP CallToolResult or MCPError, an A2A task, a CompletedProcess).
        via: mcp, a2a, jsonrpc, adcp, http, problem, cli, task or arcp; None: the shape decides.

    Raises:
        LookupError: for another `via`. Never for what the response holds.

    >>> extract({"status": 429, "headers": {"Retry-After": "7"}}, via="http").retry_after
    7.0

    """
    if response.__class__ is dict and (via is None or via in VIAS):
        return _read(response, via)[1].fault
    return examine(response, via)[1].fault


def examine(response: Any, via: str | None = None) -> tuple[str | None, Reading]:
    """The whole reading of a response, and the `via` it was read by (None where no shape was recognised)."""
    if via is not None and via not in VIAS:
        raise LookupError(f"no via {via!r}; there are {', '.join(VIAS)}")
    if response.__class__ is dict:
        return _read(response, via)
    within = len(response) if response.__class__ is bytes else None
    seen_via, value, bounded = _value(response)
    return (via, NOT_FAILED) if value is None else _read(value, via or seen_via, within, bounded)


def examine_read(value: Any, via: str | None = None, within: int | None = None) -> tuple[str | None, Reading]:
    """
    The same for a value that `wire.read` gave: it is bounded, and a string in it is not JSON once more.

    `within` is the size of the document in bytes, where that is known.
    """
    return _read(value, via, within, True) if value.__class__ is dict else (via, NOT_FAILED)


def _read(
    value: Any, via: str | None, within: int | None = None, bounded: bool = False
) -> tuple[str | None, Reading]:
    if via is None:
        via, value = _shape(value)
        if via is None:
            return None, NOT_FAILED
    if via == "mcp":
        # The one path hot enough to be told that its document is small.
        return via, mcp.read(value, within)
    if not bounded and via not in _MEASURED and deep(value):
        return via, NOT_FAILED
    return via, VIAS[via](value)


def _value(response: Any) -> tuple[str | None, Any, bool]:
    """(via, value, whether it is known to be bounded) of bytes, strings and foreign objects; value None: nothing."""
    if response.__class__ is bytes or isinstance(response, _TEXTS):
        try:
            value = read(response)
        except Unreadable:
            return None, None, True
        return None, None if value is TOO_DEEP else value, True
    if response is None or isinstance(response, (list, tuple, int, float)):
        return None, None, True
    return *plain(response), False


# S4's errors are measured where they are found, so their carriers take anything.
_MEASURED = frozenset({"mcp", "a2a", "jsonrpc", "adcp"})

_TEXTS = (bytes, str, bytearray, memoryview)


def _adcp(error: Any) -> Reading:
    fault = adcp.decode(error)
    return FAILED if fault is None else Reading(failed=True, fatal=True, error=error, fault=fault)


def _http(response: Any) -> Reading:
    return http.read(response, now=time)


def _problem(document: Any) -> Reading:
    fault = problem.fault_of(document) if document.__class__ is dict else None
    if fault is None:
        return FAILED
    # A batch that failed in part did not fail (M1).
    failed = fault.status != 207
    return Reading(failed=failed, fatal=failed, path="body", error=document, fault=fault)


def _cli(value: Any) -> Reading:
    if value.__class__ is dict and not _is_process(value):
        return process.read_envelope(value)
    return process.read(value)


def _task(value: Any) -> Reading:
    if value.__class__ is dict and "code" in value and "status" not in value:
        return task.read_error(value)
    return task.read(value)


def _arcp(value: Any) -> Reading:
    if value.__class__ is dict and "code" in value and "payload" not in value:
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
    kind = value.get("type")
    return kind.__class__ is str and kind in arcp.TYPES


def _is_mcp(value: dict[str, Any]) -> bool:
    return value.get("content").__class__ is list or "isError" in value or "structuredContent" in value


def _is_a2a(value: dict[str, Any]) -> bool:
    if _has_state(value) or value.get("artifacts").__class__ is list or a2a.task_in(value) is not value:
        return True
    # An event of a 0.3 stream brings one artifact.
    artifact = value.get("artifact")
    return artifact.__class__ is dict and artifact.get("parts").__class__ is list


def _has_state(value: dict[str, Any]) -> bool:
    status = value.get("status")
    return status.__class__ is dict and "state" in status


def _is_process(value: dict[str, Any]) -> bool:
    return "exit" in value or "timed_out" in value or ("stdout" in value and "stderr" in value)


def _is_problem(value: dict[str, Any]) -> bool:
    """S1's own members; a `code` beside a `message` is a bare error that happens to have a type or an instance."""
    if "message" in value and "code" in value:
        return "is_retriable" in value or "detail" in value
    return True


_PROBLEM_KEYS = ("type", "title", "detail", "is_retriable", "retry_after_ms", "doc_uri")

# The order of design section 9; each test only has to tell its shape from those after it. The keys are those of which
# at least one has to be there, so that a shape whose keys are all missing is not even tested.
SHAPES: tuple[tuple[str, tuple[str, ...], Callable[[dict[str, Any]], bool]], ...] = (
    ("jsonrpc", ("jsonrpc", "error"), jsonrpc.is_response),
    ("arcp", ("arcp", "payload"), lambda value: "arcp" in value or _is_arcp(value)),
    ("mcp", ("content", "isError", "structuredContent"), _is_mcp),
    ("a2a", ("status",), _has_state),
    ("a2a", ("artifacts", "artifact", *a2a.WRAPPERS), _is_a2a),
    ("http", ("headers", "body"), lambda value: value.get("status").__class__ is int),
    ("cli", ("exit", "timed_out", "stdout"), _is_process),
    (
        "task",
        ("status",),
        lambda value: value["status"].__class__ is str and value["status"] in task.STATUSES,
    ),
    ("cli", ("ok",), lambda value: value["ok"].__class__ is bool),
    ("problem", _PROBLEM_KEYS, _is_problem),
    ("task", ("recoverable",), lambda value: "code" in value),
    ("arcp", ("retryable",), lambda value: "code" in value),
    ("adcp", ("code",), lambda _value: True),
)

# key → one bit for every shape it hints at, the first shape in the lowest.
_HINTS: dict[str, int] = {}
for _place, (_via, _keys, _test) in enumerate(SHAPES):
    for _key in _keys:
        _HINTS[_key] = _HINTS.get(_key, 0) | 1 << _place

_Candidates = tuple[tuple[str, Callable[[dict[str, Any]], bool]], ...]
_CANDIDATES: dict[int, _Candidates] = {}


def _candidates(hints: int) -> _Candidates:
    """The shapes behind the bits, in order; each set of bits is taken apart once, and there are few of them."""
    found = tuple((via, test) for place, (via, _, test) in enumerate(SHAPES) if hints >> place & 1)
    _CANDIDATES[hints] = found
    return found


def _shape(value: Any) -> tuple[str | None, Any]:
    """The first shape a value has. A JSON-RPC response with a result is looked into."""
    if value.__class__ is not dict:
        return None, None
    hints, known = 0, _HINTS
    for name in value:
        if name in known:
            hints |= known[name]
    for via, is_one in _CANDIDATES.get(hints) or _candidates(hints):
        if is_one(value):
            if via == "jsonrpc" and value.get("error") is None and value.get("result").__class__ is dict:
                # Only one level: a result that is a response again is nobody's.
                result = value["result"]
                inner = "mcp" if _is_mcp(result) else "a2a" if _is_a2a(result) else None
                return (inner, result) if inner is not None else (via, value)
            return via, value
    return None, None
