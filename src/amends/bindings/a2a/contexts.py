"""Guards a builder of call contexts: its failures (a session store that is down, an invalid token) leak nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from a2a.server.context import ServerCallContext
from a2a.server.routes.common import ServerCallContextBuilder

from amends.bindings.a2a.responses import error_for, internal_error, protocol_error

if TYPE_CHECKING:
    from starlette.requests import Request

__all__ = ["GuardedContexts"]


class GuardedContexts(ServerCallContextBuilder):
    """A builder that raises protocol errors instead of the wrapped builder's exceptions."""

    def __init__(self, builder: ServerCallContextBuilder) -> None:
        self._builder = builder

    def build(self, request: Request) -> ServerCallContext:
        """Build the context of a request."""
        try:
            return self._builder.build(request)
        except Exception as exc:  # noqa: BLE001
            error = protocol_error(exc)
            if error is not None:
                raise error from None
            traceparent = request.headers.get("traceparent")
            raise internal_error(error_for(exc, "building a call context", traceparent)) from None
