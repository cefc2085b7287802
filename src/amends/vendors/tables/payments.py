"""Stripe, Adyen, PayPal, Square, Plaid."""

from __future__ import annotations

from amends.vendors.kinds import (
    BAD_KEY,
    CARD,
    CONFLICT,
    DISABLED,
    EXPIRED,
    FORBIDDEN,
    IN_PROGRESS,
    INTERNAL,
    INVALID,
    NOT_FOUND,
    NOT_READY,
    PERMANENT,
    QUOTA,
    RATE,
    REFUSED,
    SIGN_IN,
    STEP_UP,
    TIMEOUT,
    UNAVAILABLE,
)
from amends.vendors.model import Key, Vendor, words

__all__ = ["VENDORS"]

STRIPE = Vendor(
    name="stripe",
    title="Stripe",
    docs="https://docs.stripe.com/error-codes",
    words=words(
        (CARD, "card_declined expired_card incorrect_cvc incorrect_number incorrect_zip insufficient_funds"),
        (CARD, "authentication_required generic_decline lost_card stolen_card do_not_honor invalid_cvc"),
        (CARD, "invalid_expiry_month invalid_expiry_year invalid_number card_error pickup_card fraudulent"),
        (
            CARD,
            "processing_error card_velocity_exceeded try_again_later payment_intent_authentication_failure",
        ),
        (CARD, "payment_method_provider_decline card_not_supported currency_not_supported"),
        (IN_PROGRESS, "lock_timeout idempotency_key_in_use"),
        (RATE, "rate_limit rate_limit_error"),
        (
            CONFLICT,
            "idempotency_error charge_already_refunded charge_already_captured resource_already_exists",
        ),
        (CONFLICT, "payment_intent_unexpected_state"),
        (NOT_FOUND, "resource_missing"),
        (SIGN_IN, "api_key_expired platform_api_key_expired"),
        (BAD_KEY, "secret_key_required account_invalid"),
        (QUOTA, "balance_insufficient"),
        (DISABLED, "account_closed testmode_charges_only"),
        (INVALID, "parameter_invalid_empty parameter_invalid_integer parameter_missing parameter_unknown"),
        (INVALID, "amount_too_small amount_too_large url_invalid email_invalid"),
    ),
    unless={"api_error": INTERNAL, "invalid_request_error": INVALID, "authentication_error": BAD_KEY},
    headers=("stripe-version", "stripe-should-retry", "x-stripe-routing-context-priority-tier"),
    keys=Key(header="Idempotency-Key", hours=24, replay="Idempotent-Replayed"),
)

ADYEN = Vendor(
    name="adyen",
    title="Adyen",
    docs="https://docs.adyen.com/development-resources/error-codes/",
    words=words(
        (IN_PROGRESS, "704"),
        (BAD_KEY, "000"),
        (FORBIDDEN, "901 010"),
        (PERMANENT, "905"),
        (INTERNAL, "internal"),
        (CARD, "101 103 129 153"),
    ),
    unless={"validation": INVALID},
    headers=("pspreference",),
    keys=Key(header="Idempotency-Key", hours=168, replay="idempotency-key"),
    numbers=True,
)

PAYPAL = Vendor(
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

SQUARE = Vendor(
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

PLAID = Vendor(
    name="plaid",
    title="Plaid",
    docs="https://plaid.com/docs/errors/",
    words=words(
        (RATE, "RATE_LIMIT RATE_LIMIT_EXCEEDED ACCOUNTS_LIMIT AUTH_LIMIT BALANCE_LIMIT IDENTITY_LIMIT"),
        (RATE, "INSTITUTIONS_GET_LIMIT INSTITUTIONS_GET_BY_ID_LIMIT ITEM_GET_LIMIT TRANSACTIONS_LIMIT"),
        (RATE, "TRANSACTIONS_SYNC_LIMIT INVESTMENT_HOLDINGS_GET_LIMIT INVESTMENT_TRANSACTIONS_LIMIT"),
        (SIGN_IN, "ITEM_LOGIN_REQUIRED ACCESS_NOT_GRANTED INVALID_CREDENTIALS INVALID_MFA"),
        (
            UNAVAILABLE,
            "INSTITUTION_DOWN INSTITUTION_NOT_RESPONDING INSTITUTION_NOT_AVAILABLE PLANNED_MAINTENANCE",
        ),
        (NOT_READY, "PRODUCT_NOT_READY"),
        (BAD_KEY, "INVALID_API_KEYS INVALID_ACCESS_TOKEN"),
        (QUOTA, "ADDITION_LIMIT"),
        (INTERNAL, "API_ERROR"),
        (INVALID, "MISSING_FIELDS INVALID_FIELD UNKNOWN_FIELDS"),
        (FORBIDDEN, "PRODUCTS_NOT_SUPPORTED UNAUTHORIZED_ENVIRONMENT"),
    ),
)

VENDORS = (STRIPE, ADYEN, PAYPAL, SQUARE, PLAID)
