"""Baidu AI Cloud."""

from __future__ import annotations

from amends.vendors.kinds import (
    BAD_KEY,
    CONTEXT,
    EXPIRED,
    FORBIDDEN,
    INTERNAL,
    INVALID,
    QUOTA,
    RATE,
    UNAVAILABLE,
)
from amends.vendors.model import Vendor, words

__all__ = ["VENDOR"]

VENDOR = Vendor(
    name="qianfan",
    title="Baidu AI Cloud",
    docs="https://cloud.baidu.com/doc/WENXINWORKSHOP/s/tlmyncueh",
    words=words(
        (RATE, "4 18 336501 336502"),
        (QUOTA, "17 19"),
        (BAD_KEY, "13 14 100"),
        (EXPIRED, "110 111"),
        (FORBIDDEN, "6"),
        (UNAVAILABLE, "2 336100"),
        (INTERNAL, "1 336000"),
        (INVALID, "336001 336002 336003"),
        (CONTEXT, "336103 336007"),
    ),
    numbers=True,
)
