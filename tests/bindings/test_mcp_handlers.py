"""Failures of everything that is no tool: resources, prompts, completions, callbacks of a client, time limits."""

import asyncio
import warnings

import fastmcp
import mcp
import mcp_types as types
import pydantic
import pytest
from mcp.server.mcpserver import Context, MCPServer

from amends import extract
from amends.bindings import fastmcp as fast
from amends.bindings.mcp import Client, guard
from amends.errors import NotFoundError, ValidationError
from tests.bindings.apps.mcp_shop import SECRET

pytestmark = pytest.mark.usefixtures("quiet")


class Row(pydantic.BaseModel):
    number: int


def prompts(server):
    """Add a prompt whose argument is a number, and one whose author validates something else."""

    @server.prompt()
    def seats(count: int) -> str:
        return "Book them"

    @server.prompt()
    def rows(name: str) -> str:
        return str(Row(number=SECRET))

    return server


async def refused(call):
    with pytest.raises(mcp.MCPError) as caught:
        await call
    assert SECRET not in repr(caught.value.error)
    return caught.value


async def test_prompt_arguments_of_the_wrong_type():
    """VALIDATION_ERROR; a validation inside of the prompt's own code is its bug."""
    official, fast_server = guard(prompts(MCPServer("seats"))), fast.guard(prompts(fastmcp.FastMCP("seats")))
    async with mcp.Client(official) as client:
        wrong = extract(await refused(client.get_prompt("seats", {"count": SECRET})))
        assert (wrong.code, wrong.field, wrong.suggestions) == (
            "VALIDATION_ERROR",
            "count",
            ("Send a whole number",),
        )
        assert extract(await refused(client.get_prompt("rows", {"name": "x"}))).code == "SERVICE_UNAVAILABLE"
    async with fastmcp.Client(fast_server) as client:
        assert (
            extract(await refused(client.get_prompt_mcp("seats", {"count": SECRET}))).code
            == "VALIDATION_ERROR"
        )
        assert (
            extract(await refused(client.get_prompt_mcp("rows", {"name": "x"}))).code == "SERVICE_UNAVAILABLE"
        )


async def test_prompt_arguments_that_are_missing():
    """VALIDATION_ERROR with the first of them as the field; FastMCP's was SERVICE_UNAVAILABLE, terminal."""
    official, fast_server = guard(prompts(MCPServer("seats"))), fast.guard(prompts(fastmcp.FastMCP("seats")))
    async with mcp.Client(official) as client, fastmcp.Client(fast_server) as fast_client:
        for get in (client.get_prompt, fast_client.get_prompt_mcp):
            absent = extract(await refused(get("seats", {})))
            assert (absent.code, absent.field) == ("VALIDATION_ERROR", "count")


async def test_a_listing_that_fails_while_a_failure_is_answered():
    """The failure of the call is answered, and no text of the listing's."""
    server = prompts(MCPServer("seats"))

    async def fails():
        raise OSError(SECRET)

    server.list_tools = server.list_prompts = fails
    guard(server)
    async with mcp.Client(server) as client:
        await refused(client.get_prompt("seats", {"count": "1x"}))
        result = await client.call_tool("nothing", {})
    assert result.is_error
    assert SECRET not in result.model_dump_json()
    assert extract(result) is not None


async def test_resources_keep_their_uri_and_the_authors_sentence():
    """`data.uri` as the SDKs send it; the message of the JSON-RPC error is the author's; no note of the code."""
    for server, make in ((MCPServer("shop"), guard), (fastmcp.FastMCP("shop"), fast.guard)):

        @server.resource("shop://orders/{id}")
        def order(id: str) -> str:
            raise NotFoundError(f"There is no order {id}", suggestions=["List the orders"])

        make(server)
        async with (mcp.Client if make is guard else fastmcp.Client)(server) as client:
            read = client.read_resource if make is guard else client.read_resource_mcp
            missing = await refused(read("shop://orders/7"))
            assert missing.error.message == "There is no order 7"
            assert missing.error.data["uri"] == "shop://orders/7"
            assert "details" not in missing.error.data["adcp_error"]
            unknown = await refused(read("shop://nothing"))
            assert (unknown.code, unknown.error.data["uri"]) == (-32602, "shop://nothing")
            assert extract(unknown).code == "REFERENCE_NOT_FOUND"


async def test_completions_are_guarded():
    """Like a prompt."""
    server = prompts(MCPServer("seats"))

    @server.completion()
    async def complete(ref, argument, context):
        raise KeyError(SECRET)

    async with mcp.Client(guard(server)) as client:
        reference = types.PromptReference(type="ref/prompt", name="seats")
        failed = await refused(client.complete(reference, {"name": "count", "value": "1"}))
        assert extract(failed).recovery.value == "terminal"


class Answer(pydantic.BaseModel):
    size: int


async def fails(*args):
    raise KeyError(SECRET)


@pytest.mark.parametrize("kind", ["official", "fastmcp"])
async def test_callbacks_of_a_client_leak_nothing(kind):
    """What a sampling or elicitation function raises is answered with a standard message."""
    server = MCPServer("asking")
    seen = []

    @server.tool()
    async def ask(ctx: Context) -> str:
        text = types.TextContent(type="text", text="Hello")
        with warnings.catch_warnings(action="ignore"):
            try:
                await ctx.elicit("Which size?", Answer)
            except mcp.MCPError as error:
                seen.append(error)
            try:
                message = types.SamplingMessage(role="user", content=text)
                await ctx.session.create_message([message], max_tokens=5)
            except mcp.MCPError as error:
                seen.append(error)
        return "asked"

    if kind == "official":
        client = Client(server, mode="legacy", elicitation_callback=fails, sampling_callback=fails)
    else:
        client = fast.Client(server, mode="legacy", elicitation_handler=fails, sampling_handler=fails)
    async with client:
        await client.call_tool("ask")
    assert len(seen) == 2
    assert SECRET not in repr([error.error for error in seen])


async def test_a_call_that_needs_input_is_to_be_answered_and_repeated():
    """`input_required` of 2026-07-28: not a failure for the guard, correctable for a client that cannot answer."""
    server = MCPServer("asking")

    @server.tool()
    async def book(ctx: Context) -> str | types.InputRequiredResult:
        asked = types.ElicitRequest(
            params=types.ElicitRequestFormParams(
                message="Which row?", requested_schema={"type": "object", "properties": {}}
            )
        )
        return types.InputRequiredResult(input_requests={"row": asked}, request_state="1")

    guard(server)
    async with Client(server) as client:
        with pytest.raises(ValidationError) as caught:
            await client.call_tool("book")
    fault = caught.value.fault
    assert (fault.recovery.value, fault.executed.value) == ("correctable", "no")
    assert caught.value.decision.action.value == "fix"
    assert len(caught.value.history) == 1

    async def answer(context, params):
        return types.ElicitResult(action="accept", content={})

    async with Client(server, elicitation_callback=answer, input_required_max_rounds=2) as client:
        with pytest.raises(ValidationError):
            await client.call_tool("book")
    assert extract({"resultType": "input_required", "inputRequests": {}}, "mcp") is None


async def test_time_limits_and_inner_cancellations_are_failures():
    """FastMCP's `timeout=` and a cancelled task inside of a tool: the caller gets an error of the tool."""
    server = fastmcp.FastMCP("slow")

    @server.tool(timeout=0.01)
    async def slow() -> str:
        await asyncio.Event().wait()

    @server.tool()
    async def inner() -> str:
        task = asyncio.ensure_future(asyncio.Event().wait())
        task.cancel()
        await task

    async with fastmcp.Client(fast.guard(server)) as client:
        for name in ("slow", "inner"):
            fault = extract(await client.call_tool_mcp(name, {}))
            assert (fault.code, fault.executed.value) == ("SERVICE_UNAVAILABLE", "maybe"), name
