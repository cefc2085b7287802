"""X, Reddit, Meta (Facebook, Instagram, WhatsApp), LinkedIn."""

from __future__ import annotations

from amends.vendors.kinds import (
    BAD_KEY,
    CONFLICT,
    DISABLED,
    EXPIRED,
    FORBIDDEN,
    INTERNAL,
    INVALID,
    NOT_FOUND,
    OVERLOADED,
    QUOTA,
    RATE,
    REFUSED,
    TOO_LARGE,
    UNAVAILABLE,
)
from amends.vendors.model import Vendor, words

__all__ = ["VENDORS"]


def _problems(*names: str) -> str:
    """Return the type URIs of X's problems. Types are compared as a whole."""
    return " ".join(
        f"https://api.{host}.com/2/problems/{name}" for name in names for host in ("twitter", "x")
    )


X = Vendor(
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

REDDIT = Vendor(
    name="reddit",
    title="Reddit",
    docs="https://www.reddit.com/dev/api/",
    words=words(
        (RATE, "RATELIMIT"),
        (BAD_KEY, "USER_REQUIRED WRONG_PASSWORD"),
        (NOT_FOUND, "SUBREDDIT_NOEXIST DELETED_COMMENT"),
        (FORBIDDEN, "THREAD_LOCKED SUBREDDIT_NOTALLOWED USER_BLOCKED"),
        (INVALID, "NO_TEXT NO_LINKS BAD_CAPTCHA NO_URL"),
        (CONFLICT, "ALREADY_SUB"),
        (TOO_LARGE, "TOO_LONG"),
    ),
    headers=("x-reddit-loid", "x-reddit-session"),
)

META = Vendor(
    name="meta",
    title="Meta Graph API and WhatsApp",
    docs="https://developers.facebook.com/docs/graph-api/guides/error-handling",
    words=words(
        (
            RATE,
            "4 17 32 341 613 80000 80001 80002 80003 80004 80005 80006 80008 80009 80014 130429 131056 131048",
        ),
        (UNAVAILABLE, "1 2 131016"),
        (EXPIRED, "190 102 463 467"),
        (FORBIDDEN, "10 200 294 3 131005"),
        (DISABLED, "368 131031"),
        (INVALID, "100 131008 131009"),
        (QUOTA, "131042"),
        (CONFLICT, "506"),
    ),
    headers=("x-fb-trace-id", "x-fb-rev", "x-app-usage", "x-business-use-case-usage", "x-fb-debug"),
    numbers=True,
)

LINKEDIN = Vendor(
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

VENDORS = (X, REDDIT, META, LINKEDIN)
