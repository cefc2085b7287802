"""
Record how the adcp SDK reads a guarded server's errors, and what its server helpers write.

    python scripts/record_adcp.py     # needs the bench extra: importing adcp takes 13 s, and it pins another a2a-sdk

The tests hold the guard to the recorded answers, so the other side of the wire need not be installed to run them.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(HERE))

OUT = HERE / "tests" / "bindings" / "adcp_recorded.json"
KINDS = ("limited", "budget", "own", "crash", "tool error")


async def ours() -> list[dict[str, Any]]:
    """What a guarded server answers, and what adcp finds in it: with structured content, and by its text alone."""
    import mcp
    from adcp.protocols.mcp import extract_adcp_error
    from tests.bindings.apps.mcp_shop import Shop, official

    found = []
    async with mcp.Client(official(Shop())) as client:
        for kind in KINDS:
            result = await client.call_tool("fails", {"kind": kind})
            text = result.model_copy(update={"structured_content": None})
            found.append(
                {
                    "kind": kind,
                    "result": json.loads(result.model_dump_json(by_alias=True, exclude={"meta"})),
                    "read": extract_adcp_error(result),
                    "read_from_text": extract_adcp_error(text),
                }
            )
    return found


def theirs() -> list[dict[str, Any]]:
    """What adcp's own server helpers answer."""
    from adcp.server.helpers import adcp_error
    from adcp.server.translate import build_mcp_error_result
    from adcp.types import Error

    error = Error(
        code="RATE_LIMITED",
        message="Slow down",
        recovery="transient",
        retry_after=5,
        details={"scope": "agent"},
    )
    field = Error(
        code="BUDGET_TOO_LOW",
        message="Raise it",
        recovery="correctable",
        field="budget",
        suggestion="Ask for more",
    )
    return [
        *(
            {
                "helper": "build_mcp_error_result",
                "result": json.loads(build_mcp_error_result(each).model_dump_json(by_alias=True)),
                "code": str(getattr(each.code, "value", each.code)),
            }
            for each in (error, field)
        ),
        {
            "helper": "adcp_error",
            "result": {
                "content": [],
                "isError": True,
                "structuredContent": adcp_error("RATE_LIMITED", retry_after=5),
            },
            "code": "RATE_LIMITED",
        },
    ]


def main() -> None:
    """Write the record."""
    logging.disable(logging.CRITICAL)
    record = {"adcp": version("adcp"), "ours": asyncio.run(ours()), "theirs": theirs()}
    OUT.write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
