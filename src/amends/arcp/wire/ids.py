"""
Ids of messages, jobs and sessions, all ULIDs: sortable by time, and the only form every published peer takes.

A message's id has to be unique, no more, and every frame needs one: a clock, a word of randomness per process and a
counter. Jobs and sessions get 80 random bits, because knowing one id must not help to guess another.
"""

from __future__ import annotations

import os
from itertools import count
from secrets import randbits
from time import time_ns

__all__ = ["message_id", "new_id"]

# Crockford's base 32, which leaves out I, L, O and U.
_DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_PAIRS = [high + low for high in _DIGITS for low in _DIGITS]


def _base32(number: int, length: int) -> str:
    return "".join(_PAIRS[number >> shift & 1023] for shift in range(5 * length - 10, -1, -10))


class _Messages:
    """The ids of one process's messages. A counter's decimal digits are digits of base 32 as well."""

    __slots__ = ("_count", "_millisecond", "_prefix", "_random")

    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        self._random = _base32(randbits(40), 8)
        self._count = count()
        self._millisecond = -1
        self._prefix = ""

    def __call__(self) -> str:
        millisecond = time_ns() // 1_000_000
        if millisecond != self._millisecond:
            self._millisecond = millisecond
            self._prefix = _base32(millisecond, 10) + self._random
        return f"{self._prefix}{next(self._count) % 100_000_000:08d}"


message_id = _Messages()
"""A fresh message id."""

# A child that was forked must not say its parent's ids.
if hasattr(os, "register_at_fork"):  # pragma: no branch - every platform we run tests on has it
    os.register_at_fork(after_in_child=message_id.renew)


def new_id(prefix: str) -> str:
    """
    An id nobody can guess: `job_01J…`.

    >>> len(new_id("job"))
    30
    """
    return f"{prefix}_{_base32(time_ns() // 1_000_000, 10)}{_base32(randbits(80), 16)}"
