"""GitLab."""

from __future__ import annotations

from amends.vendors.kinds import EXPIRED, STEP_UP
from amends.vendors.model import Vendor, words

__all__ = ["VENDOR"]

VENDOR = Vendor(
    name="gitlab",
    title="GitLab",
    docs="https://docs.gitlab.com/api/rest/troubleshooting/",
    words=words((STEP_UP, "insufficient_scope insufficient_granular_scope"), (EXPIRED, "invalid_token")),
    headers=("x-gitlab-meta", "gitlab-lb", "gitlab-sv"),
)
