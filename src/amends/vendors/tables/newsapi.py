"""NewsAPI."""

from __future__ import annotations

from amends.vendors.kinds import BAD_KEY, DISABLED, INVALID, QUOTA, RATE
from amends.vendors.model import Vendor, words

__all__ = ["VENDOR"]

VENDOR = Vendor(
    name="newsapi",
    title="NewsAPI",
    docs="https://newsapi.org/docs/errors",
    words=words(
        (RATE, "rateLimited"),
        (QUOTA, "apiKeyExhausted"),
        (BAD_KEY, "apiKeyInvalid apiKeyMissing"),
        (DISABLED, "apiKeyDisabled"),
        (INVALID, "parameterInvalid parametersMissing"),
    ),
)
