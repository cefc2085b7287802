"""DeepSeek."""

from __future__ import annotations

from amends.vendors.kinds import QUOTA
from amends.vendors.model import Vendor, words
from amends.vendors.routes import CHAT

__all__ = ["VENDOR"]

VENDOR = Vendor(
    name="deepseek",
    title="DeepSeek",
    docs="https://api-docs.deepseek.com/quick_start/error_codes",
    words=words((QUOTA, "insufficient_balance")),
    headers=("x-ds-trace-id",),
    computes=CHAT,
)
