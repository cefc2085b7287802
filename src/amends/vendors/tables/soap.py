"""SOAP."""

from __future__ import annotations

from amends.vendors.kinds import BAD_KEY, INVALID
from amends.vendors.model import Vendor, words

__all__ = ["VENDOR"]

VENDOR = Vendor(
    name="soap",
    title="SOAP",
    docs="https://www.w3.org/TR/2000/NOTE-SOAP-20000508/#_Toc478383507",
    words=words(
        # A fault of the caller, which SOAP sends under 500.
        (INVALID, "@soap-caller"),
        (BAD_KEY, "authenticationError FailedAuthentication InvalidSecurityToken FailedCheck"),
    ),
)
