"""
Problem details for Flask.

    from amends.bindings.flask import install

    install(app)

Handles FaultErrors, werkzeug's HTTP exceptions (including 404 and 405, with their headers) and unexpected exceptions.
`after_request` functions run as for any other response, so CORS and security headers are added. Error handlers that the
application registered stay.
"""

from __future__ import annotations

from typing import Any

try:
    from flask import Flask, Response, request
    from werkzeug.exceptions import HTTPException
except ImportError as missing:
    raise ImportError("amends.bindings.flask needs Flask: pip install flask") from missing

from amends.errors.base import FaultError
from amends.http.application_errors import fault_for, fault_from_status, is_expected, with_header_wait
from amends.http.responses import RawResponse, RequestInfo, Settings, error_response

__all__ = ["install"]


def install(
    app: Flask,
    *,
    pages: str | None = "/errors",
    base_url: str | None = None,
    settings: Settings | None = None,
) -> Settings:
    """
    Answer every failure of `app` with problem details.

    Args:
        app: the application.
        pages: the path of the error pages; None serves none.
        base_url: the URL that callers use for the application, if it differs from the request's own.
        settings: all settings in one value, instead of the other arguments.

    """
    settings = settings or Settings(pages=pages, base_url=base_url)

    def handle_http_exception(exc: HTTPException) -> Any:
        status = exc.code or 500
        if status < 400 or exc.response is not None:
            # A redirect, or an exception with a response of its own.
            return exc.get_response()
        # werkzeug's default descriptions are written for pages; the code's own message replaces them.
        detail = exc.description if exc.description != type(exc).description else None
        headers = [(name, value) for name, value in exc.get_headers() if name.lower() != "content-type"]
        original = getattr(exc, "original_exception", None)
        fault = with_header_wait(fault_from_status(status, detail), dict(headers))
        return _response(error_response(fault, _request_info(), settings, headers=headers, cause=original))

    def handle_exception(exc: Exception) -> Response:
        cause = None if is_expected(exc) else exc
        return _response(error_response(fault_for(exc), _request_info(), settings, cause=cause))

    registered = app.error_handler_spec[None][None]
    if HTTPException not in registered:
        app.register_error_handler(HTTPException, handle_http_exception)
    for kind in (FaultError, Exception):
        if kind not in registered:
            app.register_error_handler(kind, handle_exception)
    return settings


def _request_info() -> RequestInfo:
    headers = request.headers
    return RequestInfo(
        method=request.method,
        path=request.path,
        root=request.root_path.rstrip("/"),
        scheme=request.scheme,
        host=headers.get("Host", ""),
        accept=headers.get("Accept"),
        traceparent=headers.get("traceparent"),
    )


def _response(found: RawResponse) -> Response:
    response = Response(found.body, found.status)
    response.headers.clear()
    response.headers.extend(found.headers)
    return response
