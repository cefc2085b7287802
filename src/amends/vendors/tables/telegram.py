"""Telegram Bot API."""

from __future__ import annotations

from amends.vendors.model import Vendor

__all__ = ["VENDOR"]

VENDOR = Vendor(
    name="telegram",
    title="Telegram Bot API",
    docs="https://core.telegram.org/bots/api#making-requests",
)
