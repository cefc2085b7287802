"""Fireworks AI."""

from __future__ import annotations

from amends.vendors.kinds import DISABLED
from amends.vendors.model import Vendor, words
from amends.vendors.routes import CHAT

__all__ = ["VENDOR"]

VENDOR = Vendor(
    name="fireworks",
    title="Fireworks AI",
    docs="https://docs.fireworks.ai/guides/inference-error-codes",
    # A suspended account is reported with status 412.
    words=words(({412: DISABLED}, "PRECONDITION_FAILED")),
    headers=("fireworks-server-processing-time", "fireworks-prompt-tokens"),
    computes=CHAT,
)
