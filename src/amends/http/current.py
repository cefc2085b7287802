"""The request that is being handled, for functions that an application calls inside a handler, such as `Batch.body`."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from amends.http.request_info import RequestInfo
from amends.http.responses import Settings
from amends.serving import tracing

__all__ = ["CURRENT", "current_request"]

CURRENT: ContextVar[tuple[Callable[[Any], RequestInfo], object, Settings, float] | None] = ContextVar(
    "amends_http_current", default=None
)
"""
Set by the server bindings: the function that reads the framework's request, the request, the application's settings, and when
the request arrived, on the recovery clock.

The request is read only if its description is needed: most requests succeed.
"""


def current_request() -> tuple[RequestInfo, Settings]:
    """Return the current request and the application's settings, or empty ones outside of a request."""
    found = CURRENT.get()
    if found is None:
        return RequestInfo(path=""), Settings(pages=None)
    read, request, settings, _ = found
    return read(request), settings


tracing.add_source(
    CURRENT,
    lambda current: current[0](current[1]).traceparent,
    left=lambda current: (current[0](current[1]).stated, current[3]),
)
