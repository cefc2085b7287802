"""X."""

from __future__ import annotations

from amends.vendors.kinds import (
    BAD_KEY,
    CONFLICT,
    DISABLED,
    FORBIDDEN,
    INTERNAL,
    INVALID,
    NOT_FOUND,
    OVERLOADED,
    QUOTA,
    RATE,
    REFUSED,
    TOO_LARGE,
)
from amends.vendors.model import Vendor, words

__all__ = ["VENDOR"]


def _problems(*names: str) -> str:
    """Return the type URIs of X's problems. Types are compared as a whole."""
    return " ".join(
        f"https://api.{host}.com/2/problems/{name}" for name in names for host in ("twitter", "x")
    )


VENDOR = Vendor(
    name="x",
    title="X",
    docs="https://docs.x.com/x-api/fundamentals/response-codes-and-errors",
    words=words(
        (
            QUOTA,
            _problems("usage-capped", "credits-depleted", "credits")
            + " UsageCapExceeded usage-capped CreditsDepleted",
        ),
        (RATE, _problems("rate-limit-exceeded") + " 88"),
        (
            FORBIDDEN,
            _problems("client-forbidden", "not-authorized-for-resource", "unsupported-authentication"),
        ),
        (FORBIDDEN, "client-not-enrolled 179"),
        (NOT_FOUND, _problems("resource-not-found") + " 34 144 50"),
        (INVALID, _problems("invalid-request", "invalid-rules")),
        (DISABLED, "64 326 63"),
        (BAD_KEY, "32 89 215 135"),
        (OVERLOADED, "130"),
        (INTERNAL, "131"),
        (QUOTA, "185"),
        (CONFLICT, "187"),
        (TOO_LARGE, "186"),
        (REFUSED, "226"),
    ),
    headers=("x-transaction-id", "x-user-limit-24hour-limit", "x-app-limit-24hour-limit", "x-access-level"),
    numbers=True,
)
