"""
Ids of messages, jobs and sessions, all ULIDs: sortable by time, and the only form every published peer takes.

A message's id has to be unique, no more, and every frame needs one: a clock, a word of randomness per process and a
counter. Jobs and sessions get 64 random bits, because knowing one id must not help to guess another.
"""

from __future__ import annotations

import os
from itertools import count
from secrets import randbits
from time import time_ns

__all__ = ["message_id", "new_id"]

# Crockford's base 32, which leaves out I, L, O and U. Decimal and hexadecimal digits are digits of it as well.
_DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_PAIRS = [high + low for high in _DIGITS for low in _DIGITS]


class _Clock:
    """The first ten digits of an id: milliseconds. Ids of one millisecond share them."""

    __slots__ = ("_millisecond", "_text")

    def __init__(self) -> None:
        self._millisecond = -1
        self._text = ""

    def __call__(self) -> str:
        now = time_ns() // 1_000_000
        if now != self._millisecond:
            pairs = _PAIRS
            self._text = (
                pairs[now >> 40 & 1023]
                + pairs[now >> 30 & 1023]
                + pairs[now >> 20 & 1023]
                + pairs[now >> 10 & 1023]
                + pairs[now & 1023]
            )
            self._millisecond = now
        return self._text


class _Messages:
    """The ids of one process's messages."""

    __slots__ = ("_count", "_random")

    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        self._random = f"{randbits(32):08X}"
        self._count = count()

    def __call__(self) -> str:
        return f"{_clock()}{self._random}{next(self._count) % 100_000_000:08d}"


_clock = _Clock()
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
    return f"{prefix}_{_clock()}{randbits(64):016X}"
