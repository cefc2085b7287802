"""LinkedIn."""

from __future__ import annotations

from amends.vendors.kinds import BAD_KEY, EXPIRED, FORBIDDEN, RATE
from amends.vendors.model import Vendor, words

__all__ = ["VENDOR"]

VENDOR = Vendor(
    name="linkedin",
    title="LinkedIn",
    docs="https://learn.microsoft.com/linkedin/shared/api-guide/concepts/error-handling",
    words=words(
        (EXPIRED, "65601 65602 EXPIRED_ACCESS_TOKEN"),
        (BAD_KEY, "65600 REVOKED_ACCESS_TOKEN INVALID_ACCESS_TOKEN"),
        (FORBIDDEN, "100 ACCESS_DENIED"),
        (RATE, "101 TOO_MANY_REQUESTS"),
    ),
    headers=("x-li-uuid", "x-li-fabric", "x-restli-error-response"),
    numbers=True,
)
