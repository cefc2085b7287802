"""Square."""

from __future__ import annotations

from amends.vendors.kinds import (
    CARD,
    CONFLICT,
    DISABLED,
    EXPIRED,
    INVALID,
    RATE,
    SIGN_IN,
    STEP_UP,
    TIMEOUT,
    UNAVAILABLE,
)
from amends.vendors.model import Key, Vendor, words

__all__ = ["VENDOR"]

VENDOR = Vendor(
    name="square",
    title="Square",
    docs="https://developer.squareup.com/docs/build-basics/handling-errors",
    words=words(
        (RATE, "RATE_LIMITED RATE_LIMIT_ERROR"),
        (
            CARD,
            "PAYMENT_METHOD_ERROR CARD_DECLINED CVV_FAILURE GENERIC_DECLINE CARD_EXPIRED ADDRESS_VERIFICATION_FAILURE",
        ),
        (CARD, "INSUFFICIENT_FUNDS TRANSACTION_LIMIT CARDHOLDER_INSUFFICIENT_PERMISSIONS INVALID_ACCOUNT"),
        (CARD, "VOICE_FAILURE EXPIRATION_FAILURE CARD_DECLINED_CALL_ISSUER PAYMENT_LIMIT_EXCEEDED"),
        (CARD, "CARD_DECLINED_VERIFICATION_REQUIRED CARD_NOT_SUPPORTED INVALID_EXPIRATION PAN_FAILURE"),
        (EXPIRED, "ACCESS_TOKEN_EXPIRED"),
        (SIGN_IN, "ACCESS_TOKEN_REVOKED"),
        (DISABLED, "CLIENT_DISABLED APPLICATION_DISABLED"),
        (STEP_UP, "INSUFFICIENT_SCOPES"),
        (CONFLICT, "IDEMPOTENCY_KEY_REUSED VERSION_MISMATCH"),
        (TIMEOUT, "GATEWAY_TIMEOUT"),
        (UNAVAILABLE, "TEMPORARY_ERROR"),
        (INVALID, "MISSING_REQUIRED_PARAMETER INVALID_VALUE VALUE_TOO_LONG EXPECTED_STRING"),
    ),
    headers=("square-version",),
    keys=Key(field="idempotency_key"),
)
