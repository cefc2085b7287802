"""DigitalOcean."""

from __future__ import annotations

from amends.vendors.kinds import BAD_KEY, INVALID, RATE
from amends.vendors.model import Vendor, words

__all__ = ["VENDOR"]

VENDOR = Vendor(
    name="digitalocean",
    title="DigitalOcean",
    docs="https://docs.digitalocean.com/reference/api/intro/#errors",
    words=words(
        (RATE, "too_many_requests"),
        (BAD_KEY, "Unauthorized unauthorized"),
        (INVALID, "unprocessable_entity"),
    ),
)
