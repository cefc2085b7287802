"""Exa."""

from __future__ import annotations

from amends.vendors.kinds import BAD_KEY, FORBIDDEN, QUOTA, REFUSED
from amends.vendors.model import Vendor, words

__all__ = ["VENDOR"]

VENDOR = Vendor(
    name="exa",
    title="Exa",
    docs="https://docs.exa.ai/reference/error-codes",
    words=words(
        (QUOTA, "NO_MORE_CREDITS API_KEY_BUDGET_EXCEEDED"),
        (REFUSED, "CONTENT_FILTER_ERROR PROHIBITED_CONTENT"),
        (BAD_KEY, "INVALID_API_KEY"),
        (FORBIDDEN, "ACCESS_DENIED FEATURE_DISABLED"),
    ),
    computes=("/search", "/contents", "/answer", "/findSimilar"),
)
