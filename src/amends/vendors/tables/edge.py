"""Proxies and gateways."""

from __future__ import annotations

from amends.vendors.kinds import BAD_KEY, FORBIDDEN, OVERLOADED, RATE, UNAVAILABLE
from amends.vendors.model import Vendor, words

__all__ = ["VENDOR"]

VENDOR = Vendor(
    name="edge",
    title="Proxies and gateways",
    docs="https://developers.cloudflare.com/support/troubleshooting/http-status-codes/cloudflare-5xx-errors/",
    words=words(
        (OVERLOADED, "over_capacity server_busy too_busy"),
        (
            RATE,
            "too_many_requests rate_limited rate_limit_exceeded throttled TooManyRequests RateLimitExceeded",
        ),
        (UNAVAILABLE, "service_unavailable"),
    ),
    unless={"unauthorized": BAD_KEY, "forbidden": FORBIDDEN},
)
