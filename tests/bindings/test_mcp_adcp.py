"""
Results recorded from `adcp`, the official SDK for these errors (scripts/record_adcp.py). It cannot be installed with the
other test dependencies, because it requires an older a2a-sdk, and importing it takes longer than all of these tests.
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
    """An error without its trace id, which differs in each run."""
    return {name: value for name, value in error.items() if name != "trace_id"}


@pytest.mark.parametrize("case", RECORD["ours"], ids=lambda case: case["kind"])
async def test_adcp_reads_the_errors_of_a_guarded_server(case):
    """The guard still sends the recorded error, and adcp read it in both places."""
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
async def test_errors_of_adcps_helpers_are_read(case):
    """Through the client of the official MCP SDK, and with `extract`."""
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
