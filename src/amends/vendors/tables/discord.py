"""Discord."""

from __future__ import annotations

from amends.vendors.kinds import (
    BAD_KEY,
    CONFLICT,
    FORBIDDEN,
    INVALID,
    LOST,
    NOT_FOUND,
    NOT_READY,
    OVERLOADED,
    QUOTA,
    RATE,
    TOO_LARGE,
)
from amends.vendors.model import Vendor, words

__all__ = ["VENDOR"]

VENDOR = Vendor(
    name="discord",
    title="Discord",
    docs="https://discord.com/developers/docs/topics/opcodes-and-status-codes",
    words=words(
        (RATE, "20028 20016 20022 31001 40062"),
        (OVERLOADED, "130000"),
        (NOT_READY, "110000"),
        (BAD_KEY, "40001 50014"),
        (FORBIDDEN, "50001 50013 50007 40007"),
        (NOT_FOUND, "10003 10004 10008 10011 10013 10014 10015"),
        (QUOTA, "30001 30003 30005 30013"),
        (INVALID, "50035 50006 50109"),
        (TOO_LARGE, "40005"),
        (CONFLICT, "50027 40060"),
    ),
    headers=("x-ratelimit-scope", "x-ratelimit-global", "x-ratelimit-bucket"),
    closes={
        # Discord's table says whether to reconnect: it does after a wrong opcode or payload too.
        **dict.fromkeys((4000, 4001, 4002, 4003, 4005, 4007, 4009), LOST),
        4004: BAD_KEY,
        4008: RATE,
        **dict.fromkeys((4010, 4011, 4012, 4013), INVALID),
        # An intent that is not enabled for the application.
        4014: FORBIDDEN,
    },
    numbers=True,
)
