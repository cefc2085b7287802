"""
Strategies of the property tests: faults with every field, JSON values, and invalid input.

`faults` makes faults that seem to have been received in the dialect in which they are written again. They are not
redacted, so a round trip can be compared exactly.
"""

from __future__ import annotations

import copy
from functools import cache
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from amends.core.enums import Actor, Executed, Recovery
from amends.core.fault import Fault, Origin
from amends.core.vocabulary import vocabulary as find_vocabulary
from amends.dialects import NAMES, dialect

__all__ = [
    "RESERVED",
    "VOCABULARY_OF",
    "calm_texts",
    "documents",
    "faults",
    "hostile",
    "json_objects",
    "json_values",
    "mutated",
    "often",
    "rarely",
    "seldom",
    "texts",
]

_CALM = settings(
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)
often = settings(_CALM, max_examples=60)
"""For cheap properties."""
rarely = settings(_CALM, max_examples=20)
"""For properties that are parametrised already."""
seldom = settings(_CALM, max_examples=8)
"""For properties of every pair."""

VOCABULARY_OF = {"problem": "http", "envelope": "cli", "task": "task", "adcp": "adcp", "arcp": "arcp"}

RESERVED = frozenset().union(*(dialect(name)._MEMBERS for name in NAMES))
"""The known members of all dialects. A member of one of these names is not an extension."""

texts = st.text(max_size=20)
"""Any characters except lone surrogates, which UTF-8 cannot encode."""
calm_texts = st.text("abcdefg éßλж漢🙂\u200b", max_size=20)
"""Unusual characters, but no text that looks like a secret, an address or a path."""


def json_values(strings: st.SearchStrategy[str] = texts) -> st.SearchStrategy[Any]:
    """JSON values that a reader has to return unchanged: big integers, fractions, unusual characters."""
    leaves = (
        st.none()
        | st.booleans()
        | st.integers(-(10**30), 10**30)
        | st.floats(allow_nan=False, allow_infinity=False)
        | strings
    )
    return st.recursive(
        leaves,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(strings, inner, max_size=3),
        max_leaves=6,
    )


def json_objects(strings: st.SearchStrategy[str] = texts) -> st.SearchStrategy[dict[str, Any]]:
    """Objects, for `details` and `intent`."""
    return st.dictionaries(strings, json_values(strings), max_size=3)


def codes(name: str) -> st.SearchStrategy[str]:
    """A vocabulary's own codes, and unknown ones."""
    return st.sampled_from(sorted(find_vocabulary(name).rows)) | st.text(min_size=1, max_size=64)


_MILLISECONDS = st.integers(1, 10**8).map(lambda number: number / 1000)


@cache
def faults(
    name: str,
    *,
    depth: int = 1,
    strings: st.SearchStrategy[str] = texts,
    code: st.SearchStrategy[str] | None = None,
) -> st.SearchStrategy[Fault]:
    """
    Faults received in the dialect `name`, with any fields set.

    Waits are whole milliseconds, which is the resolution of all dialects except AdCP.
    """
    maybe_text = st.none() | strings
    maybe_object = st.none() | json_objects(strings)
    vocabulary = VOCABULARY_OF[name]
    extensions = st.dictionaries(
        strings.filter(lambda key: key not in RESERVED), json_values(strings), max_size=2
    )
    children = st.just(())
    if depth:
        below = faults(name, depth=depth - 1, strings=strings, code=code)
        children = st.lists(below, max_size=2).map(tuple)
    return st.builds(
        Fault,
        code=code or codes(vocabulary),
        message=strings,
        recovery=st.sampled_from(Recovery),
        vocabulary=st.just(vocabulary),
        retry_after=st.none() | _MILLISECONDS,
        strategy=maybe_text,
        max_retries=st.none() | st.integers(0, 2**53),
        field=maybe_text,
        suggestions=st.lists(strings, max_size=3).map(tuple),
        details=maybe_object,
        errors=children,
        trace_id=maybe_text,
        doc_uri=maybe_text,
        type=maybe_text,
        title=maybe_text,
        status=st.none() | st.integers(100, 599),
        instance=maybe_text,
        intent=maybe_object,
        user_message=maybe_text,
        actor=st.sampled_from(Actor),
        attempt=st.none() | st.integers(1, 2**53),
        max_attempts=st.none() | st.integers(1, 2**53),
        executed=st.sampled_from(Executed),
        extensions=extensions,
        origin=st.just(Origin(name)),
    )


def _deep(levels: int, wrap: Any) -> Any:
    value: Any = 0
    for _ in range(levels):
        value = wrap(value)
    return value


ODD: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    -1,
    1.5,
    float("nan"),
    float("inf"),
    float("-inf"),
    10**400,
    -(10**400),
    2**64,
    "",
    "true",
    "5",
    "\ud800",
    "\x00",
    "\ufeff{}",
    "x" * 70_000,
    b"bytes",
    bytearray(b"{}"),
    (),
    (1, 2),
    [],
    {},
    [[]],
    [None],
    {"": None},
    {"\udfff": "\ud800"},
    {"code": {}},
    {1: 2},
    {None: None},
    set(),
    frozenset({1}),
    object(),
    Exception("no"),
    1j,
    _deep(200, lambda value: {"error": value}),
)
"""One value of every wrong type. Values without a repr are in test_fuzz."""


def hostile() -> st.SearchStrategy[Any]:
    """Any value: wrong types at any place, NaN, invalid text, deep nesting."""
    names = st.sampled_from(_NAMES) | st.text(max_size=3)
    return st.recursive(
        st.sampled_from(ODD) | st.text(max_size=5) | st.integers() | st.floats() | st.binary(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=5),
        max_leaves=12,
    )


_ERROR = {
    "code": "RATE_LIMITED",
    "message": "Request rate exceeded",
    "recovery": "transient",
    "retry_after": 5,
    "field": "packages[0]",
    "suggestion": "Wait",
    "details": {"limit": 100},
    "issues": [],
}

documents: dict[str, tuple[dict[str, Any], ...]] = {
    "websocket": ({"close_code": 1013, "reason": "Try again later"}, {"close_code": 4004}),
    "adcp": (_ERROR,),
    "mcp": (
        {"isError": True, "structuredContent": {"adcp_error": _ERROR}, "content": []},
        {
            "isError": True,
            "content": [{"type": "text", "text": '{"adcp_error": {"code": "CONFLICT"}}'}],
        },
        {"isError": False, "structuredContent": {"payload": {"errors": [_ERROR]}, "errors": [_ERROR]}},
        {"jsonrpc": "2.0", "id": 1, "result": {"isError": True, "content": []}},
    ),
    "a2a": (
        {
            "id": "t",
            "kind": "task",
            "status": {
                "state": "failed",
                "message": {"parts": [{"kind": "data", "data": {"adcp_error": _ERROR}}]},
            },
            "artifacts": [{"parts": [{"kind": "data", "data": {"adcp_error": _ERROR, "errors": [_ERROR]}}]}],
        },
        {
            "statusUpdate": {
                "status": {
                    "state": "TASK_STATE_FAILED",
                    "message": {"parts": [{"data": {"adcp_error": _ERROR}}]},
                }
            }
        },
        {"artifactUpdate": {"artifact": {"parts": [{"data": {"errors": [_ERROR]}}]}}},
    ),
    "jsonrpc": (
        {
            "jsonrpc": "2.0",
            "id": 1,
            "error": {"code": -32029, "message": "no", "data": {"adcp_error": _ERROR}},
        },
        {"jsonrpc": "2.0", "error": {"code": -32000.0, "data": [{"adcp_error": _ERROR}]}},
    ),
    "http": (
        {
            "status": 429,
            "headers": {
                "Retry-After": "5",
                "Date": "Wed, 21 Oct 2015 07:28:00 GMT",
                "x-should-retry": "true",
                "RateLimit": '"a";r=0;t=3',
            },
            "body": {"type": "about:blank", "status": 429, "is_retriable": True, "retry_after_ms": 5000},
        },
        {"status": 503, "headers": {}, "body": '{"adcp_error": {"code": "SERVICE_UNAVAILABLE"}}'},
        {"status": 207, "body": {"errors": [{"status": 422, "detail": "no"}]}},
    ),
    "problem": (
        {
            "type": "about:blank",
            "title": "Too many",
            "status": 429,
            "detail": "Slow down",
            "instance": "/a",
            "is_retriable": True,
            "retry_after_ms": 5000,
            "suggestions": ["Wait"],
            "errors": [{"detail": "Item 0", "errors": [{"status": 400}]}],
            "intent": {"operation": "x"},
            "recovery": "transient",
            "actor": "user",
        },
    ),
    "cli": (
        {
            "ok": False,
            "error": {
                "code": "RATE_LIMITED",
                "message": "no",
                "retryable": True,
                "retry_after_ms": 5000,
                "retry_strategy": "exponential",
                "max_retries": 3,
                "errors": [{"code": "TIMEOUT"}],
                "fix_required": "x",
                "recovery": "transient",
            },
            "meta": {"attempt": 1, "max_attempts": 3},
        },
        {
            "exit": 9,
            "stdout": '{"ok": false, "error": {"code": "RATE_LIMITED", "retryable": true}}',
            "stderr": "",
            "profile": "v2",
            "timed_out": False,
        },
    ),
    "task": (
        {"code": "TIMEOUT", "message": "late", "details": {"agent": "a"}, "recoverable": True},
        {"id": "t", "status": "failed", "error": {"code": "TIMEOUT", "message": "late", "recoverable": True}},
    ),
    "arcp": (
        {"code": "TIMEOUT", "message": "late", "details": {"job": "a"}, "retryable": True},
        {"type": "job.error", "trace_id": "t", "payload": {"code": "TIMEOUT", "message": "late"}},
        {
            "type": "job.event",
            "payload": {
                "kind": "tool_result",
                "body": {"call_id": "c", "error": {"code": "PERMISSION_DENIED"}},
            },
        },
        {"type": "job.result", "payload": {"final_status": "timed_out", "error": {"code": "TIMEOUT"}}},
    ),
}
"""Complete documents of every shape that each `via` reads; `mutated` changes them."""


def _names(value: Any) -> set[str]:
    if isinstance(value, dict):
        return set(value).union(*map(_names, value.values()))
    return set().union(*map(_names, value)) if isinstance(value, list) else set()


_NAMES = sorted({name for found in documents.values() for document in found for name in _names(document)})


_ANYTHING = st.sampled_from(ODD) | hostile()


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Return (container, key) of every value inside a document."""
    found: list[tuple[Any, Any]] = []
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in items:
        found.append((value, key))
        if isinstance(inner, dict | list):
            found += _places(inner)
    return found


@st.composite
def mutated(draw: st.DrawFn, via: str) -> Any:
    """A real document of `via`, some of its values replaced by hostile ones or removed."""
    document = copy.deepcopy(draw(st.sampled_from(documents[via])))
    places = _places(document)
    for index in draw(st.lists(st.integers(0, len(places) - 1), min_size=1, max_size=4)):
        holder, key = places[index]
        if isinstance(holder, dict) and draw(st.booleans()):
            holder.pop(key, None)
        else:
            holder[key] = draw(_ANYTHING)
    return document
