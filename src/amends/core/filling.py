"""Completing a Fault that was written by hand: looks up what was left out, refuses what cannot be meant."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec.structs import force_setattr

from amends.core.hints import finite
from amends.core.terms import Actor, Executed, Recovery
from amends.core.vocabulary import row_for

if TYPE_CHECKING:
    from amends.core.fault import Fault

__all__ = ["fill"]

# What a field may be when a person wrote it; decoders give nothing else anyway.
_KINDS: dict[str, tuple[type, ...]] = {
    "message": (str,),
    "vocabulary": (str,),
    "retry_after": (int, float),
    "strategy": (str,),
    "max_retries": (int,),
    "field": (str,),
    "details": (dict,),
    "trace_id": (str,),
    "doc_uri": (str,),
    "type": (str,),
    "title": (str,),
    "status": (int,),
    "instance": (str,),
    "intent": (dict,),
    "user_message": (str,),
    "attempt": (int,),
    "max_attempts": (int,),
    "extensions": (dict,),
}

_NEEDED = frozenset({"message", "extensions"})
"""Fields that are empty when there is nothing to say, never None."""

_Word = TypeVar("_Word", bound=StrEnum)


def fill(fault: Fault) -> None:
    """
    Give `fault` its table values, and its fields their final types. Runs while the Fault is being made.

    Raises:
        TypeError, ValueError: when a value cannot be meant; the message says what is possible.

    """
    given: Any = fault  # what a person wrote need not be what the annotations say
    if not isinstance(given.code, str) or not given.code:
        raise ValueError(f"code is a non-empty string, not {given.code!r}")
    for name, kinds in _KINDS.items():
        value = getattr(fault, name)
        if value is None and name not in _NEEDED:
            continue
        if not isinstance(value, kinds) or isinstance(value, bool):
            wanted = " or ".join(kind.__name__ for kind in kinds)
            raise TypeError(f"{name} is {wanted}, not {type(value).__name__}")
    if fault.retry_after is not None and finite(fault.retry_after) is None:
        raise ValueError(f"retry_after is a finite number of seconds, not {fault.retry_after!r}")
    row = row_for(fault.vocabulary, fault.code, fault.status)
    _set(fault, "recovery", Recovery, row.recovery)
    _set(fault, "executed", Executed, row.executed)
    _set(fault, "actor", Actor, row.actor)
    # A lone string is what people mean by one suggestion, and iterating it would give letters.
    steps = (given.suggestions,) if isinstance(given.suggestions, str) else given.suggestions
    force_setattr(fault, "suggestions", _all(steps, str, "suggestions are strings"))
    force_setattr(fault, "errors", _all(given.errors, type(fault), "errors are Faults"))


def _all(items: Any, kind: type, rule: str) -> tuple[Any, ...]:
    """The items as a tuple, each of one kind."""
    found = tuple(items)
    for item in found:
        if not isinstance(item, kind):
            raise TypeError(f"{rule}, not {type(item).__name__}")
    return found


def _set(fault: Fault, name: str, word: type[_Word], default: _Word) -> None:
    """Set a closed word from its string, its member, or the table's default."""
    value: Any = getattr(fault, name)
    if value is None:
        value = default
    try:
        force_setattr(fault, name, word(value))
    except ValueError:
        raise ValueError(f"{name} is one of {', '.join(word)}, not {value!r}") from None
