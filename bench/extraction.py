"""Extraction: S4's RATE_LIMITED result against the floor and against adcp's own; bodies of vendors of about 500 bytes."""

from __future__ import annotations

import msgspec

from amends import extract
from bench.measure import HEADER, Ratio, compare

ERROR = {
    "code": "RATE_LIMITED",
    "message": "Request rate exceeded",
    "retry_after": 5,
    "recovery": "transient",
}
RESULT = {
    "content": [{"type": "text", "text": msgspec.json.encode({"adcp_error": ERROR}).decode()}],
    "isError": True,
    "structuredContent": {"adcp_error": ERROR},
}

_PROSE = (
    "This request would exceed your organization's rate limit of 50,000 input tokens per minute. For details, refer to the "
    "reference. You can see the response headers for current usage. Please reduce the prompt length or the maximum tokens "
    "requested, or try again later. You may also contact sales to discuss your options for a rate limit increase."
)
_GOOGLE_DETAILS = [
    {
        "@type": "type.googleapis.com/google.rpc.QuotaFailure",
        "violations": [
            {
                "quotaMetric": "generativelanguage.googleapis.com/generate_content_free_tier_requests",
                "quotaId": "GenerateRequestsPerMinutePerProjectPerModel-FreeTier",
            }
        ],
    },
    {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "27s"},
]
VENDORS = {
    "google": {
        "error": {
            "code": 429,
            "message": "You exceeded your current quota, please check your plan and billing details.",
            "status": "RESOURCE_EXHAUSTED",
            "details": _GOOGLE_DETAILS,
        }
    },
    "openai": {
        "error": {"message": _PROSE, "type": "requests", "param": None, "code": "rate_limit_exceeded"}
    },
    "anthropic": {
        "type": "error",
        "error": {"type": "rate_limit_error", "message": _PROSE},
        "request_id": "req_011CT",
    },
}


def four_keys() -> tuple[object, ...]:
    error = RESULT["structuredContent"]["adcp_error"]
    return error["code"], error["message"], error["retry_after"], error["recovery"]


def main() -> list[str]:
    data = msgspec.json.encode(RESULT)
    rows: list[Ratio] = [
        compare("extract(dict) / reading four keys", lambda: extract(RESULT, via="mcp"), four_keys, want="–"),
        compare(
            "extract(bytes) / msgspec.json.decode",
            lambda: extract(data, via="mcp"),
            lambda: msgspec.json.decode(data),
            want="≤ 4",
        ),
        compare(
            "extract(bytes), no via / msgspec.json.decode",
            lambda: extract(data),
            lambda: msgspec.json.decode(data),
            want="–",
        ),
    ]
    headers = {"content-type": "application/json", "x-request-id": "req_123"}
    for name, body in VENDORS.items():
        written = msgspec.json.encode(body)
        for kind, sent in (("bytes", written), ("parsed", body)):
            response = {"status": 429, "headers": headers, "body": sent}
            rows.append(
                compare(
                    f"{name}, {len(written)} bytes, {kind} / msgspec.json.decode",
                    lambda response=response: extract(response),
                    lambda written=written: msgspec.json.decode(written),
                    want="≤ 15 µs",
                    calls=200,
                )
            )
    try:
        from adcp.protocols.mcp import extract_adcp_error
        from mcp.types import CallToolResult
    except ImportError:
        return ["adcp is not installed: `make bench` installs it", HEADER, *(row.row() for row in rows)]
    theirs = CallToolResult.model_validate(RESULT)
    assert extract_adcp_error(theirs) == ERROR
    rows.insert(
        0,
        compare(
            "extract(dict) / adcp 9.2 on its own object",
            lambda: extract(RESULT, via="mcp"),
            lambda: extract_adcp_error(theirs),
            want="≤ 0.35",
        ),
    )
    return [HEADER, *(row.row() for row in rows)]
