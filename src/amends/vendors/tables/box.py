"""Box."""

from __future__ import annotations

from amends.vendors.kinds import CONFLICT, FORBIDDEN, IN_PROGRESS, QUOTA, STEP_UP, TOO_LARGE
from amends.vendors.model import Vendor, words

__all__ = ["VENDOR"]

VENDOR = Vendor(
    name="box",
    title="Box",
    docs="https://developer.box.com/guides/api-calls/permissions-and-errors/common-errors/",
    words=words(
        (QUOTA, "storage_limit_exceeded"),
        (CONFLICT, "item_name_in_use precondition_failed"),
        (IN_PROGRESS, "operation_blocked_temporary name_temporarily_reserved"),
        (FORBIDDEN, "access_denied_insufficient_permissions access_denied_item_locked"),
        (STEP_UP, "insufficient_scope"),
        (TOO_LARGE, "file_size_limit_exceeded"),
    ),
    headers=("box-request-id",),
)
