"""Adyen."""

from __future__ import annotations

from amends.vendors.kinds import BAD_KEY, CARD, FORBIDDEN, IN_PROGRESS, INTERNAL, INVALID, PERMANENT
from amends.vendors.model import Key, Vendor, words

__all__ = ["VENDOR"]

VENDOR = Vendor(
    name="adyen",
    title="Adyen",
    docs="https://docs.adyen.com/development-resources/error-codes/",
    words=words(
        (IN_PROGRESS, "704"),
        (BAD_KEY, "000"),
        (FORBIDDEN, "901 010"),
        (PERMANENT, "905"),
        (INTERNAL, "internal"),
        (CARD, "101 103 129 153"),
    ),
    unless={"validation": INVALID},
    headers=("pspreference",),
    keys=Key(header="Idempotency-Key", hours=168, replay="idempotency-key"),
    numbers=True,
)
