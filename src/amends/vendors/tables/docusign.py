"""DocuSign."""

from __future__ import annotations

from amends.vendors.kinds import BAD_KEY, DISABLED, FORBIDDEN, IN_PROGRESS, INVALID, NOT_FOUND, QUOTA, RATE
from amends.vendors.model import Vendor, words

__all__ = ["VENDOR"]

VENDOR = Vendor(
    name="docusign",
    title="DocuSign",
    docs="https://developers.docusign.com/platform/resource-limits/",
    words=words(
        (RATE, "HOURLY_APIINVOCATION_LIMIT_EXCEEDED BURST_APIINVOCATION_LIMIT_EXCEEDED"),
        (BAD_KEY, "AUTHORIZATION_INVALID_TOKEN USER_AUTHENTICATION_FAILED PARTNER_AUTHENTICATION_FAILED"),
        (DISABLED, "ACCOUNT_HAS_BEEN_SUSPENDED USER_LACKS_MEMBERSHIP"),
        (QUOTA, "ENVELOPE_ALLOWANCE_EXCEEDED PLAN_ITEM_DISABLED"),
        (FORBIDDEN, "USER_LACKS_PERMISSIONS"),
        (NOT_FOUND, "ENVELOPE_DOES_NOT_EXIST TEMPLATE_ID_INVALID"),
        (IN_PROGRESS, "EDIT_LOCK_ENVELOPE_LOCKED"),
        (INVALID, "INVALID_REQUEST_BODY INVALID_REQUEST_PARAMETER"),
    ),
    headers=("x-docusign-tracetoken",),
)
