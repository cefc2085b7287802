"""
The value that every dialect is read into and written from.

A Fault has the union of the five dialects' members. It is frozen and compared by value. It keeps what was received:
bounds apply when recovery acts on it, not when it is read. A Fault that is written by hand is completed from the table of
its code and checked (`_fill`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any, TypeVar

import msgspec
from msgspec.structs import force_setattr

from amends.core.enums import Actor, Executed, Recovery
from amends.core.hints import finite
from amends.core.named_options import NamedOptions
from amends.core.validate import check_seconds, member, shown
from amends.core.vocabulary import row_for
from amends.core.wire import plain

__all__ = ["Fault", "Origin", "check_fault"]

# The default of fields that are looked up by (vocabulary, code). A constructed Fault never holds it.
_FROM_TABLE: Any = None


class Origin(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """
    Where a fault was found. A fault without an origin was made in this process.

    `layer` is "transport" for an error of a gateway or protocol library, sent before the call was dispatched, and
    "application" for an error of the called service itself. `gap` says what a conformant sender would have done.
    `complete`: a document with an extra `code` and `recovery`, as this package writes it.
    """

    dialect: str
    path: str | None = None
    layer: str = "application"
    gap: str | None = None
    complete: bool = False
    own: bool = False
    """Whether a client knows that the service is part of our own system. It is never read from a document."""
    record: dict[str, Any] | None = None
    """The record that came with it, as received (`amends.dialects.record`). It proves nothing by itself."""


# gc=False: a fault holds plain values, which cannot refer to it, so it is never part of a cycle.
class Fault(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False, metaclass=NamedOptions):
    """
    A failure, as one value.

    Only `code` is required. `recovery`, `executed` and `actor` default to those of the table row of
    (`vocabulary`, `code`).

    >>> Fault(code="RATE_LIMITED", retry_after=5).recovery
    <Recovery.TRANSIENT: 'transient'>
    """

    code: str
    """What went wrong: a code of `vocabulary`."""
    message: str = ""
    """For people. No decision depends on it."""
    recovery: Recovery = _FROM_TABLE
    """What has to happen before the call can succeed."""
    vocabulary: str = "everyday"
    """The vocabulary of the code: everyday, http, cli, task, adcp, arcp, app (a user's own), or a registered one."""
    retry_after: float | None = None
    """Seconds to wait, as received. Bounds apply when recovery acts on it."""
    strategy: str | None = None
    """The sender's advice on how to space retries (`retry_strategy` of the CLI agent spec)."""
    max_retries: int | None = None
    """The sender's advice on how many retries make sense. It lowers the policy's number and never raises it."""
    field: str | None = None
    """The part of the request that is wrong. For display only: it is never used as a path."""
    suggestions: tuple[str, ...] = ()
    """Recovery steps, the most likely fix first."""
    details: dict[str, Any] | None = None
    """Structured context, as raised or received."""
    errors: tuple[Fault, ...] = ()
    """The parts of a failure that has several."""
    trace_id: str | None = None
    doc_uri: str | None = None
    type: str | None = None
    """The problem type URI. Compared as a whole, never parsed."""
    title: str | None = None
    status: int | None = None
    """The HTTP status."""
    instance: str | None = None
    intent: dict[str, Any] | None = None
    """What a cancelled operation was about to do (`intent` of a problem)."""
    user_message: str | None = None
    """The message for the end user."""
    actor: Actor = _FROM_TABLE
    """Who has to act next."""
    attempt: int | None = None
    """Tries that lower layers already made. They count as attempts."""
    max_attempts: int | None = None
    executed: Executed = _FROM_TABLE
    """Whether the failed call may have had its effect."""
    extensions: dict[str, Any] = {}
    """Unknown members, kept so that passing the error on loses nothing."""
    origin: Origin | None = None
    """Where it was found; None if it was made in this process."""
    fatal: bool = True
    """False for a remark on a call that did not fail, such as `errors[]` in a successful result: nothing is to be done."""
    raised: Fault | None = None
    """The fault as it was raised, before its code was translated. It is written into the record, redacted."""
    in_doubt: bool = False
    """Whether a call that changes something got no answer, so that its effect has to be checked before a repeat."""

    def __post_init__(self) -> None:
        # Decoders set every field with its right type. With their faults checked again, extraction takes 0.86 of adcp's
        # time instead of 0.32 (bench/extraction.py; the target is 0.35).
        recovery: object = self.recovery
        executed: object = self.executed
        actor: object = self.actor
        if (
            self.origin is None
            or not isinstance(recovery, Recovery)
            or not isinstance(executed, Executed)
            or not isinstance(actor, Actor)
        ):
            _fill(self)

    @property
    def retryable(self) -> bool:
        """Whether sending the same request again may help (transient or uncertain)."""
        return self.recovery is Recovery.TRANSIENT or self.recovery is Recovery.UNCERTAIN


def check_fault(function: str, value: object) -> None:
    """Raise TypeError for anything but a Fault. Often it is the exception that carries one."""
    if not isinstance(value, Fault):
        raise TypeError(
            f"{function} takes a Fault, not {type(value).__name__}; an exception carries one as .fault"
        )


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

_Item = TypeVar("_Item")


def _fill(fault: Fault) -> None:
    """
    Set the fields that come from the table, and convert all fields to their final types.

    Called while a Fault is constructed: its values need not have the annotated types yet.

    Raises:
        TypeError, ValueError: if a value has a wrong type or is not possible; the message says what is.

    """
    code: object = fault.code
    if not isinstance(code, str) or not code:
        raise ValueError(f"code is a non-empty string, not {shown(code)}")
    for name, expected in _TYPES.items():
        value: object = getattr(fault, name)
        # A value of exactly this type needs no conversion; a bool or an enum member is not of it.
        if type(value) is expected or (value is None and name not in _REQUIRED):
            continue
        if not isinstance(value, expected) or isinstance(value, bool):
            raise TypeError(f"{name} is {expected.__name__}, not {type(value).__name__}")
        if expected is not dict:
            force_setattr(fault, name, plain(value))
    if not isinstance(fault.fatal, bool):
        raise TypeError(f"fatal is bool, not {type(fault.fatal).__name__}")
    row = row_for(fault.vocabulary, fault.code, fault.status)
    defaults: tuple[StrEnum, ...] = (row.recovery, row.executed, row.actor)
    for name, default in zip(("recovery", "executed", "actor"), defaults, strict=True):
        given: object = getattr(fault, name)
        if given is None:
            force_setattr(fault, name, default)
        elif not isinstance(given, type(default)):
            force_setattr(fault, name, member(name, given, type(default)))
    wait = fault.retry_after
    if wait is not None:
        check_seconds("retry_after", wait)
        if finite(wait) is None:
            raise ValueError(f"retry_after is a finite number of seconds, not {shown(wait)}")
        if type(wait) is not float:
            force_setattr(fault, "retry_after", plain(wait))
    steps: object = fault.suggestions
    if not isinstance(steps, tuple) or steps:
        # A lone string is taken as one suggestion; iterating over it would give its letters.
        found = _all((steps,) if isinstance(steps, str) else steps, str, "suggestions are strings")
        force_setattr(fault, "suggestions", tuple(plain(step) for step in found))
    errors: object = fault.errors
    if not isinstance(errors, tuple) or errors:
        force_setattr(fault, "errors", _all(errors, Fault, "errors are Faults"))


def _all(items: object, expected: type[_Item], rule: str) -> tuple[_Item, ...]:
    """Return the items as a tuple, after checking the type of each."""
    if not isinstance(items, Iterable) or isinstance(items, Mapping | str | bytes):
        raise TypeError(f"{rule} in a list, not {type(items).__name__}")
    found = tuple(items)
    for item in found:
        if not isinstance(item, expected):
            raise TypeError(f"{rule}, not {type(item).__name__}")
    return found
