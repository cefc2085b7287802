"""Reading attributes of objects whose properties may raise anything."""

from __future__ import annotations

from types import TracebackType
from typing import TypeGuard

__all__ = ["attribute", "inner_exception", "is_exception"]


def attribute(holder: object, name: str) -> object:
    """Return an attribute, or None if it is missing or if reading it raises an exception."""
    try:
        return getattr(holder, name, None)
    except Exception:  # noqa: BLE001 - a property may raise anything
        return None


def is_exception(value: object) -> TypeGuard[BaseException]:
    """Return whether a value is an exception. Not isinstance: it reads `__class__`, which may raise."""
    return issubclass(type(value), BaseException)


def inner_exception(exc: BaseException) -> BaseException | None:
    """
    Return the exception that `exc` wraps, or None.

    It looks where libraries keep it: SQLAlchemy in `orig`, urllib and urllib3 in `reason`, aiohttp in `os_error`,
    azure-core in `inner_exception`, requests among the arguments, most others in `__cause__`. The `__context__` counts only if `exc` was raised in the
    frame that caught it; otherwise it may be an unrelated failure.
    """
    arguments = attribute(exc, "args")
    held = (
        *(attribute(exc, name) for name in ("orig", "reason", "os_error", "inner_exception", "__cause__")),
        *(arguments[:2] if isinstance(arguments, tuple) else ()),
        _caught_exception(exc),
    )
    return next((item for item in held if is_exception(item) and item is not exc), None)


def _caught_exception(exc: BaseException) -> BaseException | None:
    """Return the `__context__` of `exc` if the same frame caught the one and raised the other."""
    context, raised = attribute(exc, "__context__"), attribute(exc, "__traceback__")
    caught = attribute(context, "__traceback__")
    if not isinstance(caught, TracebackType) or not isinstance(raised, TracebackType):
        return None
    while raised.tb_next is not None:
        raised = raised.tb_next
    return context if raised.tb_frame is caught.tb_frame and is_exception(context) else None
