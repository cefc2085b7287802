"""PayPal."""

from __future__ import annotations

from amends.vendors.kinds import (
    BAD_KEY,
    CARD,
    CONFLICT,
    DISABLED,
    FORBIDDEN,
    IN_PROGRESS,
    INTERNAL,
    INVALID,
    NOT_FOUND,
    QUOTA,
    RATE,
    REFUSED,
    STEP_UP,
)
from amends.vendors.model import Key, Vendor, words

__all__ = ["VENDOR"]

VENDOR = Vendor(
    name="paypal",
    title="PayPal",
    docs="https://developer.paypal.com/api/rest/responses/",
    words=words(
        (RATE, "RATE_LIMIT_REACHED RATE_LIMIT_EXCEEDED"),
        (IN_PROGRESS, "PREVIOUS_REQUEST_IN_PROGRESS RESOURCE_CONFLICT_RETRY"),
        (CARD, "INSTRUMENT_DECLINED PAYER_ACTION_REQUIRED TRANSACTION_REFUSED PAYER_CANNOT_PAY CARD_EXPIRED"),
        (QUOTA, "INSUFFICIENT_FUNDS"),
        (
            CONFLICT,
            "ORDER_ALREADY_CAPTURED DUPLICATE_INVOICE_ID ORDER_ALREADY_AUTHORIZED DUPLICATE_REQUEST_ID",
        ),
        (FORBIDDEN, "NOT_AUTHORIZED"),
        (STEP_UP, "PERMISSION_DENIED"),
        (DISABLED, "PAYEE_ACCOUNT_RESTRICTED PAYEE_ACCOUNT_LOCKED_OR_CLOSED PAYER_ACCOUNT_LOCKED_OR_CLOSED"),
        (BAD_KEY, "AUTHENTICATION_FAILURE"),
        (NOT_FOUND, "RESOURCE_NOT_FOUND INVALID_RESOURCE_ID"),
        (INVALID, "INVALID_PARAMETER_VALUE MISSING_REQUIRED_PARAMETER MALFORMED_REQUEST_JSON"),
        (INTERNAL, "INTERNAL_SERVICE_ERROR"),
        (REFUSED, "COMPLIANCE_VIOLATION"),
    ),
    headers=("paypal-debug-id",),
    keys=Key(header="PayPal-Request-Id", hours=6),
)
