"""Figma."""

from __future__ import annotations

from amends.vendors.model import Vendor

__all__ = ["VENDOR"]

VENDOR = Vendor(
    name="figma",
    title="Figma",
    docs="https://developers.figma.com/docs/rest-api/rate-limits/",
    headers=("x-figma-plan-tier", "x-figma-rate-limit-type", "x-figma-upgrade-link"),
)
