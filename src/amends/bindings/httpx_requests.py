"""The requests that the transports for httpx2 and httpx send: one per attempt, with our headers and the time left."""

from __future__ import annotations

from typing import Any

from amends.bindings.httpx_responses import module_of
from amends.http import call_bodies
from amends.http.calls import Call
from amends.http.redirects import is_credential
from amends.recovery.scope import time_left

__all__ = ["attempt_request", "limit_reads", "mistakes", "without_credentials"]


def attempt_request(request: Any, call: Call) -> Any:
    """
    Return the request of one attempt: a copy with our headers, and with time-outs limited to the time left.

    The caller's request stays as it is. The library copies its headers when it follows a redirect, so ours would follow.
    """
    extensions = dict(request.extensions)
    extensions["timeout"] = given = dict(extensions.get("timeout") or {})
    left = time_left()
    if left is not None:
        for name in ("connect", "read", "write", "pool"):
            given[name] = _shorter(given.get(name), left)
    sent = module_of(request).Request(
        request.method, request.url, headers=call.headers, stream=request.stream, extensions=extensions
    )
    sent.headers.update(call.attempt_headers())
    if call.replayable:
        sent.read()  # transports for tests look at `request.content`
    return sent


def limit_reads(sent: Any, response: Any) -> None:
    """
    Limit the time-out for reading the body to the time left for it.

    The library looks at the time-out once, when it begins to read a body. The time-out applies to each read, so a body
    that stalls after it began to arrive may end after the deadline, but not later than twice the deadline.
    """
    left = time_left()
    if response.status_code >= 400:
        left = _shorter(left, call_bodies.SECONDS)
    if left is not None:
        given = sent.extensions["timeout"]
        given["read"] = _shorter(given.get("read"), left)


def _shorter(seconds: float | None, limit: float) -> float:
    return limit if seconds is None else min(seconds, limit)


def without_credentials(request: Any) -> Any:
    """Return the headers of a request that was redirected to another origin, without credentials and keys."""
    headers = request.headers.copy()
    for name in [name for name in headers if is_credential(name)]:
        del headers[name]
    return headers


def mistakes(request: Any) -> tuple[type[Exception], ...]:
    """Return the library's exceptions for mistakes of the caller."""
    module = module_of(request)
    return module.LocalProtocolError, module.UnsupportedProtocol, module.InvalidURL, module.StreamError
