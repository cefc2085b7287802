"""The exception behind a plain 500 that a framework below has answered, for the middlewares around it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextvars import ContextVar, Token

from amends.errors.base import FaultError

__all__ = ["begin_request", "end_request", "handled_exception", "remembered_exception", "watch_frameworks"]

_HANDLED: ContextVar[list[BaseException] | None] = ContextVar("amends_http_handled", default=None)
"""Exceptions that Quart and Litestar handled in the current request."""


def handled_exception(around: BaseException | None = None) -> BaseException | None:
    """
    Return the exception that the application has handled or is handling; None if that is `around`.

    Starlette, FastAPI and Litestar send their plain 500 while they handle the exception, but other middleware may pass it
    on in another task. Quart sends it afterwards.
    """
    seen = _HANDLED.get()
    exc = seen[-1] if seen else sys.exception()
    return None if exc is around else exc


def remembered_exception() -> BaseException | None:
    """Return the exception that Quart or Litestar has handled, also in a WebSocket; not one that a handler itself caught."""
    seen = _HANDLED.get()
    return seen[-1] if seen else None


def watch_frameworks(app: object) -> bool:
    """
    Remember the exceptions that Quart and Litestar applications handle; return whether there may be any.

    Neither is imported: an application that uses one has loaded it already. Quart sends a signal for each application,
    wherever it is. Litestar calls hooks of the application, which is looked for in middleware and mounts.
    """
    quart, litestar = sys.modules.get("quart"), sys.modules.get("litestar")
    if quart is not None:
        quart.got_request_exception.connect(_remember, weak=False)
        quart.got_websocket_exception.connect(_remember, weak=False)
    watched = quart is not None
    for found in _applications(app) if quart or litestar else ():
        if quart and isinstance(found, quart.Quart):
            if FaultError not in found.error_handler_spec[None][None]:
                # Without a handler Quart logs typed errors as unexpected ones.
                found.register_error_handler(FaultError, _handle)
        elif litestar and isinstance(found, litestar.Litestar):
            watched = True
            if _remember_hook not in found.after_exception:
                found.after_exception.append(_remember_hook)
    return watched


def begin_request() -> Token[list[BaseException] | None]:
    """Forget the exceptions of other requests, until `end_request` is called with the result."""
    return _HANDLED.set([])


def end_request(token: Token[list[BaseException] | None]) -> None:
    """Return to the request that this one was made in, by a client in the same process."""
    _HANDLED.reset(token)


def _applications(app: object) -> Iterator[object]:
    """Yield what is inside of middleware that keeps it as `app`, of mounts, and of Quart's own method `asgi_app`."""
    seen: set[int] = set()
    layer = [app]
    for _ in range(_LEVELS + 1):
        below: list[object] = []
        for each in layer:
            if each is None or id(each) in seen:
                continue
            seen.add(id(each))
            yield each
            below.append(getattr(each, "__self__", None) or getattr(each, "app", None))
            routes = getattr(each, "routes", None)
            if isinstance(routes, list):
                below += [getattr(route, "app", None) for route in routes]
        layer = below


_LEVELS = 32


def _remember(sender: object, exception: BaseException, **_: object) -> None:
    seen = _HANDLED.get()
    if seen is not None:
        seen.append(exception)


async def _remember_hook(exception: BaseException, scope: object) -> None:
    _remember(scope, exception)


async def _handle(error: FaultError) -> object:
    _remember(None, error)
    return "", 500
