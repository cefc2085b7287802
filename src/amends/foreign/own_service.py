"""
Failures of services that are part of our own system (M9, `own=True`).

A stranger's failure is translated, because our caller can neither see nor correct the request that failed. A service of our
own speaks to the same caller, so its code, recovery, fields and suggestions are passed on. Its message and details are
passed on only if the body has our members `code` and `recovery`: then its author wrote them for callers. Everything is
redacted when it is sent.
"""

from __future__ import annotations

from msgspec.structs import replace

from amends.core.fault import Fault
from amends.core.vocabulary import EVERYDAY, row_for
from amends.errors.base import FaultError
from amends.foreign.safe_attr import attribute
from amends.foreign.trust import is_own_address

__all__ = ["as_own_service", "blames_our_request", "is_from_own_service"]

_OUR_MISTAKES = frozenset({-32601, -32602})
"""JSON-RPC: method not found, invalid params. MCP servers also answer an unknown tool with the second."""


def is_from_own_service(failure: object) -> bool:
    """
    Return whether an exception was raised by a client that knows that the service is our own.

    It is never read from a response: the address of an exception of a library is the one that was called (`amends.own`).
    """
    fault = failure
    if issubclass(type(failure), FaultError):
        if attribute(failure, "own") is True:
            return True
        fault = attribute(failure, "fault")
        failure = attribute(failure, "__cause__")
    if isinstance(fault, Fault) and fault.origin is not None and fault.origin.own:
        return True
    return issubclass(type(failure), BaseException) and any(map(is_own_address, _addresses(failure)))


def _addresses(exc: object) -> list[str]:
    """Return the address that an exception of an HTTP library was raised for."""
    request = attribute(exc, "request") or attribute(exc, "request_info")
    held = (attribute(request, "url"), attribute(request, "real_url"), attribute(exc, "url"))
    try:
        return [str(address) for address in held if address is not None][:1]
    except Exception:  # noqa: BLE001 - an object of another library may raise anything
        return []


def blames_our_request(fault: Fault) -> bool:
    """
    Return whether an upstream blames the request itself, by number and without an AdCP error.

    We made that request, so it is a bug of ours, whatever our caller sent.
    """
    details = fault.details
    return fault.vocabulary == EVERYDAY and details is not None and details.get("jsonrpc") in _OUR_MISTAKES


def as_own_service(fault: Fault) -> Fault:
    """
    Return the fault of a service of our own as it is passed on: made here, so that it is redacted when it is sent.

    >>> from amends import extract
    >>> received = extract({"status": 404, "headers": {}, "body": {"detail": "GET http://shop.internal/7"}}, "http")
    >>> as_own_service(received).message
    'The thing asked for does not exist'
    """
    if fault.origin is None:
        return fault
    if fault.origin.complete:
        return replace(fault, origin=None)
    row = row_for(fault.vocabulary, fault.code, fault.status)
    return Fault(
        code=fault.code,
        message=row.message,
        recovery=fault.recovery,
        vocabulary=fault.vocabulary,
        retry_after=fault.retry_after,
        max_retries=fault.max_retries,
        field=fault.field,
        suggestions=fault.suggestions,
        errors=tuple(as_own_service(part) for part in fault.errors),
        trace_id=fault.trace_id,
        status=fault.status,
        actor=fault.actor,
        attempt=fault.attempt,
        executed=fault.executed,
        in_doubt=fault.in_doubt,
    )
