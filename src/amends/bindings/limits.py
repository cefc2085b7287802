"""
Rate limits for ASGI applications, counted by the `limits` library.

    from amends.bindings.limits import Limited

    app = Limited(Problems(app), "100/minute")

Every response of a limited route has the fields `RateLimit-Policy` and `RateLimit`, so that callers can slow down before
they are refused. A refusal is a 429 problem with this caller's own wait, in the body and in `Retry-After`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from math import ceil
from typing import Any

try:
    import limits
    from limits.aio.strategies import MovingWindowRateLimiter, RateLimiter
    from limits.storage import storage_from_string
except ImportError as missing:
    raise ImportError("amends.bindings.limits needs an extra: pip install 'amends[limits]'") from missing

from amends.core.wrong_calls import explains_wrong_calls
from amends.errors import RateLimitedError
from amends.http.asgi import request_info, send_response
from amends.http.asgi_types import App, Message, Receive, Scope, Send
from amends.http.idempotency import caller_id
from amends.http.responses import Settings, error_response

__all__ = ["Limited"]


def _client(scope: Scope) -> str:
    """Return the key of a caller: its address and its credentials."""
    host = (scope.get("client") or ("",))[0]
    return f"{host}:{caller_id(scope)}"


class Limited:
    """
    The ASGI middleware. Put it around `Problems`; use several for several limits.

        app = Limited(Problems(app), "100/minute", name="orders")
    """

    @explains_wrong_calls
    def __init__(
        self,
        app: App,
        limit: str,
        *,
        name: str = "default",
        storage: str = "async+memory://",
        strategy: type[RateLimiter] = MovingWindowRateLimiter,
        route: Callable[[Scope], bool] | None = None,
        caller: Callable[[Scope], str] = _client,
        settings: Settings | None = None,
    ) -> None:
        """
        Args:
            app: the application.
            limit: in the notation of `limits`: "10/second", "100 per 5 minutes".
            name: the policy's name in the response fields; letters, digits and dashes.
            storage: an async storage URL of `limits`: "async+redis://…".
            strategy: one of `limits.aio.strategies`.
            route: returns whether a request counts; without it, all do.
            caller: returns the key under which a caller is counted.
            settings: those of `Problems`.

        """
        if not name.replace("-", "").isalnum() or not name.isascii():
            raise ValueError(f"name consists of letters, digits and dashes, not {name!r}")
        self.app = app
        self._item = limits.parse(limit)
        self._name = name
        backend: Any = storage_from_string(storage)
        self._limiter = strategy(backend)
        self._route, self._caller = route, caller
        self._settings = settings or Settings()
        self._policy = f'"{name}";q={self._item.amount};w={self._item.get_expiry()}'.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one connection."""
        if scope["type"] != "http" or (self._route is not None and not self._route(scope)):
            await self.app(scope, receive, send)
            return
        key = (self._name, self._caller(scope))
        allowed = await self._limiter.hit(self._item, *key)
        window = await self._limiter.get_window_stats(self._item, *key)
        wait = max(0.0, window.reset_time - time.time())
        state = f'"{self._name}";r={window.remaining};t={ceil(wait)}'.encode()

        async def send_with_fields(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = [
                    *message.get("headers", ()),
                    (b"ratelimit-policy", self._policy),
                    (b"ratelimit", state),
                ]
                message = {**message, "headers": headers}
            await send(message)

        if allowed:
            await self.app(scope, receive, send_with_fields)
            return
        fault = RateLimitedError(
            "The rate limit of this caller is reached", retry_after=max(wait, 0.001)
        ).fault
        response = error_response(fault, request_info(scope), self._settings)
        await send_response(scope, send_with_fields, response)
