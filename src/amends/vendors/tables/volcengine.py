"""Volcengine Ark."""

from __future__ import annotations

from amends.vendors.kinds import DISABLED, FORBIDDEN, NOT_FOUND, OVERLOADED, QUOTA, RATE, REFUSED
from amends.vendors.model import Vendor, words
from amends.vendors.routes import GENERATION

__all__ = ["VENDOR"]

VENDOR = Vendor(
    name="volcengine",
    title="Volcengine Ark",
    docs="https://www.volcengine.com/docs/82379/1299023",
    words=words(
        (QUOTA, "AccountOverdueError QuotaExceeded.FreeTier SetLimitExceeded"),
        (RATE, "ModelAccountRpmRateLimitExceeded ModelAccountTpmRateLimitExceeded RequestBurstTooFast"),
        (OVERLOADED, "ServerOverloaded"),
        (REFUSED, "SensitiveContentDetected InputTextRiskDetection OutputTextSensitiveContentDetected"),
        (FORBIDDEN, "OperationDenied.PermissionDenied AccessDenied.Model"),
        (DISABLED, "ModelNotOpen OperationDenied.ServiceNotOpen"),
        (NOT_FOUND, "InvalidEndpointOrModel.NotFound"),
    ),
    computes=GENERATION,
)
