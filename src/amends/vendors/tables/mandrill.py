"""Mailchimp Transactional (Mandrill)."""

from __future__ import annotations

from amends.vendors.kinds import BAD_KEY, INVALID, NOT_FOUND, QUOTA, UNAVAILABLE
from amends.vendors.model import Vendor, words

__all__ = ["VENDOR"]

VENDOR = Vendor(
    name="mandrill",
    title="Mailchimp Transactional (Mandrill)",
    docs="https://mailchimp.com/developer/transactional/docs/fundamentals/",
    # All errors have status 500, so the word has priority.
    words=words(
        (BAD_KEY, "Invalid_Key"),
        (QUOTA, "PaymentRequired"),
        (INVALID, "ValidationError"),
        (NOT_FOUND, "Unknown_Template Unknown_Subaccount Unknown_Message Unknown_Sender"),
        (UNAVAILABLE, "ServiceUnavailable"),
    ),
)
