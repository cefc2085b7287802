"""Complete and check a Fault that was written by hand: look up the fields left out, refuse values of a wrong type."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec.structs import force_setattr

from amends.core.enums import Actor, Executed, Recovery
from amends.core.hints import finite
from amends.core.validate import check_seconds
from amends.core.vocabulary import row_for
from amends.core.wire import plain

if TYPE_CHECKING:
    from amends.core.fault import Fault

__all__ = ["fill"]

_TYPES: dict[str, type] = {
    "code": str,
    "message": str,
    "vocabulary": str,
    "strategy": str,
    "max_retries": int,
    "field": str,
    "details": dict,
    "trace_id": str,
    "doc_uri": str,
    "type": str,
    "title": str,
    "status": int,
    "instance": str,
    "intent": dict,
    "user_message": str,
    "attempt": int,
    "max_attempts": int,
    "extensions": dict,
}

_REQUIRED = frozenset({"message", "vocabulary", "extensions"})
"""Fields that may be empty but not None."""

_Member = TypeVar("_Member", bound=StrEnum)


def fill(fault: Fault) -> None:
    """
    Set the fields that come from the table, and convert all fields to their final types.

    Called while the Fault is constructed.

    Raises:
        TypeError, ValueError: if a value has a wrong type or is not possible; the message says what is.

    """
    given: Any = fault  # its values need not have the annotated types
    if not isinstance(given.code, str) or not given.code:
        raise ValueError(f"code is a non-empty string, not {given.code!r}")
    for name, expected in _TYPES.items():
        value = getattr(given, name)
        # A value of exactly this type needs no conversion; a bool or an enum member is not of it.
        if type(value) is expected or (value is None and name not in _REQUIRED):
            continue
        if not isinstance(value, expected) or isinstance(value, bool):
            raise TypeError(f"{name} is {expected.__name__}, not {type(value).__name__}")
        if expected is not dict:
            force_setattr(fault, name, plain(value))
    if not isinstance(given.fatal, bool):
        raise TypeError(f"fatal is bool, not {type(given.fatal).__name__}")
    row = row_for(fault.vocabulary, fault.code, fault.status)
    if given.retry_after is not None:
        check_seconds("retry_after", given.retry_after)
        if finite(given.retry_after) is None:
            raise ValueError(f"retry_after is a finite number of seconds, not {given.retry_after!r}")
        _set(fault, "retry_after", plain(given.retry_after))
    _set(fault, "recovery", _member("recovery", given.recovery, Recovery, row.recovery))
    _set(fault, "executed", _member("executed", given.executed, Executed, row.executed))
    _set(fault, "actor", _member("actor", given.actor, Actor, row.actor))
    if given.suggestions != ():
        # A lone string is taken as one suggestion; iterating over it would give its letters.
        steps = (given.suggestions,) if isinstance(given.suggestions, str) else given.suggestions
        _set(fault, "suggestions", tuple(plain(step) for step in _all(steps, str, "suggestions are strings")))
    if given.errors != ():
        _set(fault, "errors", _all(given.errors, type(fault), "errors are Faults"))


def _set(fault: Fault, name: str, value: Any) -> None:
    if getattr(fault, name) is not value:
        force_setattr(fault, name, value)


def _all(items: Any, expected: type, rule: str) -> tuple[Any, ...]:
    """Return the items as a tuple, after checking the type of each."""
    found = tuple(items)
    for item in found:
        if not isinstance(item, expected):
            raise TypeError(f"{rule}, not {type(item).__name__}")
    return found


def _member(name: str, value: Any, members: type[_Member], default: _Member) -> _Member:
    """Return the member for a member or its value; the default for None."""
    if value is None:
        return default
    if isinstance(value, members):
        return value
    try:
        return members(value)
    except ValueError:
        raise ValueError(f"{name} is one of {', '.join(members)}, not {value!r}") from None
