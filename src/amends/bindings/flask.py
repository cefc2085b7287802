"""
Flask: one call, and every failure is problem details.

    from amends.bindings.flask import install

    install(app)

Raised FaultErrors, werkzeug's HTTP exceptions (404 and 405 among them, their headers kept) and exceptions nobody
expected. `after_request` functions run as for any response, so CORS and security headers are there; error handlers
that you registered yourself stay.
"""

from __future__ import annotations

from typing import Any

try:
    from flask import Flask, Response, request
    from werkzeug.exceptions import HTTPException
except ImportError as missing:
    raise ImportError("amends.bindings.flask needs Flask: pip install flask") from missing

from amends.errors.base import FaultError
from amends.http.application_errors import fault_for, of_status, waiting
from amends.http.responses import Answer, Asked, Settings, answer

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
        pages: where the pages about codes are; None: nowhere.
        base_url: the address callers know the application by, where the request's own is not it.
        settings: all of these at once, instead.

    """
    settings = settings or Settings(pages=pages, base_url=base_url)

    def http_failure(exc: HTTPException) -> Any:
        status = exc.code or 500
        if status < 400 or exc.response is not None:
            # A redirect, or a response its author made.
            return exc.get_response()
        # werkzeug's own sentences are for people who look at a page; an author's own are kept.
        own = exc.description if exc.description != type(exc).description else None
        headers = [(name, value) for name, value in exc.get_headers() if name.lower() != "content-type"]
        original = getattr(exc, "original_exception", None)
        fault = waiting(of_status(status, own), dict(headers))
        return _response(answer(fault, _asked(), settings, headers=headers, cause=original))

    def failure(exc: Exception) -> Response:
        expected = isinstance(exc, FaultError) and exc.fault.origin is None
        return _response(answer(fault_for(exc), _asked(), settings, cause=None if expected else exc))

    handlers = app.error_handler_spec[None][None]
    if HTTPException not in handlers:
        app.register_error_handler(HTTPException, http_failure)
    for kind in (FaultError, Exception):
        if kind not in handlers:
            app.register_error_handler(kind, failure)
    return settings


def _asked() -> Asked:
    headers = request.headers
    return Asked(
        method=request.method,
        path=request.path,
        root=request.root_path.rstrip("/"),
        scheme=request.scheme,
        host=headers.get("Host", ""),
        accept=headers.get("Accept"),
        traceparent=headers.get("traceparent"),
    )


def _response(found: Answer) -> Response:
    response = Response(found.body, found.status)
    response.headers.clear()
    response.headers.extend(found.headers)
    return response
