"""
What an exception inside an application means to the one who called it.

- A FaultError is what its author says.
- What an upstream said or did to us (an error of an HTTP client, or one that recovery read from an answer) is told in
  the three words of `from_upstream`: our caller can neither see nor mend what we sent there.
- Everything else is INTERNAL_ERROR, in our own words: nothing of a foreign text leaves.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from msgspec.structs import replace

from amends.carriers.headers import lower_names, wait
from amends.core.crosswalk import transfer
from amends.core.enums import Recovery
from amends.core.fault import Fault
from amends.core.vocabularies.http import VOCABULARY
from amends.core.vocabulary import EVERYDAY
from amends.errors.base import FaultError

__all__ = ["GONE", "INTERNAL", "fault_for", "of_status", "of_validation", "waiting"]

INTERNAL = Fault(code="INTERNAL_ERROR", message=VOCABULARY.rows["INTERNAL_ERROR"].message, vocabulary="http")

GONE = Fault(code="CANCELLED", message=VOCABULARY.rows["CANCELLED"].message, vocabulary="http", status=408)
"""The client went away."""

# Libraries whose exceptions are about somebody else's answer to a call of ours.
_CLIENTS = frozenset(
    {"httpx", "httpx2", "httpcore", "httpcore2", "requests", "urllib3", "aiohttp", "botocore", "grpc"}
    | {"openai", "anthropic", "stripe", "urllib"}
)
_LONGEST = 500
"""A detail is a sentence or two; a longer text was not written for this."""


def fault_for(exc: BaseException) -> Fault:
    """The fault to answer with. Never raises, and shows nothing of a foreign exception's text."""
    if isinstance(exc, FaultError):
        fault = exc.fault
        if fault.origin is not None:
            return _told(exc)
        # M5: a cancellation is transient where S1 speaks of it.
        return (
            transfer(fault, "http") if fault.vocabulary == EVERYDAY and fault.code == "CANCELLED" else fault
        )
    if type(exc).__name__ == "ClientDisconnect":
        # Starlette's word for a request whose body never came: nobody is left to tell.
        return GONE
    if any(cls.__module__.partition(".")[0] in _CLIENTS for cls in type(exc).__mro__):
        return _told(exc)
    return INTERNAL


def _told(exc: BaseException) -> Fault:
    """An upstream's failure as our caller hears it: in HTTP's words where it was not AdCP's own."""
    from amends.foreign import from_upstream

    fault = from_upstream(exc)
    if fault.origin is None and fault.code in VOCABULARY.rows:
        return replace(fault, vocabulary="http", message=VOCABULARY.rows[fault.code].message)
    return fault


def of_status(status: int, detail: str | None = None) -> Fault:
    """
    A failure of which a framework knows the status, and perhaps its author a sentence.

    A status phrase is no sentence, and what came with a 500 was not written for the caller.
    """
    if detail and (status == 500 or len(detail) > _LONGEST):
        detail = None
    return _of_status(status, detail)


@lru_cache(maxsize=256)
def _of_status(status: int, detail: str | None) -> Fault:
    row = VOCABULARY.status_row(status)
    words = detail if detail and not _is_phrase(status, detail) else row.message
    return Fault(
        code=row.code,
        message=words,
        recovery=row.recovery,
        vocabulary="http",
        status=status,
        executed=row.executed,
        actor=row.actor,
    )


def waiting(fault: Fault, headers: Mapping[str, str] | None) -> Fault:
    """The fault with the wait that the response's own headers ask for, so that body and header agree (P3)."""
    if not headers or fault.retry_after is not None:
        return fault
    seconds = wait(lower_names(headers))
    return replace(fault, retry_after=seconds) if seconds else fault


def _is_phrase(status: int, detail: str) -> bool:
    from http import HTTPStatus

    try:
        return detail.strip().rstrip(".").lower() == HTTPStatus(status).phrase.lower()
    except ValueError:
        return False


def of_validation(mistakes: Iterable[tuple[Iterable[Any], Any]], status: int = 422) -> Fault:
    """
    One fault for all the fields a framework refused, each with a JSON Pointer and what to do about it.

    Args:
        mistakes: the path of each field and the framework's word for the kind of mistake.
        status: the framework's own status for it.

    """
    from amends.foreign.validation import MAX_FIELDS, pointer, suggestion

    fields: dict[str | None, list[str]] = {}
    for path, kind in mistakes:
        where, step = pointer(path), suggestion(kind)
        if where in fields or len(fields) < MAX_FIELDS:
            steps = fields.setdefault(where, [])
            if step not in steps:
                steps.append(step)
    row = VOCABULARY.rows["VALIDATION_ERROR"]
    parts = tuple(
        Fault(
            code=row.code,
            message=f"{steps[0]} at {where}" if where else steps[0],
            vocabulary="http",
            status=status,
            field=where,
            suggestions=tuple(steps),
        )
        for where, steps in fields.items()
    )
    first = next((part for part in parts if part.field is not None), None)
    return Fault(
        code=row.code,
        message=row.message,
        recovery=Recovery.CORRECTABLE,
        vocabulary="http",
        status=status,
        field=None if first is None else first.field,
        suggestions=tuple(part.message for part in parts),
        errors=parts,
    )
