"""The request that is being handled, for functions that an application calls inside a handler, such as `Batch.body`."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar

from amends.http.responses import RequestInfo, Settings
from amends.serving import tracing

__all__ = ["CURRENT", "current_request"]

CURRENT: ContextVar[Callable[[], tuple[RequestInfo, Settings] | None] | None] = ContextVar(
    "amends_http_current", default=None
)
"""Set by the server bindings; returns the request and the settings when they are needed."""


def current_request() -> tuple[RequestInfo, Settings]:
    """Return the current request and the application's settings, or empty ones outside of a request."""
    find = CURRENT.get()
    found = None if find is None else find()
    return found or (RequestInfo(path=""), Settings(pages=None))


def _traceparent() -> str | None:
    find = CURRENT.get()
    found = None if find is None else find()
    return None if found is None else found[0].traceparent


tracing.CONTEXTS.append(CURRENT)
tracing.SOURCES.append(_traceparent)
