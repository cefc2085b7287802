"""Twitch."""

from __future__ import annotations

from amends.vendors.kinds import INVALID, LOST
from amends.vendors.model import Vendor

__all__ = ["VENDOR"]

VENDOR = Vendor(
    name="twitch",
    title="Twitch",
    docs="https://dev.twitch.tv/docs/eventsub/handling-websocket-events",
    closes={
        **dict.fromkeys((4000, 4002, 4004, 4005, 4006), LOST),
        # The client sent something, did not subscribe in time, or used an invalid address to reconnect.
        **dict.fromkeys((4001, 4003, 4007), INVALID),
    },
)
