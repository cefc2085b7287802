"""Binance."""

from __future__ import annotations

from amends.vendors.kinds import BAD_KEY, INVALID, QUOTA, RATE, TIMEOUT
from amends.vendors.model import Vendor, words

__all__ = ["VENDOR"]

VENDOR = Vendor(
    name="binance",
    title="Binance",
    docs="https://developers.binance.com/docs/binance-spot-api-docs/errors",
    words=words(
        # Also with status 418, when the address was banned for a time.
        (RATE, "-1003 -1015"),
        (BAD_KEY, "-2014 -2015 -1022"),
        (INVALID, "-1021 -1100 -1102 -1121"),
        (QUOTA, "-2010"),
        (TIMEOUT, "-1007"),
    ),
    headers=("x-mbx-used-weight-1m", "x-mbx-used-weight", "x-mbx-uuid"),
)
