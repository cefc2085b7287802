"""Shopify."""

from __future__ import annotations

from amends.vendors.kinds import CONFLICT, DISABLED, FORBIDDEN, INVALID, QUOTA, RATE, TOO_LARGE
from amends.vendors.model import Vendor, words

__all__ = ["VENDOR"]

VENDOR = Vendor(
    name="shopify",
    title="Shopify",
    docs="https://shopify.dev/docs/api/usage/response-codes",
    words=words(
        (RATE, "THROTTLED"),
        (TOO_LARGE, "MAX_COST_EXCEEDED"),
        (FORBIDDEN, "ACCESS_DENIED"),
        (DISABLED, "SHOP_INACTIVE"),
        (CONFLICT, "TAKEN"),
        (INVALID, "BLANK undefinedField argumentLiteralsIncompatible missingRequiredArguments"),
    ),
    # 402: the shop is frozen; 430: the request was refused for security reasons.
    statuses={402: QUOTA, 430: FORBIDDEN},
    headers=("x-shopify-stage", "x-shopid", "x-shopify-shop-api-call-limit", "x-shopify-api-version"),
)
