"""Firebase Cloud Messaging and Identity."""

from __future__ import annotations

from amends.vendors.kinds import BAD_KEY, CONFLICT, DISABLED, FORBIDDEN, INVALID, NOT_FOUND, RATE, SIGN_IN
from amends.vendors.model import Vendor, words

__all__ = ["VENDOR"]

VENDOR = Vendor(
    name="firebase",
    title="Firebase Cloud Messaging and Identity",
    docs="https://firebase.google.com/docs/cloud-messaging/error-codes",
    words=words(
        (NOT_FOUND, "UNREGISTERED EMAIL_NOT_FOUND USER_NOT_FOUND"),
        (FORBIDDEN, "SENDER_ID_MISMATCH THIRD_PARTY_AUTH_ERROR OPERATION_NOT_ALLOWED"),
        (RATE, "TOO_MANY_ATTEMPTS_TRY_LATER"),
        (CONFLICT, "EMAIL_EXISTS"),
        (DISABLED, "USER_DISABLED"),
        (SIGN_IN, "TOKEN_EXPIRED CREDENTIAL_TOO_OLD_LOGIN_AGAIN"),
        (BAD_KEY, "INVALID_PASSWORD INVALID_LOGIN_CREDENTIALS INVALID_ID_TOKEN"),
        (INVALID, "WEAK_PASSWORD INVALID_EMAIL"),
    ),
)
