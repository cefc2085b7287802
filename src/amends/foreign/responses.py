"""
Exceptions that carry an answer: a response, a JSON-RPC error, a finished command.

The answer is read as `extract` reads it, so that waits, problem documents and envelopes count; its status or exit code
alone gives the words of its row.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from amends.carriers.extraction import extract
from amends.carriers.objects import read_object
from amends.core.fault import Fault
from amends.foreign import codes
from amends.foreign.classes import names
from amends.foreign.outcomes import fault_of
from amends.foreign.safe_attr import attribute

__all__ = ["carried", "tries"]

# Classes that keep a status under a name too common to be looked for everywhere.
_STATUS = {
    "google.api_core.exceptions.GoogleAPICallError": "code",
    "tornado.httpclient.HTTPClientError": "code",
    "werkzeug.exceptions.HTTPException": "code",
}

# An answer that aiohttp could not read: the status 400 is its own, and says nothing about the request.
_INVENTED = "aiohttp.http_exceptions.HttpProcessingError"
_ABSENT = object()


def carried(exc: BaseException) -> Fault | None:
    """The fault in what the exception carries; None when it carries nothing, or nothing that failed."""
    if _INVENTED in names(type(attribute(exc, "__cause__"))):
        return None
    response = attribute(exc, "response")
    if isinstance(response, Mapping):
        return _aws(response)
    seen: Any
    via, seen = (None, None) if response is None else read_object(response)
    if via != "http":
        via, seen = read_object(exc)
    if via not in {"http", "jsonrpc", "cli"}:
        return _status(exc)
    return extract(seen, via) or (_numbered(exc, seen) if via == "jsonrpc" else None)


def _numbered(exc: BaseException, response: dict[str, Any]) -> Fault | None:
    """A JSON-RPC error that says nothing but its number."""
    number = response["error"]["code"]
    known = codes.JSONRPC
    if any(name.startswith("mcp.") for name in names(type(exc))):
        known = {**known, **codes.MCP}
    meaning = known.get(number)
    return None if meaning is None else fault_of(meaning, details={"jsonrpc": number})


def _status(exc: BaseException) -> Fault | None:
    """An exception that is its own response, with a status and perhaps with headers."""
    found = [attribute(exc, _STATUS[name]) for name in names(type(exc)) if name in _STATUS]
    headers = getattr(exc, "headers", _ABSENT)
    if headers is not _ABSENT:
        found += [attribute(exc, "status_code"), attribute(exc, "status")]
    status = next((int(value) for value in found if isinstance(value, int)), 0)
    return extract({"status": status, "headers": headers, "body": None}, "http")


def _aws(response: Mapping[str, Any]) -> Fault | None:
    """The parsed response of botocore: the service's own word first, then the status; with the tries it made."""
    metadata = response.get("ResponseMetadata")
    if not isinstance(metadata, Mapping):
        return None
    error = response.get("Error")
    word = error.get("Code") if isinstance(error, Mapping) else None
    status = metadata.get("HTTPStatusCode")
    answer = {"status": status, "headers": metadata.get("HTTPHeaders"), "body": None}
    fault = extract(answer, "http")
    meaning = codes.AWS.get(word) if type(word) is str else None
    if meaning is not None:
        said = {} if fault is None else {"retry_after": fault.retry_after, "status": fault.status}
        fault = fault_of(meaning, details={"aws": word}, **said)
    retries = metadata.get("RetryAttempts")
    if fault is not None and type(retries) is int and retries > 0:
        fault = replace(fault, attempt=retries + 1)
    return fault


def tries(exc: BaseException) -> int:
    """How often a client that repeats by itself has sent the request, where it says so (openai, anthropic)."""
    get = attribute(attribute(attribute(exc, "request"), "headers"), "get")
    try:
        said = get("x-stainless-retry-count")
        return int(said) + 1 if said.isdecimal() and len(said) < 3 else 1
    except Exception:  # noqa: BLE001 - no request, or none with headers
        return 1
