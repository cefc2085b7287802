"""Status, headers and body of an exception of an SDK, under the names that SDKs use."""

from __future__ import annotations

from collections.abc import Mapping

from amends.core.wire import Unreadable, read
from amends.foreign.safe_attr import attribute

__all__ = ["body_of", "headers_of", "status_of", "usual"]

_STATUSES = ("status_code", "http_status", "status", "code")
_BODIES = ("json_body", "body", "data", "details", "info", "http_body", "content", "error_details", "errors")
_HEADERS = ("headers", "litellm_response_headers")
_HOLDERS = ("response", "raw_response", "meta", "resp", "http_response")


def usual(exc: BaseException) -> dict[str, object] | None:
    """Read the attributes that most SDKs use."""
    status = status_of(exc)
    body = body_of(exc)
    if status is None or (status < 400 and isinstance(body, dict) and "ok" not in body):
        if not isinstance(body, dict):
            return None
        # An event of a stream: the SDKs keep the error object without its wrapper.
        return {"body": body if "error" in body else {"error": body}}
    return {"status": status, "headers": headers_of(exc), "body": body}


def status_of(exc: BaseException) -> int | None:
    """Return the HTTP status of an exception or of its response, or None."""
    for holder in (exc, *(attribute(exc, name) for name in _HOLDERS)):
        for name in _STATUSES if holder is not None else ():
            value = attribute(holder, name)
            if isinstance(value, str) and value.isdecimal() and len(value) == 3:
                value = int(value)
            if isinstance(value, int) and not isinstance(value, bool) and 200 <= value <= 599:
                return int(value)
    return None


def body_of(exc: BaseException) -> object:
    """
    Return the body that an exception or its response keeps, or None.

    A failed response that was read has it whole; many SDKs keep only the error object inside it.
    """
    response = attribute(exc, "response")
    for name in ("content", "_content") if (status_of(exc) or 0) >= 400 else ():
        sent = attribute(response, name)
        if isinstance(sent, bytes) and sent.lstrip()[:1] == b"{":
            return sent
    for name in _BODIES:
        value = attribute(exc, name)
        if isinstance(value, (bytes, str)):
            try:
                value = read(value)
            except Unreadable:
                continue
        if isinstance(value, (Mapping, list)) and value:
            return value
    for name in ("data", "content", "_content", "text", "body"):
        value = attribute(response, name)
        if isinstance(value, (Mapping, bytes, str)) and value:
            return value
    return None


def headers_of(exc: BaseException) -> object:
    """Return the headers that an exception or its response keeps."""
    for holder in (exc, *(attribute(exc, name) for name in _HOLDERS)):
        for name in _HEADERS if holder is not None else ():
            value = attribute(holder, name)
            if isinstance(value, Mapping) or hasattr(value, "items"):
                return dict(value.items())
    return {}
