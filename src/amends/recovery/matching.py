"""
`on=`: which exceptions are repeated, as classes or as a function of the exception.

Without `on`, the exception's fault decides (`amends.from_exception`). With `on`, exactly the exceptions that match are
repeated, within the same limits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from amends.core.validate import in_seconds

if TYPE_CHECKING:
    from datetime import timedelta

__all__ = ["On", "check_on", "is_unregistered_bug", "matches"]

On = type[BaseException] | tuple[type[BaseException], ...] | Callable[[Any], "bool | float | timedelta"]
"""
An exception class, a tuple of them, or a function that gets the exception and returns whether it is repeated: True, False,
or the seconds to wait before the repeat.
"""


def check_on(on: Any) -> None:
    """
    Check the option `on`.

    Raises:
        TypeError: it is neither exception classes nor a function.

    """
    classes = on if isinstance(on, tuple) else (on,) if isinstance(on, type) else ()
    for each in classes:
        if not (isinstance(each, type) and issubclass(each, BaseException)):
            raise TypeError(f"on names exception classes, not {each!r}: write on=(ConnectionError, OSError)")
    if on is not None and not classes and not callable(on):
        raise TypeError(
            f"on is an exception class, a tuple of them, or a function of the exception, not {type(on).__name__}"
        )


def matches(on: On, error: BaseException) -> tuple[bool, float | None]:
    """
    Return whether `on` names the exception, and the seconds to wait if its function gave them.

    A bug (M7: KeyError, TypeError, AttributeError …) matches only if `on` names its class or a base class of it that is
    itself such a class: `on=Exception` does not match it, `on=KeyError` does.
    """
    from amends.foreign.bugs import is_bug_class

    bug = is_unregistered_bug(error)
    if isinstance(on, type | tuple):
        classes = on if isinstance(on, tuple) else (on,)
        named = any(
            isinstance(error, each) and (not bug or is_bug_class(each, in_handler=False)) for each in classes
        )
        return named, None
    if bug:
        return False, None
    answer = on(error)
    if isinstance(answer, bool) or not (isinstance(answer, int | float) or hasattr(answer, "total_seconds")):
        return bool(answer), None
    return True, max(0.0, in_seconds("on", answer))


def is_unregistered_bug(error: BaseException) -> bool:
    """Return whether the exception is a bug of the called code, and the application registered no other meaning."""
    from amends.foreign.bugs import is_bug
    from amends.foreign.registry import registered_fault

    return is_bug(error, in_handler=False) and registered_fault(type(error)) is None
