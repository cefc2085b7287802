"""
Problem details for Flask.

    from amends.bindings.flask import install

    install(app)

Handles FaultErrors, werkzeug's HTTP exceptions (including 404 and 405, with their headers) and unexpected exceptions.
`after_request` functions run as for any other response, so CORS and security headers are added. Error handlers that the
application registered stay: a handler for 500 is called for exceptions that have no code of their own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

try:
    from flask import Flask, Response, request
    from werkzeug.exceptions import HTTPException
except ImportError as missing:
    raise ImportError("amends.bindings.flask needs Flask: pip install flask") from missing

from amends.core.wrong_calls import explains_wrong_calls
from amends.errors.base import FaultError
from amends.http.application_errors import (
    exception_response,
    fault_from_status,
    has_code,
    with_header_wait,
)
from amends.http.asgi import FAULT
from amends.http.bodies import rewrite
from amends.http.current import CURRENT
from amends.http.first_chunk import Begun, may_begin
from amends.http.responses import RawResponse, Settings, error_response
from amends.http.wsgi import request_info
from amends.recovery.clock import CLOCK

__all__ = ["install"]

_STREAM = "amends.http.stream"
"""The member of the environment with the headers of a stream that failed."""
_OF_STREAM = frozenset({"content-type", "content-length"})
_REMEMBERED = "amends.http.current"
"""The member of the environment that resets the current request when it ends."""


@explains_wrong_calls
def install(
    app: Flask,
    *,
    pages: str | None = "/errors",
    base_url: str | None = None,
    hosts: Sequence[str] | None = None,
    errors: Mapping[type[BaseException], str] | None = None,
    settings: Settings | None = None,
) -> Settings:
    """
    Answer every failure of `app` with problem details.

    >>> from flask import Flask
    >>> app = Flask("shop")
    >>> _ = install(app)
    >>> answer = app.test_client().get("/nowhere").json
    >>> answer["code"], answer["is_retriable"]
    ('NOT_FOUND', False)

    Args:
        app: the application.
        pages: the path of the error pages; None serves none.
        base_url: the URL that callers use for the application; `type` and `doc_uri` begin with it.
        hosts: without a `base_url`, the `Host` names that these URLs may be made from (see `Settings.hosts`).
        errors: the codes of exception classes of yours, `{SeatTaken: "CONFLICT"}`.
        settings: all settings in one value, instead of the other arguments.

    """
    settings = settings or Settings(pages=pages, base_url=base_url, hosts=hosts, errors=errors or {})

    def is_typed(exc: BaseException) -> bool:
        """Return whether an exception has a code of its own."""
        return has_code(exc, settings)

    def handle_http_exception(exc: HTTPException) -> Any:
        status = exc.code or 500
        if status < 400 or exc.response is not None:
            # A redirect, or an exception with a response of its own.
            return exc.get_response()
        original = getattr(exc, "original_exception", None)
        if original is not None and is_typed(original):
            # Raised by an `after_request` function; Flask wraps it in its own exception for 500.
            return handle_exception(original)
        # werkzeug's default descriptions are written for pages; the code's own message replaces them.
        detail = exc.description if exc.description != type(exc).description else None
        headers = [(name, value) for name, value in exc.get_headers() if name.lower() != "content-type"]
        fault = with_header_wait(
            fault_from_status(status, detail, exc if original is None else None), dict(headers)
        )
        request.environ[FAULT] = fault
        headers += request.environ.get(_STREAM, ())
        return _response(
            error_response(fault, request_info(request.environ), settings, headers=headers, cause=original)
        )

    def handle_exception(exc: Exception) -> Response:
        if not is_typed(exc) and any(
            app.error_handler_spec.get(name, {}).get(500) for name in (*request.blueprints, None)
        ):
            # Flask calls the application's handler for 500.
            raise exc
        request.environ[FAULT], found = exception_response(
            exc, request_info(request.environ), settings, request.environ.get(_STREAM, ())
        )
        return _response(found)

    def remember_request() -> None:
        request.environ[_REMEMBERED] = CURRENT.set((request_info, request.environ, settings, CLOCK.now()))

    def forget_request(_: BaseException | None) -> None:
        token = request.environ.pop(_REMEMBERED, None)
        if token is not None:
            with suppress(ValueError):  # the context of another task or thread, which ends with it
                CURRENT.reset(token)

    def complete_empty(response: Response) -> Response:
        """Replace an error response without a body, such as `return "", 409`, by a problem document."""
        # The length of a response that is not streamed; a proxied body, or one of a file, is the application's own.
        if response.status_code < 400 or not response.is_sequence or response.calculate_content_length():
            return response
        found = rewrite(
            response.status_code, response.headers.items(), b"", request_info(request.environ), settings
        )
        if found is None:
            return response
        request.environ[FAULT], replacement = found
        return _response(replacement)

    def begin_stream(response: Response) -> Response:
        """Run a stream up to its first chunk, and answer what it raises until then: nothing has been sent yet."""
        chunks: Any = response.response
        if (
            response.is_sequence
            or response.direct_passthrough  # a file
            or chunks is None
            or not may_begin(request.method, response.content_type or "")
        ):
            return response
        try:
            response.response = Begun(chunks)
        except Exception as exc:  # noqa: BLE001 - answered like that of a view
            with suppress(Exception):
                response.close()
            request.environ[_STREAM] = [
                (name, value) for name, value in response.headers.items() if name.lower() not in _OF_STREAM
            ]
            try:
                answer = app.handle_user_exception(exc)
            except Exception as unhandled:  # noqa: BLE001 - of the application's handler for 500, or its debugger's
                answer = app.handle_exception(unhandled)
            return app.make_response(answer)
        return response

    app.before_request(remember_request)
    # Flask calls them in the reverse order, and after those that the application registers later.
    app.after_request(begin_stream)
    app.after_request(complete_empty)
    app.teardown_request(forget_request)
    registered = app.error_handler_spec[None][None]
    if HTTPException not in registered:
        app.register_error_handler(HTTPException, handle_http_exception)
    for kind in (FaultError, *settings.errors, Exception):
        if kind not in registered:
            app.register_error_handler(kind, handle_exception)  # type: ignore[arg-type]
    return settings


def _response(found: RawResponse) -> Response:
    response = Response(found.body, found.status)
    response.headers.clear()
    response.headers.extend(found.headers)
    return response
