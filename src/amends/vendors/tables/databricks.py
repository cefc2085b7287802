"""Databricks."""

from __future__ import annotations

from amends.vendors.kinds import CONFLICT, DISABLED, INVALID, NOT_FOUND, QUOTA, RATE, UNAVAILABLE
from amends.vendors.model import Vendor, words

__all__ = ["VENDOR"]

VENDOR = Vendor(
    name="databricks",
    title="Databricks",
    docs="https://docs.databricks.com/api/workspace/introduction",
    words=words(
        (RATE, "REQUEST_LIMIT_EXCEEDED"),
        (UNAVAILABLE, "TEMPORARILY_UNAVAILABLE WORKSPACE_TEMPORARILY_UNAVAILABLE"),
        (QUOTA, "QUOTA_EXCEEDED"),
        (NOT_FOUND, "RESOURCE_DOES_NOT_EXIST ENDPOINT_NOT_FOUND"),
        (INVALID, "INVALID_PARAMETER_VALUE MALFORMED_REQUEST"),
        (CONFLICT, "RESOURCE_CONFLICT RESOURCE_ALREADY_EXISTS INVALID_STATE"),
        (DISABLED, "FEATURE_DISABLED CUSTOMER_UNAUTHORIZED"),
    ),
    headers=("x-databricks-", "x-request-id-databricks"),
)
