"""The exception behind a plain 500 that a framework below has answered, for the middlewares around it."""

from __future__ import annotations

import sys
from contextvars import ContextVar

from amends.errors.base import FaultError

__all__ = ["begin_request", "handled_exception", "watch_quart"]

_HANDLED: ContextVar[list[BaseException] | None] = ContextVar("amends_http_handled", default=None)
"""Exceptions that Quart handled in the current request."""


def handled_exception(around: BaseException | None = None) -> BaseException | None:
    """
    Return the exception that the application has handled or is handling; None if that is `around`.

    Starlette, FastAPI and Litestar send their plain 500 while they handle the exception. Quart sends it afterwards.
    """
    seen = _HANDLED.get()
    exc = seen[-1] if seen else sys.exception()
    return None if exc is around else exc


def watch_quart(app: object) -> bool:
    """
    Remember the exceptions that Quart applications handle; return whether Quart is loaded.

    Quart is not imported: an application that uses it has loaded it already. It may be below other middleware, or mounted,
    so the applications are not looked for: Quart sends a signal for each of them.
    """
    quart = sys.modules.get("quart")
    if quart is None:
        return False
    quart.got_request_exception.connect(_remember, weak=False)
    found = _innermost(app)
    if isinstance(found, quart.Quart) and FaultError not in found.error_handler_spec[None][None]:
        # Without a handler Quart logs typed errors as unexpected ones.
        found.register_error_handler(FaultError, _handle)
    return True


def begin_request() -> None:
    """Forget the exceptions of other requests."""
    _HANDLED.set([])


def _innermost(app: object) -> object:
    """Return the application inside of middleware that keeps it as `app`, and of Quart's own method `asgi_app`."""
    for _ in range(_LEVELS):
        inside = getattr(app, "__self__", None) or getattr(app, "app", None)
        if inside is None:
            break
        app = inside
    return app


_LEVELS = 32


def _remember(sender: object, exception: BaseException, **_: object) -> None:
    seen = _HANDLED.get()
    if seen is not None:
        seen.append(exception)


async def _handle(error: FaultError) -> object:
    _remember(None, error)
    return "", 500
