"""Stripe."""

from __future__ import annotations

from amends.vendors.kinds import (
    BAD_KEY,
    CARD,
    CONFLICT,
    DISABLED,
    IN_PROGRESS,
    INTERNAL,
    INVALID,
    NOT_FOUND,
    QUOTA,
    RATE,
    SIGN_IN,
)
from amends.vendors.model import Key, Vendor, words

__all__ = ["VENDOR"]

VENDOR = Vendor(
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
