"""
Problem details for Starlette.

    from amends.bindings.starlette import install

    install(app)

`install` adds the `Problems` middleware innermost, so that CORS and security headers are also added to error responses.
An `HTTPException` (including 404 and 405) keeps its headers. Exception handlers that the application registered stay: a
handler for `Exception` or 500 is called for exceptions that have no code of their own, with Starlette's usual rules.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

try:
    from starlette.applications import Starlette
    from starlette.exceptions import HTTPException
    from starlette.middleware import Middleware
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send
except ImportError as missing:
    raise ImportError("amends.bindings.starlette needs an extra: pip install 'amends[server]'") from missing

from msgspec.structs import replace

from amends.bindings.asgi import Problems, serve_socket
from amends.core.fault import Fault
from amends.core.wrong_calls import explains_wrong_calls
from amends.errors.base import FaultError
from amends.http.application_errors import (
    details_from,
    fault_from_status,
    has_code,
    with_header_wait,
)
from amends.http.asgi import FAULT, LATE, encode_headers, exception_answer, request_info
from amends.http.idempotency import commit
from amends.http.responses import RawResponse, Settings, error_response
from amends.stores.contract import Transaction

__all__ = ["install", "once", "respond"]


@explains_wrong_calls
def install(
    app: Starlette,
    *,
    pages: str | None = "/errors",
    base_url: str | None = None,
    hosts: Sequence[str] | None = None,
    errors: Mapping[type[BaseException], str] | None = None,
    settings: Settings | None = None,
) -> Settings:
    """
    Answer every failure of `app` with problem details. Call it before the application serves its first request.

        app = Starlette(routes=[...])
        install(app, base_url="https://shop.example")

    Args:
        app: the application.
        pages: the path of the error pages; None serves none.
        base_url: the URL that callers use for the application; `type` and `doc_uri` begin with it.
        hosts: without a `base_url`, the `Host` names that these URLs may be made from (see `Settings.hosts`).
        errors: the codes of exception classes of yours, `{SeatTaken: "CONFLICT"}`.
        settings: all settings in one value, instead of the other arguments.

    Raises:
        RuntimeError: the application has served a request already.

    """
    if app.middleware_stack is not None:
        raise RuntimeError("install before the application serves its first request")
    settings = settings or Settings(pages=pages, base_url=base_url, hosts=hosts, errors=errors or {})

    async def handle_http_exception(request: Request, exc: Exception) -> Response:
        assert isinstance(exc, HTTPException)
        if exc.status_code < 400 or exc.status_code in {204, 304}:
            return Response(status_code=exc.status_code, headers=exc.headers)
        detail: object = exc.detail  # in FastAPI any value, in Starlette a string
        fault = fault_from_status(exc.status_code, detail if isinstance(detail, str) else None, exc)
        details = details_from(exc.status_code, detail, exc)
        if details is not None:
            fault = replace(fault, details=details)
        headers = (exc.headers or {}).items()
        return respond(request, with_header_wait(fault, exc.headers), settings, headers=headers)

    async def handle_exception(request: Request, exc: Exception) -> Response:
        if request.scope.get(LATE) is exc:
            # Starlette calls the handler although the response has begun, and does not send what it returns.
            return Response(status_code=500)
        return _response(exception_answer(request.scope, exc, settings))

    handlers = app.exception_handlers

    def passes(exc: BaseException) -> bool:
        """Leave an exception without a code of its own to a handler for `Exception` or 500 of the application."""
        # Starlette calls the last one that was registered.
        last = [handler for kind, handler in handlers.items() if kind in {500, Exception}][-1:]
        return last != [handle_exception] and not has_code(exc, settings)

    app.user_middleware.append(Middleware(Problems, settings=settings, passes=passes))
    handlers.setdefault(HTTPException, handle_http_exception)
    # A FaultError would also reach `Problems`; handled here it passes through fewer layers.
    handlers.setdefault(FaultError, handle_exception)
    if 500 not in handlers:
        # Unexpected exceptions of middleware outside `Problems`.
        handlers.setdefault(Exception, handle_exception)
    build = app.build_middleware_stack

    def build_middleware_stack() -> ASGIApp:
        # Around all middleware, also around that which was added after `install`. `Problems` alone raises no typed errors.
        if len(app.user_middleware) > 1:
            app.user_middleware.insert(0, Middleware(_TypedErrors, settings=settings))
        return build()

    app.build_middleware_stack = build_middleware_stack  # type: ignore[method-assign]
    return settings


class _TypedErrors:
    """
    Answers errors with a code of their own that middleware raises.

    Starlette would answer them too, but raise them again to the server, which logs them as unexpected.
    """

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self.app, self.settings = app, settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "websocket":
                await serve_socket(self.app, scope, receive, send, self.settings)
            else:
                await self.app(scope, receive, send)
            return
        started = False

        def watch(message: Message) -> Awaitable[None]:
            nonlocal started
            started = True
            return send(message)

        try:
            await self.app(scope, receive, watch)
        except Exception as exc:
            if started or not has_code(exc, self.settings):
                raise
            await _response(exception_answer(scope, exc, self.settings))(scope, receive, send)


def respond(
    request: Request,
    fault: Fault,
    settings: Settings,
    *,
    headers: Iterable[tuple[str, str]] = (),
    cause: BaseException | None = None,
) -> Response:
    """
    Return the response for a fault. The arguments are those of `amends.http.responses.error_response`.

    Use it in an exception handler of your own.

    >>> request = Request({"type": "http", "method": "GET", "path": "/orders/41", "query_string": b"", "headers": []})
    >>> respond(request, Fault(code="NOT_FOUND"), Settings()).status_code
    404
    """
    request.scope[FAULT] = fault
    return _response(
        error_response(fault, request_info(request.scope), settings, headers=list(headers), cause=cause)
    )


def _response(found: RawResponse) -> Response:
    response = Response(found.body, found.status)
    response.raw_headers = encode_headers(found.headers)
    return response


@explains_wrong_calls
async def once(request: Request, work: Callable[[Transaction], object], *, status: int = 200) -> Response:
    """
    Same as `amends.http.idempotency.commit`, but returns the response to `request`.

    Use it in a handler below `Idempotent(transactional=True)`.

        async def place(request: Request) -> Response:
            def work(tx: Transaction) -> object:
                tx.sql("INSERT INTO orders VALUES ('book')")
                return {"placed": "book"}

            return await once(request, work, status=201)
    """
    committed_status, body = await commit(request.scope, work, status=status)
    return Response(body, committed_status, media_type="application/json")
