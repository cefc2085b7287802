"""Zhipu AI (GLM)."""

from __future__ import annotations

from amends.vendors.kinds import (
    BAD_KEY,
    CONTEXT,
    DISABLED,
    EXPIRED,
    INVALID,
    NOT_FOUND,
    OVERLOADED,
    QUOTA,
    RATE,
    REFUSED,
)
from amends.vendors.model import Vendor, words
from amends.vendors.routes import GENERATION

__all__ = ["VENDOR"]

VENDOR = Vendor(
    name="zhipu",
    title="Zhipu AI (GLM)",
    docs="https://docs.bigmodel.cn/cn/api/api-code",
    words=words(
        (RATE, "1302 1303 1305"),
        (QUOTA, "1113 1304 1308 1309"),
        (BAD_KEY, "1000 1001 1002 1004"),
        (EXPIRED, "1003"),
        (DISABLED, "1110 1111 1112 1121"),
        (CONTEXT, "1261"),
        (REFUSED, "1301"),
        (INVALID, "1210 1213 1214"),
        (NOT_FOUND, "1211"),
        (OVERLOADED, "1312"),
    ),
    computes=GENERATION,
    numbers=True,
)
