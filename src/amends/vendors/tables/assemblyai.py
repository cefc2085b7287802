"""AssemblyAI."""

from __future__ import annotations

from amends.vendors.kinds import BAD_KEY, CONFLICT, INTERNAL, INVALID, LOST, NOT_FOUND, QUOTA, RATE
from amends.vendors.model import Vendor

__all__ = ["VENDOR"]

VENDOR = Vendor(
    name="assemblyai",
    title="AssemblyAI",
    docs="https://www.assemblyai.com/docs/streaming/common-session-errors-and-closures",
    closes={
        # Credentials are checked after the socket has opened.
        1008: BAD_KEY,
        **dict.fromkeys((3005,), INTERNAL),
        **dict.fromkeys((3006, 3007, 4000, 4032, 4033, 4034, 4101, 4104), INVALID),
        **dict.fromkeys((3008, 4008, 4031), LOST),
        **dict.fromkeys((3009, 4029, 4102), RATE),
        4001: BAD_KEY,
        **dict.fromkeys((4002, 4003), QUOTA),
        4004: NOT_FOUND,
        **dict.fromkeys((4010, 4030, 4103), CONFLICT),
    },
    computes=("/v2/transcript",),
)
