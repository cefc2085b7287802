"""The demo's HTTP API: prices, orders, and the endpoint of the command. Its failures are problem details."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amends.demo.call_record import CallRecord, CurrentRecord
from amends.demo.scenario import RateLimit
from amends.errors import RateLimitedError

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

__all__ = ["app"]


def app(current: CurrentRecord) -> ASGIApp:
    """Return a Starlette application with one line for failures and one for idempotency keys."""
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import JSONResponse
    from starlette.routing import Route

    from amends.bindings.starlette import install
    from amends.http.idempotency import Idempotent

    async def prices(request: Request) -> JSONResponse:
        _check_rate_limit(current.record, "prices")
        return JSONResponse({"leek": 2.4, "trout": 9.8})

    async def order(request: Request) -> JSONResponse:
        current.record.record_effect("order")
        return JSONResponse({"order": f"G-{current.record.tallies['order'].effects}"}, 201)

    async def wine(request: Request) -> JSONResponse:
        _check_rate_limit(current.record, "wine")
        current.record.record_effect("wine")
        return JSONResponse({"bottles": 6})

    application = Starlette(
        routes=[
            Route("/prices", prices),
            Route("/orders", order, methods=["POST"]),
            Route("/wine", wine, methods=["POST"]),
        ]
    )
    install(application)
    application.add_middleware(Idempotent, store="memory:")
    application.add_middleware(_RecordOrders, current=current)
    return application


def _check_rate_limit(record: CallRecord, step: str) -> None:
    failure = record.record_call(step)
    if isinstance(failure, RateLimit):
        raise RateLimitedError("Too many requests", retry_after=failure.seconds)


class _RecordOrders:
    """Records the calls to /orders outside the idempotency middleware, which answers repeated ones itself."""

    def __init__(self, inner: ASGIApp, current: CurrentRecord) -> None:
        self.inner = inner
        self.current = current

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope.get("path") == "/orders":
            self.current.record.record_call("order")
        await self.inner(scope, receive, send)
