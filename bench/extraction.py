"""Extraction: S4's RATE_LIMITED result, from a dict and from bytes, against the floor and against adcp's own."""

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
