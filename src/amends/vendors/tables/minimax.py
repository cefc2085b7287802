"""MiniMax."""

from __future__ import annotations

from amends.vendors.kinds import BAD_KEY, CONTEXT, INTERNAL, INVALID, QUOTA, RATE, REFUSED, TIMEOUT
from amends.vendors.model import Vendor, words
from amends.vendors.routes import GENERATION

__all__ = ["VENDOR"]

VENDOR = Vendor(
    name="minimax",
    title="MiniMax",
    docs="https://platform.minimax.io/docs/api-reference/errorcode",
    words=words(
        (RATE, "1002 1041 2045"),
        (QUOTA, "1008 2056"),
        (BAD_KEY, "1004 2049"),
        (TIMEOUT, "1001"),
        (INTERNAL, "1000 1024 1033"),
        (REFUSED, "1026 1027 1042 1043"),
        (CONTEXT, "1039"),
        (INVALID, "2013"),
    ),
    computes=("/text/chatcompletion_v2", *GENERATION),
    numbers=True,
)
