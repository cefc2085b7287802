"""Model services and messengers of China: DashScope, Zhipu, Moonshot, MiniMax, Baidu, Volcengine, WeChat, Feishu."""

from __future__ import annotations

from amends.vendors.kinds import (
    BAD_KEY,
    CONTEXT,
    DISABLED,
    EXPIRED,
    FORBIDDEN,
    INTERNAL,
    INVALID,
    NOT_FOUND,
    OVERLOADED,
    QUOTA,
    RATE,
    REFUSED,
    TIMEOUT,
    UNAVAILABLE,
)
from amends.vendors.model import Vendor, words

__all__ = ["VENDORS"]

_CHAT = ("/chat/completions", "/embeddings", "/generation")

VENDORS = (
    Vendor(
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
        computes=_CHAT,
    ),
    Vendor(
        name="zhipu",
        title="Zhipu AI (GLM)",
        docs="https://docs.bigmodel.cn/cn/api/api-code",
        words=words(
            (RATE, "1302 1303 1305"),
            (QUOTA, "1113 1304 1308 1309"),
            (BAD_KEY, "1000 1001 1002 1004"),
            (EXPIRED, "1003"),
            (DISABLED, "1110 1111 1112 1121"),
            (CONTEXT, "1261"),
            (REFUSED, "1301"),
            (INVALID, "1210 1213 1214"),
            (NOT_FOUND, "1211"),
            (OVERLOADED, "1312"),
        ),
        computes=_CHAT,
        numbers=True,
    ),
    Vendor(
        name="moonshot",
        title="Moonshot AI (Kimi)",
        docs="https://platform.moonshot.ai/docs/api/errors",
        words=words(
            (QUOTA, "exceeded_current_quota_error"),
            (OVERLOADED, "engine_overloaded_error"),
            (RATE, "rate_limit_reached_error"),
            (BAD_KEY, "invalid_authentication_error incorrect_api_key_error"),
            (NOT_FOUND, "resource_not_found_error"),
        ),
        headers=("msh-request-id", "msh-uid"),
        computes=_CHAT,
    ),
    Vendor(
        name="minimax",
        title="MiniMax",
        docs="https://platform.minimax.io/docs/api-reference/errorcode",
        words=words(
            (RATE, "1002 1041 2045"),
            (QUOTA, "1008 2056"),
            (BAD_KEY, "1004 2049"),
            (TIMEOUT, "1001"),
            (INTERNAL, "1000 1024 1033"),
            (REFUSED, "1026 1027 1042 1043"),
            (CONTEXT, "1039"),
            (INVALID, "2013"),
        ),
        computes=("/text/chatcompletion_v2", *_CHAT),
        numbers=True,
    ),
    Vendor(
        name="qianfan",
        title="Baidu AI Cloud",
        docs="https://cloud.baidu.com/doc/WENXINWORKSHOP/s/tlmyncueh",
        words=words(
            (RATE, "4 18 336501 336502"),
            (QUOTA, "17 19"),
            (BAD_KEY, "13 14 100"),
            (EXPIRED, "110 111"),
            (FORBIDDEN, "6"),
            (UNAVAILABLE, "2 336100"),
            (INTERNAL, "1 336000"),
            (INVALID, "336001 336002 336003"),
            (CONTEXT, "336103 336007"),
        ),
        numbers=True,
    ),
    Vendor(
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
        computes=_CHAT,
    ),
    Vendor(
        name="wechat",
        title="WeChat, WeCom and DingTalk",
        docs="https://developers.weixin.qq.com/doc/offiaccount/Getting_Started/Global_Return_Code.html",
        words=words(
            (RATE, "45011 45033 90018 90002 88"),
            (QUOTA, "45009"),
            (EXPIRED, "42001 42007 40014 41001"),
            (BAD_KEY, "40001 40013 40125 61004"),
            (FORBIDDEN, "48001 48004 50001 50002"),
            (UNAVAILABLE, "-1"),
            (NOT_FOUND, "46003 46004"),
        ),
        numbers=True,
    ),
    Vendor(
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
    ),
)
