"""Tavily."""

from __future__ import annotations

from amends.vendors.kinds import QUOTA
from amends.vendors.model import Vendor

__all__ = ["VENDOR"]

VENDOR = Vendor(
    name="tavily",
    title="Tavily",
    docs="https://docs.tavily.com/documentation/api-reference/endpoint/search",
    # Errors are prose only; the limits of the plan have statuses of their own.
    statuses={432: QUOTA, 433: QUOTA},
    computes=("/search", "/extract"),
)
