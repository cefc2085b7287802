"""Connect and Twirp."""

from __future__ import annotations

from amends.vendors.kinds import (
    ABORTED,
    BAD_KEY,
    CANCELLED,
    CONFLICT,
    FORBIDDEN,
    INTERNAL,
    INVALID,
    NOT_FOUND,
    RATE,
    TIMEOUT,
    UNAVAILABLE,
)
from amends.vendors.model import Vendor, words

__all__ = ["VENDOR"]

VENDOR = Vendor(
    name="connect",
    title="Connect and Twirp",
    docs="https://connectrpc.com/docs/protocol/#error-codes",
    words=words(
        (ABORTED, "aborted"),
        (RATE, "resource_exhausted"),
        (UNAVAILABLE, "unavailable"),
        (TIMEOUT, "deadline_exceeded"),
        (CONFLICT, "failed_precondition already_exists"),
        (INVALID, "invalid_argument out_of_range malformed unimplemented"),
        (NOT_FOUND, "bad_route"),
        (CANCELLED, "canceled"),
        (BAD_KEY, "unauthenticated"),
        (FORBIDDEN, "permission_denied"),
    ),
    unless={
        "not_found": NOT_FOUND,
        "internal": INTERNAL,
        "unknown": INTERNAL,
        "data_loss": INTERNAL,
        "dataloss": INTERNAL,
    },
    headers=("connect-protocol-version",),
)
