"""Heroku."""

from __future__ import annotations

from amends.vendors.kinds import DISABLED, INVALID, QUOTA, RATE, UNAVAILABLE
from amends.vendors.model import Vendor, words

__all__ = ["VENDOR"]

VENDOR = Vendor(
    name="heroku",
    title="Heroku",
    docs="https://devcenter.heroku.com/articles/platform-api-reference#errors",
    words=words(
        (RATE, "rate_limit"),
        (DISABLED, "suspended"),
        (QUOTA, "delinquency verification_required"),
        (UNAVAILABLE, "maintenance"),
        (INVALID, "invalid_params"),
    ),
    headers=("ratelimit-multiplier",),
)
