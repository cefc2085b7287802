"""
The server that the MCP conformance suite calls: the tools, resources and prompts whose names and answers the suite expects.

    python server.py bare|guarded PORT
"""

import asyncio
import base64
import itertools
import json
import sys
from functools import partial
from typing import Annotated

import mcp_types as types
from mcp.server.mcpserver import Context, MCPServer, RequestStateSecurity
from mcp.server.mcpserver.prompts.base import Prompt, UserMessage
from mcp.server.streamable_http import EventMessage, EventStore
from mcp.shared.exceptions import MCPError
from pydantic import BaseModel, Field

from amends.bindings.mcp import guard
from amends.bindings.mcp.sdk_internals import lowlevel_server

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
WAV = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="

server = MCPServer(
    "conformance", version="1", request_state_security=RequestStateSecurity(keys=[b"only for tests " * 3])
)
tool = partial(server.tool, description="Called by the suite")
prompt = partial(server.prompt, description="Read by the suite")


class Events(EventStore):
    """The events of all streams, so that a client can continue a stream that was closed."""

    def __init__(self):
        self.events = {}
        self.numbers = itertools.count(1)

    async def store_event(self, stream_id, message):
        number = str(next(self.numbers))
        self.events[number] = (stream_id, message)
        return number

    async def replay_events_after(self, last_event_id, send_callback):
        if last_event_id not in self.events:
            return None
        stream = self.events[last_event_id][0]
        for number, (owner, message) in list(self.events.items()):
            if owner == stream and int(number) > int(last_event_id) and message is not None:
                await send_callback(EventMessage(message, number))
        return stream


def text(value):
    return types.TextContent(text=value)


def image():
    return types.ImageContent(data=PNG, mime_type="image/png")


def embedded(uri, value, mime_type="text/plain"):
    return types.EmbeddedResource(
        resource=types.TextResourceContents(uri=uri, mime_type=mime_type, text=value)
    )


# ------------------------------------------------------------------------------------------------ contents of results


@tool()
def test_simple_text() -> str:
    return "This is a simple text response for testing."


@tool()
def test_image_content() -> list[types.ImageContent]:
    return [image()]


@tool()
def test_audio_content() -> list[types.AudioContent]:
    return [types.AudioContent(data=WAV, mime_type="audio/wav")]


@tool()
def test_embedded_resource() -> list[types.EmbeddedResource]:
    return [embedded("test://embedded-resource", "This is an embedded resource content.")]


@tool()
def test_multiple_content_types() -> list[types.TextContent | types.ImageContent | types.EmbeddedResource]:
    mixed = embedded("test://mixed-content-resource", '{"test": "data", "value": 123}', "application/json")
    return [text("Multiple content types test:"), image(), mixed]


@tool()
def test_error_handling() -> str:
    raise RuntimeError("This tool intentionally returns an error for testing")


@tool()
def test_x_mcp_header(
    region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})] = "none",  # noqa: PT028 - no test
) -> str:
    return region


@tool()
def test_missing_capability(ctx: Context) -> str:
    capabilities = ctx.session.client_capabilities
    if capabilities is None or capabilities.sampling is None:
        missing = {"requiredCapabilities": {"sampling": {}}}
        raise MCPError(types.MISSING_REQUIRED_CLIENT_CAPABILITY, "The client has no sampling", missing)
    return "The client has sampling"


# ------------------------------------------------------------------------------------- notifications during a request


@tool()
async def test_tool_with_logging(ctx: Context) -> str:
    for message in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await ctx.info(message)
        await asyncio.sleep(0.05)
    return "done"


@tool()
async def test_tool_with_progress(ctx: Context) -> str:
    for step in (0, 50, 100):
        await ctx.report_progress(step, total=100, message=f"Completed step {step} of 100")
        await asyncio.sleep(0.05)
    return "done"


@tool()
async def test_reconnection(ctx: Context) -> str:
    await ctx.close_sse_stream()
    await asyncio.sleep(0.2)
    return "The stream was closed and continued"


def dynamic() -> str:
    return "dynamic"


@tool()
async def test_trigger_tool_change(ctx: Context) -> str:
    server.add_tool(dynamic, name="test_dynamic_tool")
    server.remove_tool("test_dynamic_tool")
    await ctx.notify_tools_changed()
    return "done"


@tool()
async def test_trigger_prompt_change(ctx: Context) -> str:
    server.add_prompt(Prompt.from_function(dynamic, name="test_dynamic_prompt"))
    server.remove_prompt("test_dynamic_prompt")
    await ctx.notify_prompts_changed()
    return "done"


# ------------------------------------------------------------------------- requests to the client, up to 2025-11-25


@tool()
async def test_sampling(prompt: str, ctx: Context) -> str:
    answer = await ctx.session.create_message(
        messages=[types.SamplingMessage(role="user", content=text(prompt))],
        max_tokens=100,
        related_request_id=ctx.request_id,
    )
    return f"LLM response: {answer.content.text}"


class Response(BaseModel):
    response: str = Field(description="What the user says")


class Defaults(BaseModel):
    name: str = "John Doe"
    age: int = 30
    score: float = 95.5
    status: str = Field("active", json_schema_extra={"enum": ["active", "inactive", "pending"]})
    verified: bool = True


def options(*names):
    return [{"const": name, "title": name.title()} for name in names]


def choice(**schema):
    return Field(json_schema_extra=schema)


class Choices(BaseModel):
    untitledSingle: str = choice(enum=["active", "inactive", "pending"])  # noqa: N815 - the suite's names
    titledSingle: str = choice(oneOf=options("low", "high"))  # noqa: N815
    untitledMulti: list[str] = choice(items={"type": "string", "enum": ["read", "write"]})  # noqa: N815
    titledMulti: list[str] = choice(items={"anyOf": options("bug", "docs")})  # noqa: N815
    legacyEnum: str = choice(enum=["small", "large"], enumNames=["Small Size", "Large Size"])  # noqa: N815


async def elicit(ctx, message, schema):
    answer = await ctx.elicit(message=message, schema=schema)
    content = answer.data.model_dump_json() if answer.action == "accept" else "{}"
    return f"action={answer.action}, content={content}"


@tool()
async def test_elicitation(message: str, ctx: Context) -> str:
    return await elicit(ctx, message, Response)


@tool()
async def test_elicitation_sep1034_defaults(ctx: Context) -> str:
    return await elicit(ctx, "Please provide user information", Defaults)


@tool()
async def test_elicitation_sep1330_enums(ctx: Context) -> str:
    return await elicit(ctx, "Please choose", Choices)


# ------------------------------------------------------------------------------------ input_required, from 2026-07-28

Asked = types.InputRequiredResult


def ask(name, message="Please answer", kind="string"):
    schema = {"type": "object", "properties": {name: {"type": kind}}, "required": [name]}
    return types.ElicitRequest(params=types.ElicitRequestFormParams(message=message, requested_schema=schema))


def ask_model(prompt):
    message = types.SamplingMessage(role="user", content=text(prompt))
    params = types.CreateMessageRequestParams(messages=[message], max_tokens=100)
    return types.CreateMessageRequest(params=params)


def answered(ctx, *names):
    """Return whether the client answered all of these questions."""
    return bool(ctx.input_responses) and set(names) <= ctx.input_responses.keys()


def answer(ctx, name, field):
    return (getattr(ctx.input_responses[name], "content", None) or {}).get(field)


@tool()
async def test_input_required_result_elicitation(ctx: Context) -> str | Asked:
    if answered(ctx, "user_name"):
        return f"Hello, {answer(ctx, 'user_name', 'name')}!"
    return Asked(input_requests={"user_name": ask("name", "What is your name?")})


@tool()
async def test_input_required_result_sampling(ctx: Context) -> str | Asked:
    if answered(ctx, "capital_question"):
        return f"Model said: {ctx.input_responses['capital_question'].content.text}"
    return Asked(input_requests={"capital_question": ask_model("What is the capital of France?")})


@tool()
async def test_input_required_result_list_roots(ctx: Context) -> str | Asked:
    if answered(ctx, "client_roots"):
        return f"{len(ctx.input_responses['client_roots'].roots)} roots"
    return Asked(input_requests={"client_roots": types.ListRootsRequest()})


@tool()
async def test_input_required_result_request_state(ctx: Context) -> str | Asked:
    if answered(ctx, "confirm") and ctx.request_state == "asked":
        return "state-ok"
    return Asked(input_requests={"confirm": ask("ok", kind="boolean")}, request_state="asked")


@tool()
async def test_input_required_result_tampered_state(ctx: Context) -> str | Asked:
    if ctx.request_state is not None:
        return "state-ok"
    return Asked(input_requests={"confirm": ask("ok", kind="boolean")}, request_state="asked")


@tool()
async def test_input_required_result_multiple_inputs(ctx: Context) -> str | Asked:
    if answered(ctx, "user_name", "greeting", "client_roots"):
        return "All inputs received."
    questions = {
        "user_name": ask("name"),
        "greeting": ask_model("Generate a greeting"),
        "client_roots": types.ListRootsRequest(),
    }
    return Asked(input_requests=questions, request_state="asked")


@tool()
async def test_input_required_result_multi_round(ctx: Context) -> str | Asked:
    state = json.loads(ctx.request_state or "{}")
    if state.get("round") == 1 and answered(ctx, "step1"):
        state = {"round": 2, "name": answer(ctx, "step1", "name")}
        return Asked(input_requests={"step2": ask("color")}, request_state=json.dumps(state))
    if state.get("round") == 2 and answered(ctx, "step2"):
        return f"{state['name']} likes {answer(ctx, 'step2', 'color')}."
    return Asked(input_requests={"step1": ask("name")}, request_state=json.dumps({"round": 1}))


@tool()
async def test_input_required_result_capabilities(ctx: Context) -> Asked:
    declared = ctx.client_capabilities
    questions = {}
    if declared is not None and declared.sampling is not None:
        questions["sample"] = ask_model("Say hello")
    if declared is not None and declared.elicitation is not None:
        questions["ask"] = ask("name")
    return Asked(input_requests=questions, request_state="asked")


@prompt()
async def test_input_required_result_prompt(ctx: Context) -> list[UserMessage] | Asked:
    if answered(ctx, "user_context"):
        return [UserMessage(content=text(f"Context: {answer(ctx, 'user_context', 'context')}"))]
    return Asked(input_requests={"user_context": ask("context")})


# ------------------------------------------------------------------------------------------------ JSON Schema 2020-12


@tool()
def json_schema_2020_12_tool() -> str:
    return "done"


ADDRESS = {"$anchor": "addressDef", "type": "object", "properties": {"city": {"type": "string"}}}
NAMES = ("name", "contactMethod", "phone", "email")
# The SDK makes schemas from signatures only, and a listing has no copy of them.
SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {"address": ADDRESS},
    "properties": {**{name: {"type": "string"} for name in NAMES}, "address": {"$ref": "#/$defs/address"}},
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}
list_tools = server.list_tools


async def list_with_schema(*args, **kwargs):
    tools = await list_tools(*args, **kwargs)
    return [
        tool.model_copy(update={"input_schema": SCHEMA}) if tool.name == "json_schema_2020_12_tool" else tool
        for tool in tools
    ]


server.list_tools = list_with_schema

# ----------------------------------------------------------------------------------- resources, prompts, completions


@server.resource("test://static-text")
def static_text() -> str:
    return "This is the content of the static text resource."


@server.resource("test://static-binary")
def static_binary() -> bytes:
    return base64.b64decode(PNG)


@server.resource("test://watched-resource")
def watched() -> str:
    return "Watched"


@server.resource("test://template/{id}/data")
def template(id: str) -> str:
    return json.dumps({"id": id, "templateTest": True, "data": f"Data for ID: {id}"})


@prompt()
def test_simple_prompt() -> list[UserMessage]:
    return [UserMessage(content=text("This is a simple prompt for testing."))]


@prompt()
def test_prompt_with_arguments(arg1: str, arg2: str) -> list[UserMessage]:
    return [UserMessage(content=text(f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"))]


@prompt()
def test_prompt_with_embedded_resource(resourceUri: str) -> list[UserMessage]:  # noqa: N803 - the suite's name
    content = embedded(resourceUri, "Embedded resource content for testing.")
    return [UserMessage(content=content), UserMessage(content=text("Please process it."))]


@prompt()
def test_prompt_with_image() -> list[UserMessage]:
    return [UserMessage(content=image()), UserMessage(content=text("Please analyze it."))]


@server.completion()
async def complete(ref, argument, context):
    return types.Completion(values=[], total=0, has_more=False)


async def accept(ctx, params):
    return types.EmptyResult()


for method, params in {
    "logging/setLevel": types.SetLevelRequestParams,
    "resources/subscribe": types.SubscribeRequestParams,
    "resources/unsubscribe": types.UnsubscribeRequestParams,
}.items():
    lowlevel_server(server).add_request_handler(method, params, accept)


if __name__ == "__main__":
    if sys.argv[1] == "guarded":
        guard(server)
    server.run(transport="streamable-http", port=int(sys.argv[2]), event_store=Events(), retry_interval=100)
