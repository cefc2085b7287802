"""monday.com."""

from __future__ import annotations

from amends.vendors.kinds import FORBIDDEN, INVALID, NOT_FOUND, QUOTA, RATE
from amends.vendors.model import Vendor, words

__all__ = ["VENDOR"]

VENDOR = Vendor(
    name="monday",
    title="monday.com",
    docs="https://developer.monday.com/api-reference/docs/error-handling",
    words=words(
        (
            RATE,
            "ComplexityException COMPLEXITY_BUDGET_EXHAUSTED maxConcurrencyExceeded IP_RATE_LIMIT_EXCEEDED",
        ),
        (RATE, "FIELD_MINUTE_RATE_LIMIT_EXCEEDED API_TEMPORARILY_BLOCKED Rate_Limit_Exceeded"),
        (QUOTA, "DAILY_LIMIT_EXCEEDED"),
        (FORBIDDEN, "USER_UNAUTHORIZED UserUnauthorizedException missingRequiredPermissions"),
        (NOT_FOUND, "ResourceNotFoundException InvalidBoardIdException"),
        (INVALID, "InvalidArgumentException InvalidColumnIdException ColumnValueException"),
    ),
)
