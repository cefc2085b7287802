"""Alibaba Cloud Model Studio (DashScope)."""

from __future__ import annotations

from amends.vendors.kinds import BAD_KEY, FORBIDDEN, NOT_FOUND, OVERLOADED, QUOTA, RATE, REFUSED, TIMEOUT
from amends.vendors.model import Vendor, words
from amends.vendors.routes import GENERATION

__all__ = ["VENDOR"]

VENDOR = Vendor(
    name="dashscope",
    title="Alibaba Cloud Model Studio (DashScope)",
    docs="https://help.aliyun.com/en/model-studio/error-code",
    words=words(
        (RATE, "Throttling.RateQuota Throttling.BurstRate Throttling.AllocationQuota LimitRequests"),
        (
            QUOTA,
            "Arrearage AllocationQuota.FreeTierOnly Throttling.Bill PrepaidBillOverdue PostpaidBillOverdue",
        ),
        (REFUSED, "DataInspectionFailed data_inspection_failed"),
        (BAD_KEY, "InvalidApiKey"),
        (FORBIDDEN, "AccessDenied.Unpurchased Model.AccessDenied Workspace.AccessDenied"),
        (NOT_FOUND, "ModelNotFound WorkSpaceNotFound"),
        (OVERLOADED, "ModelServingError ModelUnavailable"),
        (TIMEOUT, "RequestTimeOut InternalError.Timeout"),
    ),
    headers=("x-dashscope-call-gateway", "req-cost-time"),
    computes=GENERATION,
)
