"""Microsoft Entra ID."""

from __future__ import annotations

from amends.vendors.kinds import BAD_KEY, DISABLED, SIGN_IN, UNAVAILABLE
from amends.vendors.model import Vendor, words

__all__ = ["VENDOR"]

VENDOR = Vendor(
    name="entra",
    title="Microsoft Entra ID",
    docs="https://learn.microsoft.com/entra/identity-platform/reference-error-codes",
    words=words(
        (SIGN_IN, "50076 50079 65001 50173 70043 700082 70008 50158 53003"),
        (BAD_KEY, "7000215 700016 7000222 700027 50011"),
        (UNAVAILABLE, "90033 50196"),
        (DISABLED, "50057 7000112"),
    ),
    numbers=True,
)
