"""ClickHouse."""

from __future__ import annotations

from amends.vendors.kinds import BAD_KEY, FORBIDDEN, INVALID, NOT_FOUND, QUOTA, RATE, TIMEOUT, TOO_LARGE
from amends.vendors.model import Vendor, words

__all__ = ["VENDOR"]

VENDOR = Vendor(
    name="clickhouse",
    title="ClickHouse",
    docs="https://github.com/ClickHouse/ClickHouse/blob/master/src/Common/ErrorCodes.cpp",
    words=words(
        (RATE, "202 203"),
        (TIMEOUT, "159 209"),
        (TOO_LARGE, "241 396"),
        (FORBIDDEN, "497 164"),
        (BAD_KEY, "516 193 194"),
        (NOT_FOUND, "60 81"),
        (INVALID, "62 47 46"),
        (QUOTA, "201"),
    ),
    headers=("x-clickhouse-exception-code", "x-clickhouse-summary"),
    numbers=True,
)
