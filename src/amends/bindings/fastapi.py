"""
FastAPI: one call, and every failure is problem details, in the responses and in the OpenAPI document.

    from amends.bindings.fastapi import install, problems

    install(app)

    @app.get("/orders/{id}", responses=problems(NotFoundError, RateLimitedError))
    def order(id: str): ...

The same as `amends.bindings.starlette`, and: validation errors name each field by a JSON Pointer with what to do about
it, never with the value that was sent; the OpenAPI document has the schema of a problem, and every operation says that
it may answer with one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

try:
    from fastapi import FastAPI
    from fastapi.exception_handlers import http_exception_handler, request_validation_exception_handler
    from fastapi.exceptions import RequestValidationError
except ImportError as missing:
    raise ImportError("amends.bindings.fastapi needs FastAPI: pip install fastapi") from missing
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from amends.bindings import starlette
from amends.http.application_errors import of_validation
from amends.http.openapi import described, problems
from amends.http.responses import Settings

__all__ = ["install", "problems"]


def install(
    app: FastAPI,
    *,
    pages: str | None = "/errors",
    base_url: str | None = None,
    settings: Settings | None = None,
) -> Settings:
    """Same as `amends.bindings.starlette.install`, but also for FastAPI's validation errors and OpenAPI document."""
    handlers = app.exception_handlers
    # FastAPI's own defaults make room; a handler of the user's stays.
    for kind, default in _DEFAULTS.items():
        if handlers.get(kind) is default:
            del handlers[kind]
    settings = starlette.install(app, pages=pages, base_url=base_url, settings=settings)

    async def invalid(request: Request, exc: Exception) -> Response:
        assert isinstance(exc, RequestValidationError)
        fault = of_validation((_path(item), item["type"]) for item in exc.errors())
        return starlette.respond(request, fault, settings)

    handlers.setdefault(RequestValidationError, invalid)
    original: Callable[[], dict[str, Any]] = app.openapi

    def openapi() -> dict[str, Any]:
        return described(original())

    app.openapi = openapi  # type: ignore[method-assign]
    return settings


_DEFAULTS: dict[Any, Any] = {
    HTTPException: http_exception_handler,
    RequestValidationError: request_validation_exception_handler,
}


def _path(item: Any) -> tuple[Any, ...]:
    # Of a body that is no JSON, pydantic gives the place where reading stopped: no pointer to anything.
    return tuple(item["loc"][:1]) if item["type"] == "json_invalid" else tuple(item["loc"])
