"""Completing a Fault that was written by hand: looks up what was left out, refuses what cannot be meant."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec.structs import force_setattr

from amends.core.enums import Actor, Executed, Recovery
from amends.core.hints import finite
from amends.core.validate import check_seconds
from amends.core.vocabulary import row_for

if TYPE_CHECKING:
    from amends.core.fault import Fault

__all__ = ["fill"]

# What a field may be when a person wrote it; decoders give nothing else anyway.
_KINDS: dict[str, tuple[type, ...]] = {
    "message": (str,),
    "vocabulary": (str,),
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
    if not _ordinary(given):
        _check(fault)
    if fault.retry_after is not None:
        check_seconds("retry_after", fault.retry_after)
        if finite(fault.retry_after) is None:
            raise ValueError(f"retry_after is a finite number of seconds, not {fault.retry_after!r}")
    row = row_for(fault.vocabulary, fault.code, fault.status)
    _set(fault, "recovery", given.recovery, Recovery, row.recovery)
    _set(fault, "executed", given.executed, Executed, row.executed)
    _set(fault, "actor", given.actor, Actor, row.actor)
    if given.suggestions != ():
        # A lone string is what people mean by one suggestion, and iterating it would give letters.
        steps = (given.suggestions,) if isinstance(given.suggestions, str) else given.suggestions
        force_setattr(fault, "suggestions", _all(steps, str, "suggestions are strings"))
    if given.errors != ():
        force_setattr(fault, "errors", _all(given.errors, type(fault), "errors are Faults"))


def _ordinary(given: Any) -> bool:
    """
    Whether nothing but the usual was written, and rightly: then no field has to be checked.

    A fault is made for every failure, and the whole table would be gone through for two or three words.
    """
    return (
        given.message.__class__ is str
        and given.vocabulary.__class__ is str
        and (given.details is None or given.details.__class__ is dict)
        and (given.status is None or given.status.__class__ is int)
        and given.extensions.__class__ is dict
        and given.field is None
        and given.retry_after is None
        and given.strategy is None
        and given.max_retries is None
        and given.trace_id is None
        and given.doc_uri is None
        and given.type is None
        and given.title is None
        and given.instance is None
        and given.intent is None
        and given.user_message is None
        and given.attempt is None
        and given.max_attempts is None
    )


def _check(fault: Fault) -> None:
    """Refuse a field of the wrong type."""
    for name, kinds in _KINDS.items():
        value = getattr(fault, name)
        if value is None and name not in _NEEDED:
            continue
        if not isinstance(value, kinds) or isinstance(value, bool):
            wanted = " or ".join(kind.__name__ for kind in kinds)
            raise TypeError(f"{name} is {wanted}, not {type(value).__name__}")


def _all(items: Any, kind: type, rule: str) -> tuple[Any, ...]:
    """The items as a tuple, each of one kind."""
    found = tuple(items)
    for item in found:
        if not isinstance(item, kind):
            raise TypeError(f"{rule}, not {type(item).__name__}")
    return found


def _set(fault: Fault, name: str, value: Any, word: type[_Word], default: _Word) -> None:
    """Set a closed word from its string, its member, or the table's default."""
    if value.__class__ is word:
        return
    if value is not None:
        try:
            default = word(value)
        except ValueError:
            raise ValueError(f"{name} is one of {', '.join(word)}, not {value!r}") from None
    force_setattr(fault, name, default)
