"""
Read google.rpc messages without the protobuf library: the status details of gRPC, and Connect's details.

Only the wire types that these messages use are read (varints and length-delimited fields), within bounds.
"""

from __future__ import annotations

from base64 import b64decode
from binascii import Error

__all__ = ["STATUSES", "decode", "retry_delay", "rpc_details"]

STATUSES = (
    *("CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS"),
    *("PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE"),
    *("UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED"),
)
"""The names of gRPC's status codes 1 to 16."""

_MAX_BYTES = 16384
_MAX_DETAILS = 16


def retry_delay(text: str) -> float | None:
    """
    Return the seconds of a google.rpc.RetryInfo in base64, or None.

    >>> retry_delay("CgIIHg==")
    30.0
    """
    fields = _fields(decode(text))
    return None if len(fields) != 1 else _duration(fields.get(1))


def rpc_details(data: bytes) -> list[dict[str, object]]:
    """
    Return the details in a google.rpc.Status as they are written in JSON; only those that decide.

    >>> rpc_details(b"")
    []
    """
    found: list[dict[str, object]] = []
    for detail in _all(data[:_MAX_BYTES], 3)[:_MAX_DETAILS]:
        fields = _fields(detail)
        name, value = fields.get(1), fields.get(2)
        if not isinstance(name, bytes) or not isinstance(value, bytes):
            continue
        kind = _text(name)
        short = kind.rpartition(".")[2]
        if short == "RetryInfo" and (wait := _duration(_fields(value).get(1))) is not None:
            found.append({"@type": kind, "retryDelay": f"{wait}s"})
        elif short == "ErrorInfo":
            entries = [_fields(entry) for entry in _all(value, 3)]
            metadata = {_text(entry.get(1)): _text(entry.get(2)) for entry in entries}
            found.append({"@type": kind, "reason": _text(_fields(value).get(1)), "metadata": metadata})
        elif short == "QuotaFailure":
            violations = [_fields(entry) for entry in _all(value, 1)]
            quotas = [
                {"quotaMetric": _text(each.get(4)), "quotaId": _text(each.get(5))} for each in violations
            ]
            found.append({"@type": kind, "violations": quotas})
        elif short == "BadRequest":
            names = [_text(_fields(entry).get(1)) for entry in _all(value, 1)]
            found.append({"@type": kind, "fieldViolations": [{"field": each} for each in names if each]})
    return found


def _text(value: bytes | int | None) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else ""


def decode(text: str) -> bytes:
    """Return the bytes of base64, with or without padding; none if it is not base64."""
    try:
        return b64decode(text + "=" * (-len(text) % 4), validate=True)[:_MAX_BYTES]
    except (Error, ValueError):
        return b""


def _duration(value: bytes | int | None) -> float | None:
    if not isinstance(value, bytes):
        return None
    fields = _fields(value)
    seconds, nanos = fields.get(1, 0), fields.get(2, 0)
    if not isinstance(seconds, int) or not isinstance(nanos, int) or seconds > 10**9:
        return None
    return seconds + nanos / 1e9


def _fields(data: bytes) -> dict[int, bytes | int]:
    return dict(_walk(data))


def _all(data: bytes, number: int) -> list[bytes]:
    return [value for field, value in _walk(data) if field == number and isinstance(value, bytes)]


def _walk(data: bytes) -> list[tuple[int, bytes | int]]:
    """Return the fields of a message; nothing if it is not one."""
    found: list[tuple[int, bytes | int]] = []
    place = 0
    while place < len(data):
        tag, place = _varint(data, place)
        amount, place = _varint(data, place)
        if tag & 7 == 0:
            found.append((tag >> 3, amount))
        elif tag & 7 == 2 and place + amount <= len(data):
            found.append((tag >> 3, data[place : place + amount]))
            place += amount
        else:
            return []
    return found


def _varint(data: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while place < len(data) and shift < 64:
        byte = data[place]
        place += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, place
    return value, len(data) + 1
