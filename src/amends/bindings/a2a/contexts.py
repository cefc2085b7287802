"""A builder of call contexts whose failures (a broken session store, a token that cannot be read) show nothing."""

from __future__ import annotations

from typing import Any

from a2a.server.context import ServerCallContext
from a2a.server.routes.common import ServerCallContextBuilder

from amends.bindings.a2a.responses import protocol_error, refusal, said
from amends.http.tracing import trace_id

__all__ = ["GuardedContexts"]


class GuardedContexts(ServerCallContextBuilder):
    """The same builder; what it raises is a protocol error."""

    def __init__(self, builder: ServerCallContextBuilder) -> None:
        self._builder = builder

    def build(self, request: Any) -> ServerCallContext:
        """The context of a request."""
        try:
            return self._builder.build(request)
        except Exception as exc:  # noqa: BLE001
            error = protocol_error(exc)
            if error is not None:
                raise error from None
            trace = trace_id(request.headers.get("traceparent"))
            raise refusal(said(exc, trace, "building a call's context")) from None
