"""ClickUp."""

from __future__ import annotations

from amends.vendors.kinds import BAD_KEY, FORBIDDEN, RATE
from amends.vendors.model import Vendor, words

__all__ = ["VENDOR"]

VENDOR = Vendor(
    name="clickup",
    title="ClickUp",
    docs="https://developer.clickup.com/docs/common_errors",
    words=words(
        (RATE, "APP_002"), (BAD_KEY, "OAUTH_017 OAUTH_019 OAUTH_025"), (FORBIDDEN, "OAUTH_023 OAUTH_027")
    ),
)
