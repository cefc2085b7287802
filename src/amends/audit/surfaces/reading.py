"""What one answer says, read with `extract`. A status alone is not a statement of the service's author."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from amends.audit.surfaces.evidence import Answer, texts
from amends.carriers.extraction import extract
from amends.core.enums import Executed, Recovery
from amends.core.fault import Fault

__all__ = ["Reading", "read"]

_VERDICTS = frozenset(
    {
        "is_retriable",
        "retryable",
        "recoverable",
        "recovery",
        "retriable",
        "should_retry",
        "durability",
        "isretryable",
    }
)
_VERDICT_HEADERS = frozenset({"retry-after", "retry-after-ms", "x-should-retry", "stripe-should-retry"})
_ID_HEADERS = frozenset(
    {"x-request-id", "request-id", "traceparent", "x-trace-id", "x-correlation-id", "x-amzn-requestid"}
)
_STANDARD_RPC = frozenset({-32700, -32600, -32601, -32602, -32042, *range(-32009, -32000)})
"""JSON-RPC, MCP and A2A codes that mean a request which cannot succeed unchanged."""
_MAX_DEPTH = 12
_WRAPPED = re.compile(r"(?:text\n)?MCP error (-\d{1,6}): (.*)", re.DOTALL)


class Reading(msgspec.Struct, frozen=True):
    """The questions that one answer answers."""

    fault: Fault | None
    verdict: bool
    """It says whether the same request may succeed later."""
    retriable: bool
    wait: bool
    field: bool
    effect: bool
    """It says whether the call had its effect."""
    link: bool
    identity: bool
    shape: str


def read(answer: Answer, surface: str) -> Reading:
    """
    Return what an answer says.

    >>> problem = {"status": 404, "headers": {}, "body": {"title": "No", "status": 404, "is_retriable": False}}
    >>> reading = read(Answer(probe="x", sent="GET /x", outcome="failure", response=problem), "http")
    >>> reading.verdict, reading.link
    (True, False)
    """
    response = _unwrapped(answer.response)
    fault = extract(response, native=True)
    members = set(_members(response))
    headers = _headers(response)
    dialect = fault.origin.dialect if fault is not None and fault.origin is not None else ""
    retriable = fault is not None and fault.recovery is Recovery.TRANSIENT
    return Reading(
        fault=fault,
        verdict=bool(
            members & _VERDICTS or headers & _VERDICT_HEADERS or _known_code(response, fault, dialect)
        ),
        retriable=retriable,
        wait=fault is not None and fault.retry_after is not None,
        field=(fault is not None and bool(fault.field or any(part.field for part in fault.errors)))
        or _names(response, answer.fields),
        effect="executed" in members or (fault is not None and fault.executed is Executed.NO),
        link=fault is not None
        and bool(fault.doc_uri or (fault.type or "").startswith(("https://", "http://"))),
        identity=(fault is not None and bool(fault.trace_id)) or bool(headers & _ID_HEADERS),
        shape=_shape(answer.response, dialect),
    )


def _unwrapped(response: object) -> object:
    """Return the JSON-RPC error that MCP's TypeScript SDK writes as the text of a result: "MCP error -32602: …"."""
    if not isinstance(response, Mapping):
        return response
    result = response.get("result")
    if not isinstance(result, Mapping) or result.get("isError") is not True:
        return response
    found = _WRAPPED.match("\n".join(texts(result.get("content"))))
    if found is None:
        return response
    error = {"code": int(found.group(1)), "message": found.group(2)}
    return {"jsonrpc": "2.0", "id": response.get("id"), "error": error}


def _names(response: object, fields: Sequence[str]) -> bool:
    """Return whether a text of the answer names one of the values that were wrong."""
    said = "\n".join(texts(response))
    return any(re.search(rf"\b{re.escape(name)}\b", said) for name in fields)


def _known_code(response: object, fault: Fault | None, dialect: str) -> bool:
    """Return whether the sender's own code has a documented meaning that does not come from the status."""
    if fault is None:
        return False
    if dialect in {"adcp", "arcp", "task", "envelope"}:
        return True
    error = response.get("error") if isinstance(response, Mapping) else None
    if isinstance(error, Mapping) and error.get("code") in _STANDARD_RPC:
        return True
    from amends.vendors.registry import names as service_names

    return dialect in service_names()


def _shape(response: object, dialect: str) -> str:
    """Return the form of an answer: its format, and for JSON of no known format the names of its members."""
    if dialect in {"adcp", "arcp", "task", "envelope"}:
        return dialect  # the same error, in a result or in a JSON-RPC error
    body = response.get("body") if isinstance(response, Mapping) and "status" in response else response
    if isinstance(body, str):
        return "HTML" if body.lstrip()[:1] == "<" else "text" if body.strip() else "empty"
    if not isinstance(body, Mapping):
        return "empty" if body is None else "JSON list"
    if "jsonrpc" in body:
        return "JSON-RPC error" if "error" in body else "JSON-RPC result"
    if dialect == "problem" and {"title", "type", "is_retriable"} & set(body):
        return dialect
    return f"JSON {{{', '.join(sorted(f'{name}{_KINDS.get(type(each), str())}' for name, each in body.items()))}}}"


_KINDS: dict[type, str] = {dict: "{}", list: "[]"}
"""A member that is once a text and once a list has two shapes."""


def _members(value: object, depth: int = 0) -> Iterator[str]:
    if depth > _MAX_DEPTH:
        return
    if isinstance(value, Mapping):
        for name, each in value.items():
            if name != "headers":
                yield str(name).lower().rpartition("/")[2]
                yield from _members(each, depth + 1)
    elif isinstance(value, list | tuple):
        for each in value[:50]:
            yield from _members(each, depth + 1)


def _headers(response: object) -> set[str]:
    headers = response.get("headers") if isinstance(response, Mapping) else None
    return {str(name).lower() for name in headers} if isinstance(headers, Mapping) else set()
