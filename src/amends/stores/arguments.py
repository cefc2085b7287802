"""Argument checks that all backends share."""

from __future__ import annotations

import math

from amends.stores.errors import DamagedStoreError, ValueTooLargeError

__all__ = [
    "check_key",
    "check_lease",
    "check_limit",
    "check_name",
    "check_seconds",
    "check_stored",
    "check_value",
]


def check_key(key: str, what: str = "key") -> str:
    """Return `key` if it can be stored as UTF-8."""
    if not isinstance(key, str):
        raise TypeError(f"a {what} must be a string, not {type(key).__name__}")
    if key.isascii():
        return key
    try:
        key.encode()
    except UnicodeEncodeError:
        raise ValueError(
            f"a {what} must be text that UTF-8 can encode; this one contains a lone surrogate"
        ) from None
    return key


def check_name(name: str, what: str) -> str:
    """Return `name` if it is a valid name of a log, table or queue."""
    check_key(name, f"{what} name")
    if not name:
        raise ValueError(f"a {what} name must not be empty")
    return name


# SQLite allows a gigabyte per row. A NATS server reports its own, much smaller limit.
_LARGEST = 500_000_000
_BUFFERS = (bytes, bytearray, memoryview)


def check_value(value: bytes) -> bytes:
    """Return the value as bytes. A mutable buffer is copied, because the write happens after the call."""
    if not isinstance(value, _BUFFERS):
        raise TypeError(f"a value must be bytes, not {type(value).__name__}: encode it first")
    value = bytes(value)  # no copy if it is bytes already
    if len(value) > _LARGEST:
        raise ValueTooLargeError(len(value), _LARGEST)
    return value


def check_stored(value: object, kind: str, name: str) -> bytes:
    """
    Return a value that was read from a backend, if it is bytes.

    Raises:
        DamagedStoreError: it is not, so amends did not write it.
    """
    if isinstance(value, bytes):
        return value
    raise DamagedStoreError(
        f"{kind} {name!r} has a value that amends did not write: run `amends store check`"
    )


def check_seconds(seconds: float, what: str) -> float:
    """Return `seconds` as a float if it is finite and not negative."""
    try:
        number = float(seconds)
    except (TypeError, ValueError, OverflowError):
        number = math.inf
    if not math.isfinite(number) or number < 0:
        raise ValueError(f"{what} must be a finite number of seconds, 0 or more, not {seconds!r:.100}")
    return number


def check_lease(lease: float, max_attempts: int | None) -> None:
    """Raise ValueError unless the lease is longer than 0 seconds and `max_attempts` is at least 1 or None."""
    if check_seconds(lease, "lease") <= 0:
        raise ValueError("a lease must last longer than 0 seconds")
    if max_attempts is not None and max_attempts < 1:
        raise ValueError("max_attempts must be at least 1, or None for no limit")


def check_limit(limit: int) -> int:
    """Return `limit` if it is at least 1."""
    if limit < 1:
        raise ValueError("limit must be at least 1")
    return limit
