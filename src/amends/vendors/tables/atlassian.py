"""Jira and Confluence."""

from __future__ import annotations

from amends.vendors.kinds import RATE
from amends.vendors.model import Vendor, words

__all__ = ["VENDOR"]

VENDOR = Vendor(
    name="atlassian",
    title="Jira and Confluence",
    docs="https://developer.atlassian.com/cloud/jira/platform/rate-limiting/",
    words=words(
        (RATE, "jira-quota-global-based jira-quota-tenant-based jira-burst-based jira-per-issue-on-write"),
        (RATE, "jira-cost-based confluence-quota-tenant-based"),
    ),
    headers=("atl-traceid", "x-arequestid", "ratelimit-reason", "x-aaccountid"),
)
