"""What callers hand in, checked once at the door, the same way for every backend."""

from __future__ import annotations

import math

from amends.stores.errors import ValueTooLargeError

__all__ = ["check_key", "check_lease", "check_limit", "check_name", "check_seconds", "check_value"]


def check_key(key: str, what: str = "key") -> str:
    """The text itself, if it can be stored as UTF-8."""
    # Nearly every key there is, and checked several times per write.
    if key.__class__ is str and key.isascii():
        return key
    if not isinstance(key, str):
        raise TypeError(f"a {what} is text, not {type(key).__name__}")
    try:
        key.encode()
    except UnicodeEncodeError:
        raise ValueError(
            f"a {what} must be text that UTF-8 can write; this one holds a lone surrogate"
        ) from None
    return key


def check_name(name: str, what: str) -> str:
    """A usable name of a log, table or queue."""
    if not (name.__class__ is str and name.isascii()):
        check_key(name, f"{what} name")
    if not name:
        raise ValueError(f"a {what} needs a name that is not empty")
    return name


# SQLite's own bound is a gigabyte for a row; NATS says its much smaller one itself.
_LARGEST = 500_000_000
_BUFFERS = (bytes, bytearray, memoryview)


def check_value(value: bytes) -> bytes:
    """The value as bytes; a mutable buffer is copied, because writing happens later than the call."""
    if value.__class__ is not bytes:
        if not isinstance(value, _BUFFERS):
            raise TypeError(f"a value is bytes, not {type(value).__name__}: encode it first")
        value = bytes(value)
    if len(value) > _LARGEST:
        raise ValueTooLargeError(len(value), _LARGEST)
    return value


def check_seconds(seconds: float, what: str) -> float:
    """A finite time span that is not negative."""
    number = float(seconds)
    if not math.isfinite(number) or number < 0:
        raise ValueError(f"{what} must be a finite number of seconds from 0 on, not {seconds!r}")
    return number


def check_lease(lease: float, max_attempts: int | None) -> None:
    """A lease that lasts, and a number of attempts that allows one."""
    if check_seconds(lease, "lease") <= 0:
        raise ValueError("a lease must last longer than 0 seconds")
    if max_attempts is not None and max_attempts < 1:
        raise ValueError("max_attempts counts takes: at least 1, or None for no bound")


def check_limit(limit: int) -> int:
    """How many to read at most: at least one."""
    if limit < 1:
        raise ValueError("limit must be at least 1")
    return limit
