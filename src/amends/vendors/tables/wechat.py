"""WeChat, WeCom and DingTalk."""

from __future__ import annotations

from amends.vendors.kinds import BAD_KEY, EXPIRED, FORBIDDEN, NOT_FOUND, QUOTA, RATE, UNAVAILABLE
from amends.vendors.model import Vendor, words

__all__ = ["VENDOR"]

VENDOR = Vendor(
    name="wechat",
    title="WeChat, WeCom and DingTalk",
    docs="https://developers.weixin.qq.com/doc/offiaccount/Getting_Started/Global_Return_Code.html",
    words=words(
        (RATE, "45011 45033 90018 90002 88 130101"),
        (QUOTA, "45009"),
        (EXPIRED, "42001 42007 40014 41001"),
        (BAD_KEY, "40001 40013 40125 61004"),
        (FORBIDDEN, "48001 48004 50001 50002"),
        (UNAVAILABLE, "-1"),
        (NOT_FOUND, "46003 46004"),
    ),
    numbers=True,
)
