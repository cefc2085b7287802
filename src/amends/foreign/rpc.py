"""
The errors of gRPC: the status, its details, and the trailers.

A service sends details as protobuf messages in the trailer `grpc-status-details-bin`: the wait, the reason, the quota, the
field. They are read as the same details in JSON are read, by Google's table. `grpc-retry-pushback-ms` is the server's own
verdict about retries.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from amends.carriers.extraction import examine
from amends.core.enums import Recovery
from amends.core.executed import executed_as_proved
from amends.core.fault import Fault
from amends.core.meanings import fault_of
from amends.foreign import codes
from amends.foreign.safe_attr import attribute
from amends.foreign.without_text import without_text
from amends.vendors.protobuf import rpc_details

__all__ = ["grpc_fault"]

_STATUSES = {
    "CANCELLED": 499,
    "UNKNOWN": 500,
    "INVALID_ARGUMENT": 400,
    "DEADLINE_EXCEEDED": 504,
    "NOT_FOUND": 404,
    "ALREADY_EXISTS": 409,
    "PERMISSION_DENIED": 403,
    "RESOURCE_EXHAUSTED": 429,
    "FAILED_PRECONDITION": 400,
    "ABORTED": 409,
    "OUT_OF_RANGE": 400,
    "UNIMPLEMENTED": 501,
    "INTERNAL": 500,
    "UNAVAILABLE": 503,
    "DATA_LOSS": 500,
    "UNAUTHENTICATED": 401,
}
"""The HTTP statuses that google.rpc.Code gives for its codes."""
_MAX_TRAILERS = 64
_MAX_PUSHBACK = 10**9


def grpc_fault(exc: BaseException) -> Fault | None:
    """Return the fault of an error of gRPC, sync or async, or None."""
    code = attribute(exc, "code")
    name = attribute(code() if callable(code) else None, "name")
    meaning = codes.GRPC.get(name) if isinstance(name, str) else None
    if meaning is None or not isinstance(name, str):
        return None
    fault = fault_of(meaning, details={"code": name, "grpc": name})
    trailers = _trailers(exc)
    sent = trailers.get("grpc-status-details-bin")
    if isinstance(sent, bytes):
        fault = _with_details(fault, name, rpc_details(sent))
    pushback = trailers.get("grpc-retry-pushback-ms")
    return fault if pushback is None else _with_pushback(fault, pushback)


def _trailers(exc: BaseException) -> dict[str, str | bytes]:
    """Return the trailing metadata, the first value of each name."""
    read = attribute(exc, "trailing_metadata")
    found = read() if callable(read) else None
    trailers: dict[str, str | bytes] = {}
    for item in list(found)[:_MAX_TRAILERS] if isinstance(found, Iterable) else ():
        if isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], str):
            value = item[1]
            if isinstance(value, (str, bytes)):
                trailers.setdefault(item[0].lower(), value)
    return trailers


def _with_details(fault: Fault, name: str, details: list[dict[str, object]]) -> Fault:
    """Return the fault with what the details say: a more exact meaning, the wait, the field."""
    if not details:
        return fault
    status = _STATUSES[name]
    response = {
        "status": status,
        "headers": {},
        "body": {"error": {"code": status, "status": name, "details": details}},
    }
    read = examine(response, "http", vendor="google")[1].fault
    if read is None:
        return fault
    # The number says whether the call was refused; the code words of its details may be those of another service.
    read = replace(
        without_text(read), executed=executed_as_proved(read.executed, fault.executed, known=False)
    )
    word = (read.details or {}).get("code")
    if (word is None or word == name) and read.recovery is fault.recovery:
        return replace(fault, retry_after=read.retry_after, field=read.field)
    return replace(read, details={"code": name if word is None else word, "grpc": name})


def _with_pushback(fault: Fault, value: str | bytes) -> Fault:
    """Return the fault with the server's verdict: milliseconds to wait; anything else means that no retry is wanted."""
    text = value.decode("ascii", "replace") if isinstance(value, bytes) else value
    if text.isdecimal() and len(text) < 12 and int(text) <= _MAX_PUSHBACK:
        return replace(fault, retry_after=int(text) / 1000)
    final = fault.recovery in {Recovery.TRANSIENT, Recovery.UNCERTAIN}
    return replace(fault, recovery=Recovery.TERMINAL, max_retries=0) if final else fault
