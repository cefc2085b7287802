"""Spotify."""

from __future__ import annotations

from amends.vendors.kinds import FORBIDDEN, NOT_FOUND
from amends.vendors.model import Vendor, words

__all__ = ["VENDOR"]

VENDOR = Vendor(
    name="spotify",
    title="Spotify",
    docs="https://developer.spotify.com/documentation/web-api/concepts/api-calls",
    words=words((FORBIDDEN, "PREMIUM_REQUIRED"), (NOT_FOUND, "NO_ACTIVE_DEVICE")),
)
