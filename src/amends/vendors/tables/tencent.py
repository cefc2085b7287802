"""Tencent Cloud."""

from __future__ import annotations

from amends.vendors.kinds import (
    BAD_KEY,
    EXPIRED,
    FORBIDDEN,
    INTERNAL,
    INVALID,
    NOT_FOUND,
    OVERLOADED,
    QUOTA,
    RATE,
    UNAVAILABLE,
)
from amends.vendors.model import Vendor, words

__all__ = ["VENDOR"]

VENDOR = Vendor(
    name="tencent",
    title="Tencent Cloud",
    docs="https://cloud.tencent.com/document/api/213/30435",
    # The answers have status 200. A word may have a second part: AuthFailure.SignatureFailure.
    words=words(
        (RATE, "RequestLimitExceeded"),
        (QUOTA, "LimitExceeded ResourcesSoldOut"),
        (BAD_KEY, "AuthFailure"),
        (EXPIRED, "AuthFailure.TokenFailure AuthFailure.SignatureExpire"),
        (FORBIDDEN, "UnauthorizedOperation OperationDenied"),
        (NOT_FOUND, "ResourceNotFound"),
        (OVERLOADED, "ResourceInsufficient"),
        (UNAVAILABLE, "ResourceUnavailable"),
        (INTERNAL, "InternalError"),
        (INVALID, "InvalidParameter InvalidParameterValue MissingParameter UnknownParameter"),
        (INVALID, "UnsupportedOperation UnsupportedRegion UnsupportedProtocol InvalidAction"),
    ),
)
