"""SendGrid."""

from __future__ import annotations

from amends.vendors.model import Vendor

__all__ = ["VENDOR"]

VENDOR = Vendor(
    name="sendgrid",
    title="SendGrid",
    # Errors have a message, a field and a help link, but no code: the status decides.
    docs="https://www.twilio.com/docs/sendgrid/api-reference/how-to-use-the-sendgrid-v3-api/errors",
    headers=("x-no-cors-reason",),
)
