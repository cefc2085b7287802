"""Kraken."""

from __future__ import annotations

from amends.vendors.kinds import (
    BAD_KEY,
    CONFLICT,
    FORBIDDEN,
    INTERNAL,
    INVALID,
    NOT_FOUND,
    OVERLOADED,
    QUOTA,
    RATE,
    UNAVAILABLE,
)
from amends.vendors.model import Vendor, words

__all__ = ["VENDOR"]

# Kraken's codes are phrases with spaces, which are read as underscores.
VENDOR = Vendor(
    name="kraken",
    title="Kraken",
    docs="https://docs.kraken.com/api/docs/guides/spot-errors",
    words=words(
        (RATE, "EAPI:Rate_limit_exceeded EOrder:Rate_limit_exceeded EGeneral:Temporary_lockout"),
        (UNAVAILABLE, "EService:Unavailable EService:Market_in_cancel_only_mode"),
        (UNAVAILABLE, "EService:Deadline_elapsed EService:Timeout"),
        (OVERLOADED, "EService:Busy EService:Throttled"),
        (
            BAD_KEY,
            "EAPI:Invalid_key EAPI:Invalid_signature EAPI:Invalid_nonce EAuth:Account_temporary_disabled",
        ),
        (FORBIDDEN, "EGeneral:Permission_denied EAuth:Account_unconfirmed"),
        (QUOTA, "EOrder:Insufficient_funds EFunding:Insufficient_funds EOrder:Orders_limit_exceeded"),
        (
            NOT_FOUND,
            "EOrder:Unknown_order EQuery:Unknown_asset EQuery:Unknown_asset_pair EGeneral:Unknown_method",
        ),
        (CONFLICT, "EOrder:Cannot_open_position EOrder:Margin_allowance_exceeded"),
        (INVALID, "EGeneral:Invalid_arguments EOrder:Invalid_price EOrder:Order_minimum_not_met"),
        (INTERNAL, "EGeneral:Internal_error EAPI:Bad_request"),
    ),
)
