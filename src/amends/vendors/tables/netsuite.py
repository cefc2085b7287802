"""NetSuite."""

from __future__ import annotations

from amends.vendors.kinds import BAD_KEY, EXPIRED, FORBIDDEN, INVALID, NOT_FOUND, RATE
from amends.vendors.model import Vendor, words

__all__ = ["VENDOR"]

VENDOR = Vendor(
    name="netsuite",
    title="NetSuite",
    docs="https://docs.oracle.com/en/cloud/saas/netsuite/ns-online-help/section_N3481117.html",
    words=words(
        (
            RATE,
            "WS_REQUEST_BLOCKED WS_CONCUR_SESSION_DISALLWD SSS_REQUEST_LIMIT_EXCEEDED EXCEEDED_REQUEST_LIMIT",
        ),
        (RATE, "CONCURRENCY_LIMIT_EXCEEDED EXCEEDED_CONCURRENCY_LIMIT"),
        (EXPIRED, "SESSION_TIMED_OUT"),
        (BAD_KEY, "INVALID_LOGIN INVALID_LOGIN_CREDS INVALID_LOGIN_ATTEMPT"),
        (FORBIDDEN, "INSUFFICIENT_PERMISSION"),
        (NOT_FOUND, "RCRD_DSNT_EXIST"),
        (INVALID, "INVALID_KEY_OR_REF USER_ERROR"),
    ),
)
