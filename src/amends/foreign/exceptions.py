"""
Any exception as a Fault, from the side of whoever made the call that failed.

In this order: a Fault it carries, the parts of a group, an answer it carries, its class. The class's row may name a
place to look for something more exact; where that says nothing, the row itself holds.
"""

from __future__ import annotations

from collections.abc import Callable
from errno import errorcode
from typing import Any

from msgspec.structs import replace

from amends.core.enums import Executed, Recovery
from amends.core.fault import Fault
from amends.core.vocabulary import EVERYDAY, row_for
from amends.errors.base import FaultError
from amends.foreign import codes, validation
from amends.foreign.classes import INSIDE, row_for_class
from amends.foreign.outcomes import BROKEN, REFUSED, Meaning, fault_of
from amends.foreign.responses import carried, tries
from amends.foreign.safe_attr import attribute, within

__all__ = ["LOOKS", "from_exception", "whole"]

MAX_PARTS = 1000
"""Parts of exception groups, all levels together."""
_DEPTH = 16
"""Exceptions within exceptions."""
_UNKNOWN = fault_of(BROKEN)


def from_exception(exc: BaseException) -> Fault:
    """
    Any exception as a Fault: what to do about it, and whether the call may have had its effect.

    Its text is never shown. A structured error in an answer it carries (a problem document, an envelope, an AdCP
    error) is read as `extract` reads it and has an `origin`; to tell it to somebody else, use `from_upstream`.

    >>> fault = from_exception(ConnectionRefusedError("db.internal:5432"))
    >>> fault.code, fault.executed.value, fault.message
    ('SERVICE_UNAVAILABLE', 'no', 'The service is temporarily unavailable')

    """
    try:
        return _known(exc, _DEPTH, [MAX_PARTS]) or _UNKNOWN
    except Exception:  # noqa: BLE001 - whatever a hostile class does, it failed and nobody knows how
        return _UNKNOWN


def _known(exc: BaseException, depth: int, room: list[int]) -> Fault | None:
    """What is known about an exception; None when nothing is."""
    cls = type(exc)
    if issubclass(cls, FaultError):
        fault = attribute(exc, "fault")
        return fault if isinstance(fault, Fault) else None
    if depth == 0:
        return None
    if issubclass(cls, BaseExceptionGroup):
        return _group(attribute(exc, "exceptions"), depth, room)
    row = row_for_class(cls)
    answer = _guarded(carried, exc)
    if answer is not None:
        # A proxy's answer: the class knows that the request itself was never sent.
        answer = answer if row is None or row.meaning.executed is not Executed.NO else _unsent(answer)
        return _counted(exc, answer, answer.executed)
    if row is None:
        return None
    fault = _looked(exc, row.meaning, row.look, depth, room) or fault_of(row.meaning)
    # This try did nothing; what became of the earlier ones nobody knows.
    return _counted(exc, fault, Executed.MAYBE)


def _looked(
    exc: BaseException, meaning: Meaning, look: str | None, depth: int, room: list[int]
) -> Fault | None:
    """What the place says that a row names."""
    if look is None:
        return None
    if look != INSIDE:
        return _guarded(LOOKS[look], exc)
    inner = within(exc)
    fault = None if inner is None else _known(inner, depth - 1, room)
    if fault is None or fault == _UNKNOWN:
        return None
    return _unsent(fault) if meaning.executed is Executed.NO else fault


def _guarded(look: Callable[[BaseException], Fault | None], exc: BaseException) -> Fault | None:
    """A look at a foreign object: whatever it raises, the row still holds."""
    try:
        return look(exc)
    except Exception:  # noqa: BLE001
        return None


def _unsent(fault: Fault) -> Fault:
    return replace(fault, executed=Executed.NO)


def _counted(exc: BaseException, fault: Fault, executed: Executed) -> Fault:
    """With the tries that the client made by itself, and what these leave of the question for the effect."""
    made = tries(exc)
    return fault if made == 1 else replace(fault, attempt=made, executed=executed)


# ------------------------------------------------------------------------------------------------------- groups


def _group(parts: Any, depth: int, room: list[int]) -> Fault | None:
    """An exception group: a fault with a part for each of its exceptions."""
    found = []
    for part in parts:
        if room[0] > 0:
            room[0] -= 1
            found.append(_known(part, depth - 1, room) or _UNKNOWN)
    return whole(found) if found else None


_EFFECTS = (Executed.NO, Executed.MAYBE, Executed.YES)


def whole(parts: list[Fault], otherwise: tuple[str, str] = ("INTERNAL_ERROR", EVERYDAY)) -> Fault:
    """
    One fault for several.

    Where all agree it is theirs; else it is terminal if any is, and correctable if none is (M1). The code is that of
    the first part with this recovery, or `otherwise`, a code and its vocabulary. The effect is the worst of all, the
    wait the longest.
    """
    kinds = {part.recovery for part in parts}
    if len(kinds) == 1:
        recovery = parts[0].recovery
    else:
        recovery = Recovery.TERMINAL if Recovery.TERMINAL in kinds else Recovery.CORRECTABLE
    first = next((part for part in parts if part.recovery is recovery), None)
    code, vocabulary = otherwise if first is None else (first.code, first.vocabulary)
    row = row_for(vocabulary, code, None if first is None else first.status)
    waits = [part.retry_after for part in parts if part.retry_after is not None]
    return Fault(
        code=code,
        message=row.message,
        recovery=recovery,
        vocabulary=vocabulary,
        retry_after=max(waits, default=None) if recovery is Recovery.TRANSIENT else None,
        errors=tuple(parts),
        executed=max((part.executed for part in parts), key=_EFFECTS.index),
        actor=row.actor_under(recovery),
    )


# -------------------------------------------------------------------------------------------------------- looks


def _errno(exc: BaseException) -> Fault | None:
    name = errorcode.get(attribute(exc, "errno"), "")
    meaning = codes.ERRNO.get(name)
    return None if meaning is None else fault_of(meaning, details={"errno": name})


def _ssl(exc: BaseException) -> Fault | None:
    meaning = codes.TLS.get(attribute(exc, "reason"))
    return None if meaning is None else fault_of(meaning)


def _sqlstate(exc: BaseException) -> Fault | None:
    value = attribute(exc, "sqlstate") or attribute(exc, "pgcode")
    meaning = codes.sqlstate(value)
    return None if meaning is None else fault_of(meaning, details={"sqlstate": value})


def _psycopg(exc: BaseException) -> Fault | None:
    # psycopg 3 hands out the raw connection only where it could not be established.
    found = _sqlstate(exc)
    return fault_of(REFUSED) if found is None and attribute(exc, "pgconn") is not None else found


def _sqlite(exc: BaseException) -> Fault | None:
    found = codes.sqlite(attribute(exc, "sqlite_errorname"))
    return None if found is None else fault_of(found[1], details={"sqlite": found[0]})


def _grpc(exc: BaseException) -> Fault | None:
    status: Any = exc
    name = attribute(status.code(), "name")
    meaning = codes.GRPC.get(name)
    return None if meaning is None else fault_of(meaning, details={"grpc": name})


LOOKS: dict[str, Callable[[BaseException], Fault | None]] = {
    "errno": _errno,
    "ssl": _ssl,
    "sqlstate": _sqlstate,
    "psycopg": _psycopg,
    "sqlite": _sqlite,
    "grpc": _grpc,
    "json": validation.json_position,
    "pydantic": validation.pydantic,
    "msgspec": validation.msgspec,
    "jsonschema": validation.jsonschema,
}
"""Where an instance says more than its class does. A look may raise: then it has said nothing."""
