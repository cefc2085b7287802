"""MediaWiki."""

from __future__ import annotations

from msgspec.structs import replace

from amends.core.enums import Executed
from amends.vendors.kinds import BAD_KEY, CONFLICT, EXPIRED, FORBIDDEN, OVERLOADED, RATE, UNAVAILABLE
from amends.vendors.model import Vendor, words

__all__ = ["VENDOR"]

VENDOR = Vendor(
    name="mediawiki",
    title="MediaWiki",
    docs="https://www.mediawiki.org/wiki/API:Errors_and_warnings",
    words=words(
        # The replicas lag behind; the request was refused.
        (replace(OVERLOADED, executed=Executed.NO), "maxlag"),
        (RATE, "ratelimited"),
        (UNAVAILABLE, "readonly readonlytext"),
        (EXPIRED, "badtoken notoken"),
        (BAD_KEY, "assertuserfailed assertbotfailed"),
        (FORBIDDEN, "permissiondenied protectedpage"),
        (CONFLICT, "editconflict articleexists"),
    ),
    headers=("mediawiki-api-error",),
)
