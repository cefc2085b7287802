"""
Ids of messages, jobs and sessions: ULIDs, which sort by time and are the only form that every published peer accepts.

A message id only has to be unique, and every frame needs one: it consists of a time, a random number per process and a
counter. Ids of jobs and sessions have 64 random bits, so that one id does not help to guess another.
"""

from __future__ import annotations

import os
from itertools import count
from secrets import randbits
from time import time_ns

__all__ = ["message_id", "new_id"]

# Crockford's base 32, which omits I, L, O and U. Decimal and hexadecimal digits are valid in it.
_DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_PAIRS = [high + low for high in _DIGITS for low in _DIGITS]


def _timestamp() -> str:
    """The first ten digits of an id: milliseconds."""
    now = time_ns() // 1_000_000
    return (
        _PAIRS[now >> 40 & 1023]
        + _PAIRS[now >> 30 & 1023]
        + _PAIRS[now >> 20 & 1023]
        + _PAIRS[now >> 10 & 1023]
        + _PAIRS[now & 1023]
    )


class _Messages:
    """The generator of this process's message ids."""

    __slots__ = ("_count", "_random")

    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        self._random = f"{randbits(32):08X}"
        self._count = count()

    def __call__(self) -> str:
        return f"{_timestamp()}{self._random}{next(self._count) % 100_000_000:08d}"


message_id = _Messages()
"""Return a new message id."""

# A forked child must not repeat its parent's ids.
if hasattr(os, "register_at_fork"):  # pragma: no branch - every platform we run tests on has it
    os.register_at_fork(after_in_child=message_id.renew)


def new_id(prefix: str) -> str:
    """
    An id that cannot be guessed: `job_01J…`.

    >>> len(new_id("job"))
    30
    """
    return f"{prefix}_{_timestamp()}{randbits(64):016X}"
