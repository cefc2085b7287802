"""Feishu and Lark."""

from __future__ import annotations

from amends.vendors.kinds import BAD_KEY, EXPIRED, FORBIDDEN, QUOTA, RATE
from amends.vendors.model import Vendor, words

__all__ = ["VENDOR"]

VENDOR = Vendor(
    name="feishu",
    title="Feishu and Lark",
    docs="https://open.feishu.cn/document/server-docs/api-call-guide/generic-error-code",
    words=words(
        (RATE, "99991400 11232 11233 230020"),
        (EXPIRED, "99991663 99991664 99991668 99991677"),
        (BAD_KEY, "99991661 99991671 10003 10014"),
        (FORBIDDEN, "99991672 99991679"),
        (QUOTA, "99991403"),
    ),
    headers=("x-tt-logid", "x-ogw-ratelimit-limit"),
    numbers=True,
)
