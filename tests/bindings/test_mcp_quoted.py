"""An API's answer that a failed tool quotes in its result, from real servers: it decides, and prose does not."""

import json

import pytest
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, CallToolResult, TextContent

from amends import FaultError, Operation, Policy, Upstream, extract
from amends.bindings.mcp import Client
from amends.recovery import ADCP

pytestmark = pytest.mark.usefixtures("quiet")

QUOTA = {"error": {"message": "…", "type": "insufficient_quota", "param": None, "code": "insufficient_quota"}}
RATE = {"status": 429, "headers": {"Retry-After": "0.1"}, "body": {"error": {"code": "too_fast"}}}
WRONG = {"error": {"type": "invalid_request_error", "code": "parameter_missing", "param": "amount"}}
PRISM = {"name": "TypeError", "stack": "…"}


def server(calls):
    """Return a server whose tool fails as `how` says."""
    made = MCPServer("shop")

    @made.tool()
    def call(how: str) -> CallToolResult:
        calls.append(how)
        if how == "raised":
            # The SDK writes its frame before the text of the exception.
            raise ToolError(json.dumps(QUOTA))
        texts = {
            "text": json.dumps(QUOTA),
            "frames": f"MCP error -32603: {json.dumps(QUOTA)}",
            "stainless": "Error code: 402 - {'error': {'message': 'no money'}}",
            "number": "MCP error -32602: Input validation error: Invalid arguments for tool call",
            "status": json.dumps(RATE),
            "field": json.dumps(WRONG),
            "prose": f"Could not pay: {json.dumps(QUOTA)}",
            "other": json.dumps(PRISM),
        }
        if how == "structured":
            return CallToolResult(content=[], structured_content=QUOTA, is_error=True)
        return CallToolResult(content=[TextContent(type="text", text=texts[how])], is_error=True)

    return made


@pytest.mark.parametrize(
    ("how", "code", "calls"),
    [
        ("raised", "QUOTA_EXCEEDED", 1),
        ("text", "QUOTA_EXCEEDED", 1),
        ("structured", "QUOTA_EXCEEDED", 1),
        ("frames", "QUOTA_EXCEEDED", 1),
        ("stainless", "PAYMENT_REQUIRED", 1),
        ("number", "VALIDATION_ERROR", 1),
        ("field", "VALIDATION_ERROR", 1),
        ("status", "RATE_LIMITED", 3),
        ("prose", "INTERNAL_ERROR", 3),
        ("other", "INTERNAL_ERROR", 3),
    ],
)
async def test_the_quoted_answer_decides(how, code, calls):
    """A used-up quota and a wrong argument are called for once; a rate limit is repeated after its wait."""
    made = []
    async with Client(server(made), policy=ADCP, upstream=None) as client:
        with pytest.raises(FaultError) as caught:
            await client.call_tool("call", {"how": how}, operation=Operation(read_only=True))
    fault = caught.value.fault
    assert (fault.code, len(made)) == (code, calls)
    assert fault.executed == "maybe"
    assert fault.field == ("amount" if how == "field" else None)
    if how == "status":
        assert fault.retry_after == 0.1


def test_extract_reads_it_only_as_native():
    """AdCP's own reading is unchanged; a result that is no failure is never read."""
    result = {"isError": True, "content": [{"type": "text", "text": json.dumps(QUOTA)}]}
    assert extract(result, native=False) is None
    assert extract(result, native=True).code == "QUOTA_EXCEEDED"
    assert extract(result, native=True).origin.path == "content"
    for no_failure in (
        {**result, "isError": False},
        {"content": result["content"]},
        {**result, "isError": "true"},
    ):
        assert extract(no_failure, native=True) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[" * 50_000,
        "Error executing tool x: " * 1000,
        "MCP error -99999999: {}",
        'MCP error -32603: {"error": {"code": ["insufficient_quota"]}}',
        '{"status": 99999999999999999999, "body": {}}',
        '{"error": null}',
        '{"ok": true}',
        '{"rows": [{"error": {"code": "insufficient_quota"}}]}',
        '{"a":' * 500 + "1" + "}" * 500,
        json.dumps({"error": {"code": "insufficient_quota", "message": "x" * 70_000}}),
    ],
)
def test_other_texts_are_not_read(text):
    """Incomplete, nested, large and ordinary documents: the failure has no more exact code."""
    result = {"isError": True, "content": [{"type": "text", "text": text}]}
    assert extract(result, native=True).code == "INTERNAL_ERROR"


async def test_the_service_behind_the_tools_can_be_named():
    """With `Upstream(vendor=…)` the numbers of that service decide, in a result and in the data of an error."""
    made = MCPServer("calls")
    expired = {"code": 124, "message": "Access token is expired."}

    @made.tool()
    def call(how: str) -> CallToolResult:
        if how == "error":
            raise MCPError(INTERNAL_ERROR, "…", expired)
        return CallToolResult(content=[TextContent(type="text", text=json.dumps(expired))], is_error=True)

    for how in ("result", "error"):
        codes = []
        for upstream in (Upstream("calls", vendor="zoom"), None):
            async with Client(made, policy=Policy(attempts=1), upstream=upstream) as client:
                with pytest.raises(FaultError) as caught:
                    await client.call_tool("call", {"how": how})
                codes.append(caught.value.fault.code)
        assert codes == ["UNAUTHENTICATED", "INTERNAL_ERROR"], how
