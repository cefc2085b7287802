"""Snowflake."""

from __future__ import annotations

from amends.vendors.kinds import (
    BAD_KEY,
    CANCELLED,
    DISABLED,
    EXPIRED,
    FORBIDDEN,
    IN_PROGRESS,
    INVALID,
    NOT_FOUND,
    TIMEOUT,
)
from amends.vendors.model import Vendor, words

__all__ = ["VENDOR"]

VENDOR = Vendor(
    name="snowflake",
    title="Snowflake",
    docs="https://docs.snowflake.com/en/developer-guide/sql-api/handling-responses",
    words=words(
        (EXPIRED, "390114 390112 390111 390318 390303"),
        (BAD_KEY, "390144 390100 390101 394400"),
        (DISABLED, "390102 390913"),
        (NOT_FOUND, "002003 390201"),
        (INVALID, "001003 000904 002043"),
        (TIMEOUT, "000630"),
        (CANCELLED, "000604"),
        (IN_PROGRESS, "000625"),
        (FORBIDDEN, "003001"),
    ),
    numbers=True,
)
