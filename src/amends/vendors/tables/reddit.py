"""Reddit."""

from __future__ import annotations

from amends.vendors.kinds import BAD_KEY, CONFLICT, FORBIDDEN, INVALID, NOT_FOUND, RATE, TOO_LARGE
from amends.vendors.model import Vendor, words

__all__ = ["VENDOR"]

VENDOR = Vendor(
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
