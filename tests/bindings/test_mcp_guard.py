"""Guarded MCP servers and the plain official client: failures are AdCP errors, without text of foreign exceptions."""

import json
import logging
import re
import sys

import httpx
import mcp
import pytest
from mcp.client.stdio import StdioServerParameters
from mcp.server import Server
from mcp.server.mcpserver import MCPServer
from mcp_types import CallToolResult, Implementation, ListToolsResult, TextContent, Tool, ToolAnnotations

from amends import FaultError, Policy, extract
from amends.bindings.httpx import AsyncTransport
from amends.bindings.mcp import Client, guard
from amends.chain import relay
from amends.dialects.adcp import KEY
from amends.errors import RateLimitedError
from tests.bindings.apps.mcp_shop import SECRET, Shop, low_level, official
from tests.http.serving import serve

MODES = ("2026-07-28", "legacy")

pytestmark = pytest.mark.usefixtures("quiet")


def stdio(kind):
    return StdioServerParameters(command=sys.executable, args=["-m", "tests.bindings.apps.mcp_shop", kind])


def error_in(result):
    """The error object of a failed result, after checking the rest of the result (A2, A5)."""
    assert result.is_error is True
    first, second = result.content
    error = json.loads(first.text)[KEY]
    assert second.text.startswith(error["message"] or error["code"])
    assert "\n" not in second.text
    if result.structured_content is not None:
        assert result.structured_content == {KEY: error, "errors": [error]}
    fault = extract(result)
    assert (fault.code, fault.recovery.value) == (error["code"], error["recovery"])
    return error


def _fail(name):
    if name in {"reads", "writes"}:
        raise ConnectionResetError(SECRET)
    raise RateLimitedError("Too many orders", retry_after=5)


def _declaring():
    return _declare(MCPServer("shop"), guard, {"structured_output": False}, {"structured_output": True})


def _declaring_fastmcp():
    from fastmcp import FastMCP

    from amends.bindings.fastmcp import guard as guard_fastmcp
    from amends.bindings.mcp.sdk_internals import fastmcp_server

    return fastmcp_server(_declare(FastMCP("shop"), guard_fastmcp, {"output_schema": None}, {}))


def _declare(server, guarding, without_schema, with_schema):
    @server.tool(name="bare", **without_schema)
    def bare() -> int:
        return _fail("bare")

    @server.tool(name="shaped", **with_schema)
    def shaped() -> int:
        return _fail("shaped")

    @server.tool(name="reads", annotations=ToolAnnotations(read_only_hint=True))
    def reads() -> int:
        return _fail("reads")

    @server.tool(name="writes")
    def writes() -> int:
        return _fail("writes")

    return guarding(server)


def _declaring_low_level():
    schema = {"type": "object", "properties": {"result": {"type": "integer"}}, "required": ["result"]}
    tools = [
        Tool(name="bare", input_schema={"type": "object"}),
        Tool(name="shaped", input_schema={"type": "object"}, output_schema=schema),
        Tool(name="reads", input_schema={"type": "object"}, annotations=ToolAnnotations(read_only_hint=True)),
        Tool(name="writes", input_schema={"type": "object"}),
    ]

    async def list_tools(ctx, params):
        # Two pages.
        if params is None or params.cursor is None:
            return ListToolsResult(tools=tools[:2], next_cursor="2")
        return ListToolsResult(tools=tools[2:])

    async def call_tool(ctx, params):
        return _fail(params.name)

    return guard(Server("shop", on_list_tools=list_tools, on_call_tool=call_tool))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("make", [official, low_level])
async def test_typed_errors_are_sent_completely(make, mode):
    """A1, A2, A5: code, recovery, wait, field and details, in both layers and as text."""
    async with mcp.Client(make(Shop()), mode=mode) as client:
        limited = error_in(await client.call_tool("fails", {"kind": "limited"}))
        assert re.fullmatch("[0-9a-f]{32}", limited.pop("trace_id"))
        assert limited == {
            "code": "RATE_LIMITED",
            "message": "Too many orders",
            "recovery": "transient",
            "retry_after": 5,
        }
        budget = error_in(await client.call_tool("fails", {"kind": "budget"}))
        assert (budget["code"], budget["field"], budget["details"]) == (
            "BUDGET_TOO_LOW",
            "budget",
            {"minimum_budget": 500},
        )
        own = error_in(await client.call_tool("fails", {"kind": "own"}))
        assert (own["code"], own["suggestion"]) == ("X_SHOP_OUT_OF_STOCK", "Take another size")
        assert error_in(await client.call_tool("fails", {"kind": "deep"}))["retry_after"] == 2


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("make", [official, low_level])
async def test_foreign_exceptions_are_unavailable_and_logged_with_the_callers_trace(make, mode, caplog):
    """A19: none of the text is sent; answer and log line, which has the traceback, have the same trace id."""
    parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    async with mcp.Client(make(Shop()), mode=mode) as client:
        with caplog.at_level(logging.INFO, "amends.mcp"):
            result = await client.call_tool("fails", {"kind": "crash"})
            error = error_in(result)
            traced = error_in(
                await client.call_tool("fails", {"kind": "crash"}, meta={"traceparent": parent})
            )
    # M7: a ValueError of a tool is a bug, and AdCP has no "uncertain".
    assert (error["code"], error["recovery"]) == ("SERVICE_UNAVAILABLE", "terminal")
    assert SECRET not in result.model_dump_json()
    assert re.fullmatch("[0-9a-f]{32}", error["trace_id"])
    lines = [record for record in caplog.records if record.name == "amends.mcp"]
    assert error["trace_id"] in lines[0].getMessage()
    assert SECRET in str(lines[0].exc_info[1])
    # The client's own tracing may replace the traceparent; answer and log agree in any case.
    assert traced["trace_id"] in lines[1].getMessage()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("make", [official, low_level])
async def test_the_callers_id_is_in_the_log(make, mode, caplog):
    """P5: also for errors that a tool raised on purpose, and `extract` returns it."""
    for kind in ("limited", "budget", "own"):
        caplog.clear()
        async with mcp.Client(make(Shop()), mode=mode) as client:
            with caplog.at_level(logging.INFO, "amends.mcp"):
                result = await client.call_tool("fails", {"kind": kind})
        (line,) = [record.getMessage() for record in caplog.records if record.name == "amends.mcp"]
        assert error_in(result)["trace_id"] in line
        assert extract(result).trace_id == error_in(result)["trace_id"]


@pytest.mark.parametrize("mode", MODES)
async def test_invalid_arguments_are_validation_errors(mode):
    """With AdCP's field, suggestion and issues; the value that was sent is not repeated."""
    async with mcp.Client(official(Shop()), mode=mode) as client:
        result = await client.call_tool("add", {"a": SECRET, "b": []})
        error = error_in(result)
        assert (error["code"], error["recovery"], error["field"]) == ("VALIDATION_ERROR", "correctable", "a")
        assert error["suggestion"] == "Send a whole number"
        assert [(issue["pointer"], issue["keyword"]) for issue in error["issues"]] == [
            ("/a", "type"),
            ("/b", "type"),
        ]
        assert SECRET not in result.model_dump_json()
        missing = error_in(await client.call_tool("add", {}))
        assert (missing["field"], missing["issues"][0]["keyword"]) == ("a", "required")


@pytest.mark.parametrize("mode", MODES)
async def test_unknown_names_are_not_found(mode):
    """For a tool in the result, as both SDKs do it; for a prompt or a resource as -32602."""
    async with mcp.Client(official(Shop()), mode=mode) as client:
        assert error_in(await client.call_tool("nothing"))["code"] == "REFERENCE_NOT_FOUND"
        for call in (client.get_prompt("nothing"), client.read_resource("shop://nothing")):
            with pytest.raises(mcp.MCPError) as caught:
                await call
            assert (caught.value.code, extract(caught.value).code) == (-32602, "REFERENCE_NOT_FOUND")


@pytest.mark.parametrize("mode", MODES)
async def test_the_text_of_a_tool_error_is_sent_unless_it_may_quote_another(mode):
    """A ToolError raised while another exception was handled may quote that exception."""
    async with mcp.Client(official(Shop()), mode=mode) as client:
        shown = error_in(await client.call_tool("fails", {"kind": "tool error"}))
        assert (shown["code"], shown["message"]) == ("INVALID_REQUEST", "There is no such order")
        for kind in ("quoted", "quoted in passing"):
            hidden = await client.call_tool("fails", {"kind": kind})
            assert error_in(hidden)["code"] == "SERVICE_UNAVAILABLE"
            assert SECRET not in hidden.model_dump_json()
        with pytest.raises(mcp.MCPError) as caught:
            await client.read_resource("shop://closed")
        assert extract(caught.value).message == "Closed on Sundays"


async def test_the_text_of_tool_errors_can_be_hidden():
    """`show=False`: only the text of typed errors is sent."""
    server = official(Shop(), guarded=False)
    guard(server, show=False)
    async with mcp.Client(server) as client:
        assert (
            error_in(await client.call_tool("fails", {"kind": "tool error"}))["code"] == "SERVICE_UNAVAILABLE"
        )


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("make", [official, low_level])
async def test_protocol_errors_are_not_changed(make, mode):
    """An author's MCPError, and the one that asks for a page to be opened."""
    async with mcp.Client(make(Shop()), mode=mode) as client:
        with pytest.raises(mcp.MCPError) as caught:
            await client.call_tool("fails", {"kind": "protocol"})
        assert (caught.value.code, caught.value.error.data) == (-31999, {"why": "because"})
        with pytest.raises(mcp.MCPError) as caught:
            await client.call_tool("fails", {"kind": "protocol in a task"})
        assert caught.value.code == -31999
        with pytest.raises(mcp.MCPError) as caught:
            await client.call_tool("fails", {"kind": "page"})
        assert caught.value.code == -32042
        assert caught.value.error.data["elicitations"][0]["url"] == "https://a.example/"


@pytest.mark.parametrize("mode", MODES)
async def test_resources_and_prompts_fail_as_json_rpc_errors(mode):
    """They have no result with `isError`: the error object is in `data`, and nothing leaks."""
    async with mcp.Client(official(Shop()), mode=mode) as client:
        calls = {
            "SERVICE_UNAVAILABLE": (
                client.read_resource("shop://stock"),
                client.get_prompt("order", {"item": "crash"}),
            ),
            "RATE_LIMITED": (
                client.read_resource("shop://limited"),
                client.get_prompt("order", {"item": "limited"}),
            ),
            "VALIDATION_ERROR": (client.get_prompt("order", {}),),
        }
        for code, each in calls.items():
            for call in each:
                with pytest.raises(mcp.MCPError) as caught:
                    await call
                assert extract(caught.value).code == code
                assert SECRET not in repr(caught.value.error)
        assert (await client.get_prompt("order", {"item": "tea"})).messages
    async with mcp.Client(low_level(Shop()), mode=mode) as client:
        with pytest.raises(mcp.MCPError) as caught:
            await client.read_resource("shop://x")
        assert (caught.value.code, extract(caught.value).code) == (-32603, "SERVICE_UNAVAILABLE")


@pytest.mark.parametrize("mode", MODES)
async def test_progress_elicitation_and_cancellation_are_not_changed(mode):
    """They work with a guarded server as with a plain one."""
    seen = []

    async def progress(at, total, message):
        seen.append((at, total))

    async def answer(context, params):
        from mcp_types import ElicitResult

        return ElicitResult(action="accept", content={"size": 7})

    shop = Shop()
    async with mcp.Client(official(shop), mode=mode, elicitation_callback=answer) as client:
        assert not (await client.call_tool("steps", progress_callback=progress)).is_error
        assert {at for at, _ in seen} == {0, 1, 2}
        if mode == "legacy":
            asked = await client.call_tool("asks")
            assert asked.content[0].text == "accept size=7"
        with pytest.raises(mcp.MCPError) as caught:
            await client.call_tool("slow", {"seconds": 60}, read_timeout_seconds=0.2)
        assert caught.value.code == -32001
        await client.list_tools()
        assert shop.calls["cancelled"] == 1


async def test_direct_calls_raise_the_sdks_exceptions():
    """Tools that call tools, and programs that call the server's methods."""
    from mcp.server.mcpserver.exceptions import ToolError, UnexpectedToolError

    server = official(Shop())
    with pytest.raises(UnexpectedToolError):
        await server.call_tool("fails", {"kind": "crash"})
    with pytest.raises(ToolError, match="no such order"):
        await server.call_tool("fails", {"kind": "tool error"})
    async with mcp.Client(server) as client:
        assert (await client.call_tool("nested")).content[0].text == "seen UnexpectedToolError"


async def test_failed_results_that_a_tool_returns_are_not_changed():
    """A CallToolResult made by the author."""
    server = MCPServer("hand")

    @server.tool()
    async def hand() -> CallToolResult:
        return CallToolResult(content=[TextContent(type="text", text="no")], is_error=True)

    guard(server)
    async with mcp.Client(server) as client:
        assert (await client.call_tool("hand")).content[0].text == "no"


async def test_guarding_twice_has_no_effect_and_later_tools_are_guarded():
    """Tools may be registered after the guard."""
    server = guard(guard(MCPServer("late")))

    @server.tool()
    async def late() -> str:
        raise ValueError(SECRET)

    assert len([each for each in server.middleware if "Guard" in repr(each)]) == 1
    async with mcp.Client(server) as client:
        assert error_in(await client.call_tool("late"))["code"] == "SERVICE_UNAVAILABLE"


def test_other_objects_are_refused():
    """TypeError names what guard takes."""
    with pytest.raises(TypeError, match="MCPServer"):
        guard(object())


@pytest.mark.parametrize("mode", MODES)
async def test_broken_middleware_and_broken_exceptions_leak_nothing(mode):
    """What other middleware raises is answered too, and so is an exception that raises when it is examined."""

    class Hostile(Exception):
        def __str__(self):
            raise RuntimeError(SECRET)

        __repr__ = __str__

    async def broken(ctx, call_next):
        if ctx.method == "prompts/list":
            raise ValueError(SECRET)
        return await call_next(ctx)

    server = MCPServer("broken", middleware=[broken])

    @server.tool()
    async def hostile() -> str:
        raise Hostile

    guard(server, translate=None)  # a `translate` that cannot be called
    async with mcp.Client(server, mode=mode) as client:
        with pytest.raises(mcp.MCPError) as caught:
            await client.list_prompts()
        assert SECRET not in repr(caught.value.error)
        assert extract(caught.value).code == "SERVICE_UNAVAILABLE"
        assert error_in(await client.call_tool("hostile"))["code"] == "SERVICE_UNAVAILABLE"


async def test_a_translate_function_replaces_the_rules():
    """`translate` returns the fault for foreign exceptions."""
    from amends import Fault

    server = official(Shop(), guarded=False)
    guard(server, translate=lambda exc: Fault(code="CONFLICT", message="Busy", vocabulary="adcp"))
    async with mcp.Client(server) as client:
        assert error_in(await client.call_tool("fails", {"kind": "crash"}))["code"] == "CONFLICT"


@pytest.mark.parametrize("make", [_declaring, _declaring_low_level, _declaring_fastmcp])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", [None, "editor", "mcp"])
async def test_errors_of_tools_with_an_output_schema(make, mode, name):
    """
    Up to 2025-11-25 such an error is text alone: clients validate `structuredContent` against the schema.

    The Python SDK does not, which is known by the name and the version that it sends if the program chooses none.
    """
    info = None if name is None else Implementation(name=name, version="1.0")
    async with mcp.Client(make(), mode=mode, client_info=info) as client:
        bare = await client.call_tool("bare")
        assert bare.structured_content == {KEY: error_in(bare), "errors": [error_in(bare)]}
        shaped = await client.call_tool("shaped")
        assert error_in(shaped)["code"] == extract(shaped).code == "RATE_LIMITED"
        assert (shaped.structured_content is not None) is (mode == "2026-07-28" or name is None)
        # A tool that only reads and whose upstream failed had no effect (M3).
        records = [(await client.call_tool(name)).meta["amends/fault"] for name in ("reads", "writes")]
        assert [record["executed"] for record in records] == ["no", "maybe"]
        assert bare.meta["amends/fault"]["executed"] == "no"


@pytest.mark.parametrize(("version", "structured"), [("2025-03-26", False), ("2025-06-18", True)])
async def test_older_protocols_get_text_alone(version, structured):
    """A2: `structuredContent` is sent from 2025-06-18 on."""
    from mcp import ClientSession
    from mcp.client._memory import InMemoryTransport

    async with InMemoryTransport(_declaring()) as streams, ClientSession(*streams) as session:
        request = {
            "protocolVersion": version,
            "capabilities": {},
            "clientInfo": {"name": "old", "version": "1"},
        }
        await session._dispatcher.send_raw_request("initialize", request)
        await session._dispatcher.notify("notifications/initialized", None)
        raw = await session._dispatcher.send_raw_request("tools/call", {"name": "bare", "arguments": {}})
        assert ("structuredContent" in raw) is structured
        assert json.loads(raw["content"][0]["text"])[KEY]["retry_after"] == 5
        assert extract(raw, "mcp").code == "RATE_LIMITED"


@pytest.mark.parametrize("kind", ["official", "low_level"])
async def test_over_standard_streams(kind):
    """A server in another process, with the plain client."""
    async with mcp.Client(stdio(kind)) as client:
        assert error_in(await client.call_tool("fails", {"kind": "limited"}))["retry_after"] == 5
        result = await client.call_tool("fails", {"kind": "crash"})
        assert error_in(result)["code"] == "SERVICE_UNAVAILABLE"
        assert SECRET not in result.model_dump_json()


@pytest.mark.parametrize("options", [{}, {"json_response": True}, {"stateless_http": True}])
async def test_over_streamable_http(options):
    """With event streams or JSON, with and without sessions, old and new protocols."""
    with serve(official(Shop()).streamable_http_app(**options), lifespan="on") as url:
        for mode in MODES:
            async with mcp.Client(f"{url}/mcp", mode=mode) as client:
                assert error_in(await client.call_tool("fails", {"kind": "limited"}))["retry_after"] == 5
                assert (
                    error_in(await client.call_tool("fails", {"kind": "crash"}))["code"]
                    == "SERVICE_UNAVAILABLE"
                )


@pytest.mark.parametrize("low", [False, True])
async def test_an_upstreams_protocol_error_is_translated(low):
    """An MCPError that a client inside the tool raised; a conformant one is passed on."""
    upstream = MCPServer("upstream")

    @upstream.tool()
    async def asked(kind: str) -> str:
        if kind == "conformant":
            raise mcp.MCPError(
                -32000, SECRET, {KEY: {"code": "RATE_LIMITED", "message": "Slow", "retry_after": 9}}
            )
        raise mcp.MCPError(-32000, SECRET, {"host": SECRET})

    async def through(kind: str) -> str:
        async with mcp.Client(upstream) as client:
            try:
                await client.call_tool("asked", {"kind": kind})
            except mcp.MCPError as error:
                caught = error
        raise caught

    async def call_tool(ctx, params):
        await through(**params.arguments)

    server = Server("middle", on_call_tool=call_tool) if low else MCPServer("middle")
    if not low:
        server.tool()(through)
    guard(server)
    async with mcp.Client(server) as client:
        passed = await client.call_tool("through", {"kind": "conformant"})
        assert extract(passed).retry_after == 9
        hidden = await client.call_tool("through", {"kind": "plain"})
        assert error_in(hidden)["code"] == "SERVICE_UNAVAILABLE"
        assert SECRET not in hidden.model_dump_json()


async def test_details_that_cannot_be_sent_are_left_out():
    """A7: details that are too large or not JSON; the error is sent without them."""
    from amends.errors import ConflictError

    server = MCPServer("large")

    @server.tool()
    async def large() -> str:
        raise ConflictError("Too much", details={"log": "x" * 10_000}, retry_after=4)

    @server.tool()
    async def odd() -> str:
        raise ConflictError("Odd", details={"what": object()})

    guard(server)
    async with mcp.Client(server) as client:
        assert error_in(await client.call_tool("large"))["retry_after"] == 4
        assert error_in(await client.call_tool("odd"))["code"] == "CONFLICT"


async def test_the_parts_of_a_failure_are_sent():
    """A18: in the payload layer, each with its own code and recovery."""
    from amends.errors.adcp import ServiceUnavailableError

    server = MCPServer("many")

    @server.tool()
    async def many() -> str:
        parts = [ServiceUnavailableError("One").fault, ServiceUnavailableError("Two", retry_after=7).fault]
        raise ServiceUnavailableError("Both are down", errors=tuple(parts))

    guard(server)
    async with mcp.Client(server) as client:
        found = (await client.call_tool("many")).structured_content
    assert found[KEY]["message"] == "Both are down"
    assert [part["message"] for part in found["errors"]] == ["One", "Two"]


def test_a_missing_extra_names_the_install_line():
    """Without mcp, importing the binding raises an ImportError with the line."""
    import subprocess

    code = "import sys; sys.modules['mcp'] = None\nimport amends.bindings.mcp"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "amends[mcp]" in done.stderr


@pytest.mark.parametrize("declared", ["nothing", "wrapper", "relay"])
async def test_a_tool_that_makes_one_call_and_nothing_else(declared, caplog):
    """A refused call may be repeated only if the tool declares that it did nothing before; the log says how, once."""
    caplog.set_level("INFO", "amends.mcp")
    answers = {"limited": (429, {"retry-after": "2"}), "lost": None}

    def answer(request):
        found = answers[request.url.path[1:]]
        if found is None:
            raise httpx.ReadTimeout("no answer")
        return httpx.Response(found[0], headers=found[1])

    server = guard(MCPServer("shop"), wrapper=["buy"] if declared == "wrapper" else ())

    @server.tool()
    async def buy(how: str) -> str:
        transport = AsyncTransport(httpx.MockTransport(answer), policy=Policy(attempts=1))
        async with httpx.AsyncClient(transport=transport) as http:
            try:
                await http.post(f"http://till.example/{how}")
            except FaultError as error:
                raise relay(error) if declared == "relay" else error from None
        return "bought"

    async with Client(server, policy=Policy(attempts=1)) as client:
        for _ in range(2):
            with pytest.raises(FaultError) as limited:
                await client.call_tool("buy", {"how": "limited"})
            assert (limited.value.fault.code, limited.value.fault.retry_after) == ("RATE_LIMITED", 2)
            assert limited.value.fault.executed.value == ("maybe" if declared == "nothing" else "no")
        with pytest.raises(FaultError) as lost:
            await client.call_tool("buy", {"how": "lost"})
        assert lost.value.fault.executed.value == "maybe"
        assert lost.value.fault.recovery.value == "terminal"
    advice = [record.getMessage() for record in caplog.records if "wrapper=" in record.getMessage()]
    assert len(advice) == (declared == "nothing")
    assert not advice or "guard(server, wrapper=['buy'])" in advice[0]


def test_wrapper_is_a_list_of_names():
    with pytest.raises(TypeError, match="wrapper is a list of tool names"):
        guard(MCPServer("shop"), wrapper="buy")
