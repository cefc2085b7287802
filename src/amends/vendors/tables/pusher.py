"""Pusher Channels."""

from __future__ import annotations

from amends.vendors.kinds import BAD_KEY, DISABLED, INVALID, LOST, NOT_FOUND, OVERLOADED, QUOTA, RATE
from amends.vendors.model import Vendor

__all__ = ["VENDOR"]

VENDOR = Vendor(
    name="pusher",
    title="Pusher Channels",
    docs="https://pusher.com/docs/channels/library_auth_reference/pusher-websockets-protocol/",
    closes={
        **dict.fromkeys((4000, 4006, 4007, 4008), INVALID),
        **dict.fromkeys((4001, 4005), NOT_FOUND),
        4003: DISABLED,
        4004: QUOTA,
        4009: BAD_KEY,
        4100: OVERLOADED,
        **dict.fromkeys((4200, 4201, 4202), LOST),
        4301: RATE,
    },
)
