"""Alpha Vantage."""

from __future__ import annotations

from amends.vendors.kinds import INVALID, QUOTA, RATE
from amends.vendors.model import Vendor

__all__ = ["VENDOR"]

VENDOR = Vendor(
    name="alphavantage",
    title="Alpha Vantage",
    docs="https://www.alphavantage.co/documentation/",
    # A failed answer has a single member, whose name says what happened: too many calls per minute, the calls of the day
    # are used up, or the call is wrong.
    words={"@Note": RATE, "@Information": QUOTA, "@ErrorMessage": INVALID},
)
