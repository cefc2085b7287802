"""
`from_exception`: the Fault of any exception.

It looks, in this order, at a Fault that the exception carries, at the parts of an exception group, at what the
application registered for its class, at a response that it carries, and at its class. The row of the class may name a reader of further details; if that finds nothing, the row
itself decides.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from msgspec.structs import replace

from amends.core.enums import Executed, Recovery
from amends.core.fault import Fault
from amends.core.meanings import INTERNAL, NOT_SENT, NOT_SENT_IN_TIME, UNTRUSTED, Meaning, fault_of
from amends.core.wrong_calls import explains_wrong_calls
from amends.errors.base import FaultError
from amends.foreign.classes import INSIDE, row_for_class
from amends.foreign.converted import converted_from, is_converted
from amends.foreign.groups import MAX_PARTS, combine
from amends.foreign.readers import BY_VENDOR, READERS
from amends.foreign.registry import registered_fault
from amends.foreign.responses import calls_made, response_fault
from amends.foreign.safe_attr import attribute, inner_exception, is_exception
from amends.proof import Claim, Proof, rests_on

__all__ = ["from_exception"]

_DEPTH = 16
"""The most exceptions inside each other that are read."""
_UNKNOWN = fault_of(INTERNAL)
_EXACT = frozenset({"CONTEXT_TOO_LONG", "CONTENT_REFUSED", "QUOTA_EXCEEDED"})
"""Codes that a class of exceptions shows and the status of a response does not."""


@explains_wrong_calls
def from_exception(exc: BaseException, *, vendor: str | None = None) -> Fault:
    """
    Return the Fault of an exception: what to do about it, and whether the call may have had its effect.

    Args:
        exc: the exception.
        vendor: the service that was called, by a name of `amends.vendors.NAMES`, whose codes the response or the close
            frame of a WebSocket has; None: headers and the shape of the response decide.

    Raises:
        LookupError: for an unknown `vendor`. Never for what the exception holds.

    The exception's text is never shown. If it carries a response with a structured error (a problem document, an
    envelope, an AdCP error), that is read as `extract` reads it and has an `origin`; use `from_upstream` to return it
    to another caller.

    >>> fault = from_exception(ConnectionRefusedError("db.internal:5432"))
    >>> fault.code, fault.executed.value, fault.message
    ('SERVICE_UNAVAILABLE', 'no', 'The service is temporarily unavailable')

    """
    if vendor is not None:
        from amends.vendors.registry import check

        vendor = check(vendor)
    try:
        return _classify(exc, _DEPTH, _Walk(vendor)) or _UNKNOWN
    except Exception:  # noqa: BLE001 - an exception class may raise anything when it is inspected
        return _UNKNOWN


class _Walk:
    """What holds for an exception and all those inside it."""

    __slots__ = ("parts_left", "vendor")

    def __init__(self, vendor: str | None) -> None:
        self.vendor = vendor
        self.parts_left = MAX_PARTS


def _classify(exc: BaseException, depth: int, walk: _Walk) -> Fault | None:
    """Return the fault of an exception, or None if nothing is known about it."""
    # Not isinstance: it reads `__class__`, which may raise.
    cls = type(exc)
    if issubclass(cls, FaultError):
        fault = attribute(exc, "fault")
        return fault if isinstance(fault, Fault) else None
    if depth == 0:
        return None
    if issubclass(cls, BaseExceptionGroup):
        return _group_fault(attribute(exc, "exceptions"), depth, walk)
    registered = registered_fault(cls)
    if registered is not None:
        return registered
    row = row_for_class(cls)
    response = _read(partial(response_fault, vendor=walk.vendor), exc)
    if response is not None:
        if row is not None and row.meaning.code in _EXACT and response.code not in _EXACT:
            # litellm knows that the context was too long, though the response is only a 400.
            response = replace(fault_of(row.meaning), status=response.status, trace_id=response.trace_id)
        # The class may show that the request was not sent: then the response is a proxy's.
        if row is not None and row.meaning in _NOT_SENT:
            response = _not_executed(response)
        return _with_calls_made(exc, response, response.executed)
    if row is None:
        return _cause_fault(exc, depth, walk)
    fault = _read_details(exc, row.meaning, row.reader, depth, walk) or fault_of(row.meaning)
    # If the client sent the request several times, only the last try is known to have had no effect.
    return _with_calls_made(exc, fault, Executed.MAYBE)


def _cause_fault(exc: BaseException, depth: int, walk: _Walk) -> Fault | None:
    """
    Return the fault of the failed call that an exception of an unknown class was raised from; None if there is none.

    `raise AgentError(…) from error` says that the failed call is the reason. What the code did before it is not known.
    """
    cause = attribute(exc, "__cause__")
    if not is_exception(cause):
        return None
    fault = _classify(cause, depth - 1, walk)
    if fault is None or (fault.status is None and fault.origin is None and fault.code not in _FAILED_CALLS):
        return None
    if fault.executed is Executed.NO and fault.recovery in {Recovery.TRANSIENT, Recovery.UNCERTAIN}:
        return replace(fault, executed=Executed.MAYBE)
    return fault


_NOT_SENT = frozenset({NOT_SENT, UNTRUSTED, NOT_SENT_IN_TIME})
"""Meanings of classes that say that the request was not sent. Others, such as a rate limit, repeat what an answer said."""

_FAILED_CALLS = frozenset({"SERVICE_UNAVAILABLE", "TIMEOUT", "RATE_LIMITED", "OVERLOADED", "QUOTA_EXCEEDED"})
"""Codes of exceptions without a response that only a call to a service raises."""


def _read_details(
    exc: BaseException, meaning: Meaning, reader: str | None, depth: int, walk: _Walk
) -> Fault | None:
    """Return what the reader that a row names finds; None without a reader, or if it finds nothing."""
    if reader is None:
        return None
    if reader != INSIDE:
        found = READERS[reader]
        return _read(partial(found, vendor=walk.vendor) if reader in BY_VENDOR else found, exc)
    inner = converted_from(exc) if is_converted(exc) else inner_exception(exc)
    fault = None if inner is None else _classify(inner, depth - 1, walk)
    if fault is None or fault == _UNKNOWN:
        return None
    return _not_executed(fault) if meaning in _NOT_SENT else fault


def _read(reader: Callable[[BaseException], Fault | None], exc: BaseException) -> Fault | None:
    """Return what a reader finds; None if it raises, because the attributes it reads may raise anything."""
    try:
        return reader(exc)
    except Exception:  # noqa: BLE001
        return None


@rests_on(Claim.NOT_HAPPENED, Proof.NOT_SENT)
def _not_executed(fault: Fault) -> Fault:
    return replace(fault, executed=Executed.NO)


def _with_calls_made(exc: BaseException, fault: Fault, executed: Executed) -> Fault:
    """Add the number of calls the client made by itself. If there were several, `executed` replaces the fault's."""
    made = calls_made(exc)
    return fault if made == 1 else replace(fault, attempt=made, executed=executed)


# ------------------------------------------------------------------------------------------------------- groups


def _group_fault(parts: object, depth: int, walk: _Walk) -> Fault | None:
    """Return the fault of an exception group, with a part for each of its exceptions."""
    found = []
    for part in parts if isinstance(parts, tuple) else ():
        if walk.parts_left > 0:
            walk.parts_left -= 1
            found.append(_classify(part, depth - 1, walk) or _UNKNOWN)
    return combine(found) if found else None
