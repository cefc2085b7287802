"""
The official SDK for these errors on the other side, from a record of it (scripts/record_adcp.py): it cannot be installed
beside the rest, because it holds a2a-sdk back, and importing it takes longer than all of these tests.
"""

import json
import logging
from pathlib import Path

import mcp
import pytest
from mcp.server import Server
from mcp_types import CallToolResult

from amends import FaultError, extract
from amends.bindings.mcp import Client
from amends.recovery import NONE
from tests.bindings.apps.mcp_shop import Shop, official

RECORD = json.loads((Path(__file__).parent / "adcp_recorded.json").read_text())
KEY = "adcp_error"


def steady(error):
    """An error without its trace id, which is another one every time."""
    return {name: value for name, value in error.items() if name != "trace_id"}


@pytest.mark.parametrize("case", RECORD["ours"], ids=lambda case: case["kind"])
async def test_adcp_reads_what_a_guarded_server_says(case):
    """What adcp was given is what the guard says today, and adcp found it, in both places."""
    logging.getLogger("amends.mcp").setLevel(logging.CRITICAL + 1)
    async with mcp.Client(official(Shop())) as client:
        result = await client.call_tool("fails", {"kind": case["kind"]})
    logging.getLogger("amends.mcp").setLevel(logging.NOTSET)
    today = result.structured_content[KEY]
    assert steady(today) == steady(case["result"]["structuredContent"][KEY])
    assert steady(json.loads(result.content[0].text)[KEY]) == steady(today)
    assert case["read"] == case["result"]["structuredContent"][KEY]
    assert case["read_from_text"] == case["read"]


@pytest.mark.parametrize("case", RECORD["theirs"], ids=lambda case: case["helper"])
async def test_we_read_what_adcps_helpers_say(case):
    """Through the real client of the official MCP SDK, and bare."""
    fault = extract(case["result"], "mcp")
    assert fault.code == case["code"]

    async def call_tool(ctx, params):
        return CallToolResult.model_validate(case["result"])

    async with Client(Server("theirs", on_call_tool=call_tool), policy=NONE) as client:
        with pytest.raises(FaultError) as caught:
            await client.call_tool("any")
    assert caught.value.code == case["code"]
    assert caught.value.fault.recovery is fault.recovery
    assert caught.value.fault.retry_after == fault.retry_after
