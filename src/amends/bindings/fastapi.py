"""
Problem details for FastAPI, in responses and in the OpenAPI document.

    from amends.bindings.fastapi import install, problems

    install(app)

    @app.get("/orders/{id}", responses=problems(NotFoundError, RateLimitedError))
    def order(id: str): ...

Does the same as `amends.bindings.starlette`. In addition, a validation error names each field by a JSON Pointer with the
rule that it has to follow; a rejected value is included only if it is short and not a secret. The OpenAPI document contains the schema of a problem, and every
operation lists it as a possible response.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

try:
    from fastapi import FastAPI
    from fastapi.exception_handlers import (
        http_exception_handler,
        request_validation_exception_handler,
        websocket_request_validation_exception_handler,
    )
    from fastapi.exceptions import RequestValidationError, WebSocketRequestValidationError
except ImportError as missing:
    raise ImportError("amends.bindings.fastapi needs FastAPI: pip install fastapi") from missing
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from amends.bindings import starlette
from amends.core.wrong_calls import explains_wrong_calls
from amends.http.openapi import add_problems, problems
from amends.http.responses import Settings
from amends.http.validation import fault_from_validation, pydantic_mistake

__all__ = ["install", "problems"]

_DEFAULT_HANDLERS: dict[object, object] = {
    HTTPException: http_exception_handler,
    RequestValidationError: request_validation_exception_handler,
    WebSocketRequestValidationError: websocket_request_validation_exception_handler,
}


@explains_wrong_calls
def install(
    app: FastAPI,
    *,
    pages: str | None = "/errors",
    base_url: str | None = None,
    hosts: Sequence[str] | None = None,
    errors: Mapping[type[BaseException], str] | None = None,
    settings: Settings | None = None,
) -> Settings:
    """
    Answer every failure of `app` with problem details, validation errors included, and list them in the OpenAPI document.

    The arguments are those of `amends.bindings.starlette.install`. Call it before the application serves its first request.

    >>> from fastapi import FastAPI
    >>> from fastapi.testclient import TestClient
    >>> app = FastAPI()
    >>> _ = install(app)
    >>> answer = TestClient(app).get("/nowhere").json()
    >>> answer["code"], answer["is_retriable"]
    ('NOT_FOUND', False)
    """
    handlers = app.exception_handlers
    # Only FastAPI's default handlers are replaced; the application's own stay.
    for kind, default in _DEFAULT_HANDLERS.items():
        if handlers.get(kind) is default:
            del handlers[kind]
    settings = starlette.install(
        app, pages=pages, base_url=base_url, hosts=hosts, errors=errors, settings=settings
    )

    async def handle_validation_error(request: Request, exc: Exception) -> Response:
        assert isinstance(exc, RequestValidationError | WebSocketRequestValidationError)
        fault = fault_from_validation(map(pydantic_mistake, exc.errors()))
        return starlette.respond(request, fault, settings)

    handlers.setdefault(RequestValidationError, handle_validation_error)
    handlers.setdefault(WebSocketRequestValidationError, handle_validation_error)
    original: Callable[[], dict[str, object]] = app.openapi

    def openapi() -> dict[str, Any]:
        return add_problems(original())

    app.openapi = openapi  # type: ignore[method-assign]
    return settings
