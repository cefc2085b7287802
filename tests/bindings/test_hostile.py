"""The hostile catalogue through every binding that gives a model or a program text about a failure (A20)."""

import json
import logging

import fastmcp
import pytest
from a2a.types.a2a_pb2 import Part
from fastmcp.exceptions import ToolError
from fastmcp.tools.base import ToolResult
from google.protobuf.json_format import ParseDict
from mcp.shared.exceptions import MCPError
from mcp.types import TextContent
from pydantic_ai import Agent, ModelRetry
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel

from amends import FaultError, extract, for_llm
from amends.bindings.fastmcp import Client as FastClient
from amends.bindings.mcp import Client
from amends.bindings.pydantic_ai import Failures
from amends.carriers.extraction import examine
from amends.recovery import NONE
from amends.tools import failure_text, reporting
from tests.bindings.a2a_client.clients import client_for
from tests.bindings.agents import PATHS, agent_server, events_of, request
from tests.bindings.agents import Agent as Executor
from tests.hostile import CATALOGUE, SURROGATES, check

FORMS = ("structured", "text", "two texts", "plain", "payload", "rpc", "raised")
"""How a server sends the error."""


@pytest.fixture(autouse=True)
def quiet():
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def shop():
    """Return a server whose tool fails with an error of the catalogue, in one of the forms."""
    server = fastmcp.FastMCP("shop")

    @server.tool(output_schema=None)
    def sell(name: str, form: str) -> ToolResult:
        error = CATALOGUE[name]
        document = {"adcp_error": error, "errors": [error]}
        texts = [json.dumps(document), error["message"]]
        if form == "rpc":
            raise MCPError(-32603, error["message"], {"adcp_error": error})
        if form == "raised":
            raise ToolError(error["message"])
        if form == "structured":
            return ToolResult(content=texts, structured_content=document, is_error=True)
        if form == "payload":
            return ToolResult(content="x", structured_content={"errors": [error] * 3}, is_error=True)
        content = {"text": texts[:1], "two texts": texts, "plain": texts[1:]}[form]
        return ToolResult(content=[TextContent(type="text", text=each) for each in content], is_error=True)

    return server


def model_for(name, form, seen):
    """Return a model that calls the tool once, and keeps what it gets."""

    def respond(messages, info):
        # pydantic-ai adds a prompt of its own behind some results.
        results = [part for part in messages[-1].parts if part.part_kind != "user-prompt"]
        if not results:
            return ModelResponse([ToolCallPart("sell", {"name": name, "form": form})])
        for result in results:
            text = result.content if isinstance(result.content, str) else repr(result.content)
            seen.append((result.outcome, text))
        return ModelResponse([TextPart("done")])

    return FunctionModel(respond)


@pytest.mark.parametrize("behavior", ["retry", "failed", "error"])
async def test_pydantic_ai_mcp_toolsets(behavior):
    """No form of a failed MCP result reaches the model as received, whatever the toolset does with errors."""
    toolset = MCPToolset(shop(), tool_error_behavior=behavior)
    async with toolset:
        for name in CATALOGUE:
            for form in FORMS:
                seen = []
                agent = Agent(
                    model_for(name, form, seen),
                    toolsets=[toolset],
                    capabilities=[Failures()],
                )
                result = await agent.run("hi")
                ((outcome, text),) = seen
                check(text)
                assert result.output == "done"
                assert "Failed: " in text
                if (
                    form == "structured"
                    and behavior != "error"
                    and name not in {"megabyte", "code", "code text"}
                ):
                    assert CATALOGUE[name]["code"] in text
                    assert outcome == ("retried" if name == "correctable" else "failed")


async def test_without_the_capability_the_error_reaches_the_model():
    """What `Failures` is for: pydantic-ai alone shows the model the server's JSON."""
    seen = []
    agent = Agent(model_for("fence", "structured", seen), toolsets=[MCPToolset(shop())])
    await agent.run("hi")
    with pytest.raises(AssertionError):
        check(seen[0][1])


async def test_a_retry_of_a_tool_call_hook_is_kept():
    """A ModelRetry that the program's own hook of an MCP toolset raised has its author's text."""

    async def hook(ctx, call_tool, name, args):
        raise ModelRetry("Name a weekday")

    seen = []
    toolset = MCPToolset(shop(), process_tool_call=hook)
    await Agent(model_for("url", "plain", seen), toolsets=[toolset], capabilities=[Failures()]).run("hi")
    assert "Name a weekday" in seen[0][1]


def faults():
    """Yield the catalogue as faults, received in every way that does not need a transport."""
    for error in (*CATALOGUE.values(), SURROGATES):
        documents = (
            {"isError": True, "structuredContent": {"adcp_error": error}},
            {"isError": True, "content": [{"type": "text", "text": error["message"]}]},
            {
                "jsonrpc": "2.0",
                "error": {"code": -32602, "message": error["message"], "data": {"adcp_error": error}},
            },
            {"status": {"state": "failed", "message": {"parts": [{"text": error["message"]}]}}},
            {
                "status": 400,
                "headers": {},
                "body": {"title": error["message"], "detail": error["message"], "errors": [error]},
            },
            {"exit": 1, "stdout": json.dumps({"ok": False, "error": error}), "stderr": error["message"]},
            {"id": "t", "status": "failed", "error": {**error, "recoverable": False}},
            {"arcp": "1.1", "type": "job.error", "payload": {**error, "retryable": False}},
        )
        for document in documents:
            fault = examine(document, native=True)[1].fault
            if fault is not None:
                yield fault


async def test_texts_of_faults():
    """`for_llm`, `failure_text`, `tools.reporting`, a pydantic-ai tool, and `str` of the error, for every format."""
    count = 0
    for fault in faults():
        check(for_llm(fault, repeats=3, hosts=["seller.example"], arguments=["day", fault.field or ""]))
        error = FaultError.from_fault(fault)
        check(failure_text(error))
        check(str(error), fenced=False)

        @reporting
        def tool(day: str, error=error) -> str:
            raise error

        @reporting
        async def later(day: str, error=error) -> str:
            raise error

        check(tool("Monday"))
        check(await later("Monday"))
        count += 1
    assert count > 100

    def raising(error):
        def sell(name: str, form: str) -> str:
            raise error

        return sell

    for fault in list(faults())[::8]:
        seen = []
        agent = Agent(model_for("url", "plain", seen), capabilities=[Failures()])
        agent.tool_plain(raising(FaultError.from_fault(fault)), name="sell")
        await agent.run("hi")
        check(seen[0][1])


@pytest.mark.parametrize("kind", ["mcp", "fastmcp"])
async def test_mcp_clients(kind):
    """The text of what our clients raise, and the model's text for it."""
    server = shop()
    made = Client(server._mcp_server, policy=NONE) if kind == "mcp" else FastClient(server, policy=NONE)
    async with made as client:
        for name in CATALOGUE:
            for form in FORMS:
                with pytest.raises(FaultError) as caught:
                    await client.call_tool("sell", {"name": name, "form": form})
                check(str(caught.value), fenced=False)
                check(failure_text(caught.value))


async def fail(context, updater):
    """Fail with the error that the message names."""
    error = CATALOGUE[context.get_user_input()]
    part = Part()
    ParseDict({"adcp_error": error}, part.data.struct_value)
    await updater.add_artifact([Part(text=error["message"]), part], artifact_id="error-result")
    await updater.failed(updater.new_agent_message([Part(text=error["message"])]))


async def test_the_a2a_client():
    """The text of what our client raises for a failed task, and the model's text for it."""
    with agent_server(Executor(fail)) as base:
        for path in PATHS[:2]:
            async with client_for(base, path, policy=NONE) as client:
                for name in CATALOGUE:
                    with pytest.raises(FaultError) as caught:
                        await events_of(client, request(name))
                    check(str(caught.value), fenced=False)
                    check(failure_text(caught.value))


def test_the_catalogue_is_read():
    """Every error of the catalogue is one that readers accept, except the one that is too large."""
    for name, error in CATALOGUE.items():
        found = extract({"isError": True, "structuredContent": {"adcp_error": error}}, native=False)
        assert (found is not None) is (name != "megabyte"), name
