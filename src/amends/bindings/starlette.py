"""
Starlette: one call, and every failure is problem details.

    from amends.bindings.starlette import install

    install(app)

Puts `Problems` innermost, so that CORS and security headers are added to failures as to everything else, and answers
`HTTPException` (404 and 405 among them) with its own headers kept. Handlers that you registered yourself stay.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

try:
    from starlette.applications import Starlette
    from starlette.exceptions import HTTPException
    from starlette.middleware import Middleware
    from starlette.requests import Request
    from starlette.responses import Response
except ImportError as missing:
    raise ImportError("amends.bindings.starlette needs an extra: pip install 'amends[server]'") from missing

from msgspec.structs import replace

from amends.bindings.asgi import Problems
from amends.core.fault import Fault
from amends.errors.base import FaultError
from amends.http.application_errors import fault_for, of_status, waiting
from amends.http.asgi import FAULT, asked, encoded
from amends.http.responses import Answer, Settings, answer
from amends.stores.contract import Transaction

__all__ = ["install", "once", "respond", "response_of"]


def install(
    app: Starlette,
    *,
    pages: str | None = "/errors",
    base_url: str | None = None,
    settings: Settings | None = None,
) -> Settings:
    """
    Answer every failure of `app` with problem details. Before it serves its first request.

    Args:
        app: the application.
        pages: where the pages about codes are; None: nowhere.
        base_url: the address callers know the application by, where the request's own is not it.
        settings: all of these at once, instead.

    """
    if app.middleware_stack is not None:
        raise RuntimeError("install before the application serves its first request")
    settings = settings or Settings(pages=pages, base_url=base_url)
    app.user_middleware.append(Middleware(Problems, settings=settings))

    async def http_failure(request: Request, exc: Exception) -> Response:
        assert isinstance(exc, HTTPException)
        if exc.status_code < 400 or exc.status_code in {204, 304}:
            return Response(status_code=exc.status_code, headers=exc.headers)
        detail: Any = exc.detail  # FastAPI lets it be anything
        fault = of_status(exc.status_code, detail if isinstance(detail, str) else None)
        if isinstance(detail, dict | list) and detail:
            fault = replace(fault, details=detail if isinstance(detail, dict) else {"detail": detail})
        fault = waiting(fault, exc.headers)
        return respond(request, fault, settings, headers=exc.headers)

    async def typed(request: Request, exc: Exception) -> Response:
        # Problems would do the same; here fewer layers have been left behind.
        assert isinstance(exc, FaultError)
        passed_on = exc if exc.fault.origin is not None else None
        return respond(request, fault_for(exc), settings, cause=passed_on)

    async def failure(request: Request, exc: Exception) -> Response:
        # Raised by middleware outside of Problems: the last place where it can be told.
        return respond(request, fault_for(exc), settings, cause=exc)

    app.exception_handlers.setdefault(HTTPException, http_failure)
    app.exception_handlers.setdefault(FaultError, typed)
    app.exception_handlers.setdefault(Exception, failure)
    return settings


def respond(
    request: Request,
    fault: Fault,
    settings: Settings,
    *,
    headers: Any = None,
    cause: BaseException | None = None,
) -> Response:
    """A fault as a response to `request`."""
    request.scope[FAULT] = fault
    more = list(headers.items()) if headers else ()
    return response_of(answer(fault, asked(request.scope), settings, headers=more, cause=cause))


def response_of(found: Answer) -> Response:
    """An answer as a Starlette response."""
    return _Answered(found)


async def once(request: Request, work: Callable[[Transaction], Any], *, status: int = 200) -> Response:
    """Same as `amends.http.idempotency.commit`, but answers `request` with the result."""
    from amends.http.idempotency import commit

    number, body = await commit(request.scope, work, status=status)
    return Response(body, number, media_type="application/json")


class _Answered(Response):
    """A response whose headers and body are final already."""

    def __init__(self, found: Answer) -> None:
        self.status_code = found.status
        self.body = found.body
        self.background = None
        self.raw_headers = encoded(found.headers)
