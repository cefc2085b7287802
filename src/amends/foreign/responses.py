"""
Exceptions that carry a response: an HTTP response, a JSON-RPC error, a finished command.

The response is read as `extract` reads it, with waits, problem documents and envelopes. If it contains only a status or
an exit code, the fault has the message of that row.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from amends.carriers.extraction import extract
from amends.carriers.objects import read_object
from amends.core.enums import Executed
from amends.core.fault import Fault
from amends.core.meanings import fault_of
from amends.core.wire import plain
from amends.foreign import codes
from amends.foreign.attributes import unlisted
from amends.foreign.classes import names, row_for_class
from amends.foreign.converted import converted_from, is_converted
from amends.foreign.rpc import grpc_fault
from amends.foreign.safe_attr import attribute, is_exception
from amends.foreign.sdks import sdk_fault
from amends.foreign.without_text import without_text

__all__ = ["botocore_fault", "calls_made", "response_fault"]

# Classes that keep their status under a name which other exceptions use for other things.
_STATUS = {
    "google.api_core.exceptions.GoogleAPICallError": "code",
    "tornado.httpclient.HTTPClientError": "code",
    "werkzeug.exceptions.HTTPException": "code",
}

# Raised when aiohttp could not parse the response: the status 400 is set by aiohttp, not by the server.
_UNPARSED = "aiohttp.http_exceptions.HttpProcessingError"
_RPC = "grpc.RpcError"
_ABSENT = object()


def response_fault(exc: BaseException, vendor: str | None = None) -> Fault | None:
    """
    Return the fault of the response that an exception carries; None if it has none, or one that did not fail.

    `vendor` is the service that was called, if known; an SDK of one service knows it better.
    """
    if _UNPARSED in names(type(attribute(exc, "__cause__"))):
        return None
    if is_converted(exc) and converted_from(exc) is not None:
        # The response is made up.
        return None
    response = attribute(exc, "response")
    if isinstance(response, Mapping):
        return botocore_fault(response)
    if is_exception(response) and _RPC in names(type(response)):
        # google-api-core keeps the error that it converted, and its class says less: DATA_LOSS and INTERNAL are both a 500.
        return grpc_fault(response)
    known = sdk_fault(exc, vendor)
    if known is not None:
        return known
    via, document = (None, None) if response is None else read_object(response)
    if via != "http":
        via, document = read_object(exc)
        if via == "http" and document["body"] is None and (kept := unlisted(exc)) is not None:
            # The body is in an attribute that responses do not have.
            document = plain({**document, "body": kept["body"]})
    if via not in {"http", "jsonrpc", "cli"}:
        return _status_fault(exc, vendor) or _unlisted_fault(exc, vendor)
    fault = extract(document, via, vendor=vendor, native=False)
    if fault is None:
        if via == "jsonrpc" and isinstance(document, dict):
            return _jsonrpc_fault(exc, document["error"]["code"])
        return None
    return without_text(fault)


def _jsonrpc_fault(exc: BaseException, number: int) -> Fault | None:
    """Return the fault of a JSON-RPC error by its number alone."""
    known = codes.JSONRPC
    if any(name.startswith("mcp.") for name in names(type(exc))):
        known = {**known, **codes.MCP}
    meaning = known.get(number)
    return None if meaning is None else fault_of(meaning, details={"jsonrpc": number})


def _status_fault(exc: BaseException, vendor: str | None) -> Fault | None:
    """Return the fault of an exception that has a status, and perhaps headers, itself."""
    found = [attribute(exc, _STATUS[name]) for name in names(type(exc)) if name in _STATUS]
    headers = getattr(exc, "headers", _ABSENT)
    if headers is not _ABSENT:
        found += [attribute(exc, "status_code"), attribute(exc, "status")]
    status = next((int(value) for value in found if isinstance(value, int)), 0)
    return extract({"status": status, "headers": headers, "body": None}, "http", vendor=vendor, native=False)


def _unlisted_fault(exc: BaseException, vendor: str | None) -> Fault | None:
    """Return the fault of an exception of an SDK that no table names, by the status, headers and body that it keeps."""
    if row_for_class(type(exc)) is not None and type(exc).__module__ != "builtins":
        return None
    response = unlisted(exc)
    if response is None:
        return None
    carried = response.pop("carried")
    if "status" in response:
        fault = extract(plain(response), "http", vendor=vendor, native=False)
    else:
        fault = extract(plain(response["body"]), vendor=vendor, native=False)
    if fault is None:
        return None
    if not carried and fault.executed is Executed.NO:
        # A bare number may be anything's: the class alone does not show that it is that of an answer.
        fault = replace(fault, executed=Executed.MAYBE)
    return without_text(fault)


def botocore_fault(response: Mapping[str, object]) -> Fault | None:
    """Return the fault of botocore's parsed response: by the service's code, else by the status."""
    metadata = response.get("ResponseMetadata")
    error = response.get("Error")
    code = error.get("Code") if isinstance(error, Mapping) else None
    if not isinstance(metadata, Mapping):
        # An exception event of a stream has a code and no response.
        if not isinstance(code, str):
            return None
        found = extract({"__type": code}, vendor="aws", native=False)
        return None if found is None else without_text(found)
    status = metadata.get("HTTPStatusCode")
    body: dict[str, object] | None = {"__type": code} if isinstance(code, str) else None
    reasons = response.get("CancellationReasons")
    if body is not None and isinstance(reasons, list):
        body["CancellationReasons"] = [
            each for each in reasons if isinstance(each, Mapping) and each.get("Code") != "None"
        ]
    given = metadata.get("HTTPHeaders")
    headers = dict(given) if isinstance(given, Mapping) else {}
    request = metadata.get("RequestId")
    if isinstance(request, str):
        # The query protocol sends it in the body.
        headers.setdefault("x-amzn-requestid", request)
    fault = extract({"status": status, "headers": headers, "body": body}, "http", vendor="aws", native=False)
    if fault is None and isinstance(code, str):
        fault = extract(body, vendor="aws", native=False)
    if fault is not None:
        fault = without_text(fault)
    retries = metadata.get("RetryAttempts")
    if fault is not None and isinstance(retries, int) and not isinstance(retries, bool) and retries > 0:
        fault = replace(fault, attempt=retries + 1)
    return fault


def calls_made(exc: BaseException) -> int:
    """Return how often a client that retries by itself has sent the request (openai, anthropic); 1 if unknown."""
    get = attribute(attribute(attribute(exc, "request"), "headers"), "get")
    if not callable(get):
        return 1
    try:
        retries = get("x-stainless-retry-count")
        return int(retries) + 1 if retries.isdecimal() and len(retries) < 3 else 1
    except Exception:  # noqa: BLE001 - no request, or one without such headers
        return 1
