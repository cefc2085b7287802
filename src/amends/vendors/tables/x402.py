"""x402 payments."""

from __future__ import annotations

from amends.vendors.kinds import PAY
from amends.vendors.model import Vendor, words

__all__ = ["VENDOR"]

VENDOR = Vendor(
    name="x402",
    title="x402 payments",
    docs="https://docs.cdp.coinbase.com/x402/core-concepts/http-402",
    words=words((PAY, "@x402")),
    statuses={402: PAY},
    headers=("payment-required", "x-payment-response"),
)
