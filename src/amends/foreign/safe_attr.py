"""Looking at objects that may answer anything, or raise it."""

from __future__ import annotations

from typing import Any

__all__ = ["attribute", "within"]


def attribute(holder: Any, name: str) -> Any:
    """An attribute, or None: looking at one runs foreign code, and whatever that raises, there is nothing to see."""
    try:
        return getattr(holder, name, None)
    except Exception:  # noqa: BLE001 - a property may raise anything
        return None


def within(exc: BaseException) -> BaseException | None:
    """
    The exception that another one wraps, or None.

    Where libraries keep it: SQLAlchemy in `orig`, urllib and urllib3 in `reason`, aiohttp in `os_error`, requests
    among the arguments, most of them in `__cause__`. What was merely being handled (`__context__`) counts only if the
    wrapper was raised in the very frame that had caught it: otherwise it may be somebody else's failure.
    """
    arguments = attribute(exc, "args")
    held = (
        *(attribute(exc, name) for name in ("orig", "reason", "os_error", "__cause__")),
        *(arguments[:2] if type(arguments) is tuple else ()),
        _handled(exc),
    )
    return next((item for item in held if issubclass(type(item), BaseException) and item is not exc), None)


def _handled(exc: BaseException) -> BaseException | None:
    context, raised = attribute(exc, "__context__"), attribute(exc, "__traceback__")
    caught = attribute(context, "__traceback__")
    if caught is None or raised is None:
        return None
    while raised.tb_next is not None:
        raised = raised.tb_next
    return context if raised.tb_frame is caught.tb_frame else None
