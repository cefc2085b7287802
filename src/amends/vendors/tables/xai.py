"""xAI."""

from __future__ import annotations

from amends.vendors.kinds import DISABLED, QUOTA
from amends.vendors.model import Vendor, words
from amends.vendors.routes import CHAT

__all__ = ["VENDOR"]

VENDOR = Vendor(
    name="xai",
    title="xAI",
    docs="https://docs.x.ai/docs/debugging",
    words=words(
        (QUOTA, "personal-team-blocked:spending-limit team-blocked:spending-limit"),
        (DISABLED, "team-blocked"),
    ),
    headers=("x-zero-data-retention", "x-metrics-e2e-ms"),
    computes=CHAT,
)
