"""The MCP client with plain and guarded servers of the official SDK: typed errors, and safe recovery."""

import asyncio
from contextlib import asynccontextmanager
from typing import Any

import mcp
import mcp_types as types
import pytest
from mcp.client._memory import InMemoryTransport
from mcp.client.stdio import StdioServerParameters
from mcp.server import Server
from mcp.server.mcpserver import MCPServer
from mcp_types import CallToolResult, TextContent

from amends import FaultError, Operation, Upstream
from amends.bindings.mcp import Client, HttpRecorder, guard
from amends.bindings.mcp.calls import UNKNOWN
from amends.bindings.mcp.transport import Target
from amends.core.enums import Executed
from amends.errors import RateLimitedError, ServiceUnavailableError, ValidationError
from amends.errors.adcp import BudgetTooLowError
from amends.errors.adcp import RateLimitedError as AdcpRateLimitedError
from amends.recovery import ADCP, NONE, TOOL
from tests.bindings.apps.mcp_shop import Shop, official
from tests.http.serving import serve

MODES = ("2026-07-28", "legacy")

pytestmark = pytest.mark.usefixtures("quiet")


# ----------------------------------------------------------------------------------------------- as the plain client


@pytest.mark.parametrize("mode", MODES)
async def test_it_replaces_the_plain_client(mode):
    """A16: calls, listings, resources, prompts, properties, progress, elicitation."""
    seen = []

    async def progress(at, total, message):
        seen.append(at)

    async def answer(context, params):
        return types.ElicitResult(action="accept", content={"size": 7})

    async with Client(official(Shop()), mode=mode, elicitation_callback=answer) as client:
        assert isinstance(client, mcp.Client)
        assert (await client.call_tool("add", {"a": 1}, 5, progress)).structured_content == {"result": 2}
        assert not (await client.call_tool("steps", {}, progress_callback=progress)).is_error
        assert {0, 1, 2} <= set(seen)
        if mode == "legacy":
            assert (await client.call_tool("asks")).content[0].text == "accept size=7"
        assert {tool.name for tool in (await client.list_tools()).tools} >= {"add", "buy"}
        assert (await client.list_resources()).resources
        assert (await client.list_resource_templates()).resource_templates == []
        assert (await client.list_prompts()).prompts
        assert (await client.get_prompt("order", {"item": "tea"})).messages[0].content.text == "Order tea"
        assert (client.server_info is not None) == (mode == "legacy")
        assert client.protocol_version >= "2025-11-25"
        with pytest.raises(RuntimeError, match="already entered"):
            await client.__aenter__()
    with pytest.raises(RuntimeError, match="within an async context"):
        await client.call_tool("add", {"a": 1})


def test_invalid_arguments_are_refused_at_construction():
    """So does the plain client."""
    with pytest.raises(ValueError, match="raises is"):
        Client("http://127.0.0.1/mcp", raises="ignore")
    with pytest.raises(ValueError, match="mode must be"):
        Client("http://127.0.0.1/mcp", mode="1999")


async def test_elicitation_and_protocol_errors():
    """Protocol errors are typed, also a request to open a page; the SDK's MCPError is its cause, or is raised where asked for."""
    async with Client(official(Shop())) as client:
        for operation in (None, Operation(key="k")):
            with pytest.raises(FaultError) as caught:
                await client.call_tool("fails", {"kind": "page"}, operation=operation)
            fault = caught.value.fault
            assert (fault.code, fault.recovery, fault.executed, fault.actor) == (
                "PERMISSION_DENIED",
                "terminal",
                "no",
                "user",
            )
            assert len(caught.value.history) == 1
        with pytest.raises(mcp.MCPError) as original:
            await client.call_tool("fails", {"kind": "page"}, raises="original")
        assert original.value.code == -32042
        with pytest.raises(FaultError) as caught:
            await client.call_tool("fails", {"kind": "protocol"})
        assert isinstance(caught.value.__cause__, FaultError)
        assert caught.value.fault.origin.dialect == "mcp"


# ------------------------------------------------------------------------------------------------------ typed errors


@pytest.mark.parametrize("mode", MODES)
async def test_errors_are_typed_and_complete(mode):
    """A16: code, recovery, wait, field, suggestion, details; the class of the code; the received result."""
    async with Client(official(Shop()), mode=mode, policy=NONE, upstream=None) as client:
        with pytest.raises(AdcpRateLimitedError) as caught:
            await client.call_tool("fails", {"kind": "limited"})
        assert isinstance(caught.value, RateLimitedError)
        assert (caught.value.fault.retry_after, caught.value.fault.recovery.value) == (5, "transient")
        assert caught.value.result.is_error
        with pytest.raises(BudgetTooLowError) as caught:
            await client.call_tool("fails", {"kind": "budget"})
        assert (caught.value.fault.field, caught.value.details) == ("budget", {"minimum_budget": 500})
        with pytest.raises(ValidationError) as caught:
            await client.call_tool("add", {"a": "x"})
        assert caught.value.fault.field == "a"
        with pytest.raises(ServiceUnavailableError) as caught:
            await client.call_tool("fails", {"kind": "crash"})
        assert len(caught.value.fault.trace_id) == 32
        with pytest.raises(ServiceUnavailableError):
            await client.read_resource("shop://stock")
        with pytest.raises(RateLimitedError):
            await client.get_prompt("order", {"item": "limited"})


async def test_failed_results_can_be_returned():
    """`raises="nothing"`, for the client or one call: the last result as it was received."""
    async with Client(official(Shop()), raises="nothing", policy=NONE) as client:
        assert (await client.call_tool("fails", {"kind": "limited"})).is_error
        with pytest.raises(FaultError):
            await client.call_tool("fails", {"kind": "limited"}, raises="fault")
        # Without a result, the exception of the SDK.
        with pytest.raises(mcp.MCPError) as caught:
            await client.get_prompt("nothing")
        assert not hasattr(caught.value, "fault")


async def test_the_exception_of_the_sdk_can_be_raised():
    """`raises="original"`: with fault, decision and history; a failed result has no exception of the SDK."""
    async with Client(official(Shop()), raises="original", policy=NONE) as client:
        with pytest.raises(mcp.MCPError) as caught:
            await client.get_prompt("nothing")
        assert caught.value.fault.code == "REFERENCE_NOT_FOUND"
        with pytest.raises(RateLimitedError):
            await client.call_tool("fails", {"kind": "limited"})


async def test_a_failure_with_text_alone_is_an_internal_error():
    """A server without a guard: recovery is uncertain, and the text is the message."""
    async with Client(official(Shop(), guarded=False), policy=NONE) as client:
        with pytest.raises(FaultError) as caught:
            await client.call_tool("fails", {"kind": "tool error"})
        fault = caught.value.fault
        assert (fault.code, fault.recovery.value) == ("INTERNAL_ERROR", "uncertain")
        assert "There is no such order" in fault.message
        with pytest.raises(FaultError) as caught:
            await client.call_tool("nothing", {})
        assert caught.value.fault.code == "INTERNAL_ERROR"


RESULTS = {
    "structured": CallToolResult(
        content=[],
        is_error=True,
        structured_content={"adcp_error": {"code": "RATE_LIMITED", "retry_after": 3}},
    ),
    "text": CallToolResult(
        content=[TextContent(type="text", text='{"adcp_error": {"code": "RATE_LIMITED", "retry_after": 3}}')],
        is_error=True,
    ),
    "payload": CallToolResult(
        content=[], is_error=True, structured_content={"errors": [{"code": "RATE_LIMITED", "retry_after": 3}]}
    ),
}


@pytest.mark.parametrize("mode", MODES)
async def test_errors_are_found_in_every_place(mode):
    """A6 over the real SDK: structured content, text, payload, and a JSON-RPC error with any number."""

    async def call_tool(ctx, params):
        if params.name in RESULTS:
            return RESULTS[params.name]
        raise mcp.MCPError(int(params.name), "no", {"adcp_error": {"code": "RATE_LIMITED", "retry_after": 3}})

    server = Server("plain", on_call_tool=call_tool)
    async with Client(server, mode=mode, policy=NONE) as client:
        for name in (*RESULTS, "-32029", "-31029", "-32000", "7"):
            with pytest.raises(AdcpRateLimitedError) as caught:
                await client.call_tool(name)
            assert caught.value.fault.retry_after == 3


async def test_a_result_that_does_not_match_its_schema_is_not_repeated():
    """The tool has run."""
    broken = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}

    async def list_tools(ctx, params):
        tool = types.Tool(name="odd", input_schema={"type": "object"}, output_schema=broken)
        return types.ListToolsResult(tools=[tool])

    async def call_tool(ctx, params):
        return CallToolResult(content=[], structured_content={"n": "x"})

    async with Client(Server("odd", on_list_tools=list_tools, on_call_tool=call_tool)) as client:
        with pytest.raises(FaultError) as caught:
            await client.call_tool("odd")
        assert (caught.value.fault.executed, caught.value.fault.recovery.value) == (Executed.YES, "terminal")
        assert len(caught.value.history) == 1


async def test_the_members_of_an_error_do_not_change_the_client():
    """A20: members with the names of the client's attributes, and a field that looks like an attribute path."""
    hostile = {
        "code": "CONFLICT",
        "recovery": "terminal",
        "field": "__class__.__init__.__globals__",
        "details": {"__proto__": {"policy": 1}, "constructor": 1},
        **dict.fromkeys(
            ("policy", "errors", "_calls", "_session", "__class__", "__dict__", "fault", "history"), "x"
        ),
    }

    async def call_tool(ctx, params):
        return CallToolResult(content=[], is_error=True, structured_content={"adcp_error": hostile})

    async with Client(Server("hostile", on_call_tool=call_tool)) as client:
        await asyncio.sleep(0)
        with pytest.raises(FaultError) as caught:
            await client.call_tool("any", operation=Operation())
        before = dict(vars(client))
        with pytest.raises(FaultError):
            await client.call_tool("any", operation=Operation())
        assert dict(vars(client)) == before
        assert (client.policy, client.raises) == (TOOL, "fault")
        assert caught.value.fault.extensions["policy"] == "x"
        assert caught.value.decision.action.value == "escalate"


async def test_errors_in_a_successful_result_are_not_fatal():
    """A5: the payload layer of a result that did not fail. The result is returned, and `extract` reads the error."""
    from amends import extract

    remark = {"code": "CONFLICT", "message": "Taken meanwhile", "recovery": "correctable"}
    server = MCPServer("remarks")

    @server.tool()
    async def order() -> dict[str, Any]:
        return {"ordered": 3, "errors": [remark]}

    guard(server)
    async with Client(server) as client:
        result = await client.call_tool("order")
        assert (result.is_error, result.structured_content["ordered"]) == (False, 3)
        found = extract(result)
        assert (found.code, found.origin.path, found.executed) == ("CONFLICT", "payload", Executed.YES)


# ---------------------------------------------------------------------------------------------------------- recovery


@pytest.mark.parametrize("mode", MODES)
async def test_a_rate_limited_call_is_repeated_after_its_wait(mode, clock):
    """A10: a rate limit means that nothing ran, so a purchase is repeated too, and made once."""
    shop = Shop()
    async with Client(official(shop), mode=mode) as client:
        assert (await client.call_tool("buy", {"item": "tea", "times": 2})).content[0].text == "tea"
    assert shop.bought == ["tea"]
    assert clock.waits == [1, 1]


async def test_attempts_are_bounded(clock):
    """A11: three attempts for an AdCP error, then it is escalated."""
    async with Client(official(Shop()), policy=ADCP) as client:
        with pytest.raises(RateLimitedError) as caught:
            await client.call_tool("look", {"times": 9})
    assert len(caught.value.history) == 3
    assert caught.value.decision.action.value == "escalate"


async def test_annotations_decide_whether_a_call_is_repeated(clock):
    """After a crash, which may have had an effect: read-only and idempotent tools are called again, others are not."""
    shop = Shop()
    async with Client(official(shop)) as client:
        assert (await client.call_tool("breaks", {})).content[0].text == "mended"
        assert (await client.call_tool("peeks", {})).content[0].text == "seen"
        with pytest.raises(ServiceUnavailableError) as caught:
            await client.call_tool("breaks_once", {})
        assert caught.value.decision.action.value == "verify"
    assert shop.calls["breaks_once"] == 1
    assert shop.calls["breaks"] == 2


@pytest.mark.parametrize("hints", [[True, None], [None, True], [True, None, True]])
async def test_a_name_that_is_listed_twice(hints, clock):
    """With different annotations it is not known to be read-only, whichever comes last."""
    calls = []

    async def list_tools(ctx, params):
        tools = [
            types.Tool(name="pay", input_schema={"type": "object"}, annotations={"readOnlyHint": hint})
            for hint in hints
        ]
        return types.ListToolsResult(tools=tools)

    async def call_tool(ctx, params):
        calls.append(params.name)
        raise mcp.MCPError(-32603, "")

    server = Server("shop", on_list_tools=list_tools, on_call_tool=call_tool)
    async with Client(server, upstream=None) as client:
        with pytest.raises(FaultError) as caught:
            await client.call_tool("pay")
    assert (calls, caught.value.decision.action.value) == (["pay"], "verify")


async def test_the_operation_argument_replaces_the_annotations(clock):
    """`operation=` is what the caller knows about the tool. The server of another party says that a repeat is not wanted."""
    shop = Shop()
    async with Client(official(shop), own=True) as client:
        with pytest.raises(ServiceUnavailableError):
            await client.call_tool("breaks_once", {}, operation=Operation(idempotent=True))
    assert shop.calls["breaks_once"] == 3


async def test_an_idempotency_key_makes_a_repeat_safe(clock):
    """AdCP's tools take one as an argument: if the schema has it, a call with a key is repeated."""
    server = MCPServer("keyed")
    calls = []

    @server.tool()
    async def pay(idempotency_key: str = "") -> str:
        calls.append(idempotency_key)
        if len(calls) < 2 or not idempotency_key:
            raise mcp.MCPError(-32603, "lost", {"adcp_error": {"code": "SERVICE_UNAVAILABLE"}})
        return "paid"

    async with Client(server) as client:
        assert (await client.call_tool("pay", {"idempotency_key": "k1"})).content[0].text == "paid"
        with pytest.raises(ServiceUnavailableError):
            await client.call_tool("pay", {})
    assert calls == ["k1", "k1", ""]


async def test_verify_finds_the_result_of_a_call(clock):
    """What it returns is the result."""
    found = CallToolResult(content=[TextContent(type="text", text="it had")])
    async with Client(official(Shop()), verify=lambda: found) as client:
        assert await client.call_tool("breaks_once", {}) is found


async def test_reads_are_always_repeated(clock):
    """Resources, prompts and listings are read-only: they are repeated after any transient failure."""
    attempts = []

    async def read_resource(ctx, params):
        attempts.append(1)
        if len(attempts) < 3:
            raise mcp.MCPError(-32603, "no", {"adcp_error": {"code": "SERVICE_UNAVAILABLE"}})
        return types.ReadResourceResult(
            contents=[types.TextResourceContents(uri="a://b", text="here", mime_type="text/plain")]
        )

    async with Client(Server("r", on_read_resource=read_resource)) as client:
        assert (await client.read_resource("a://b")).contents[0].text == "here"


async def test_callers_share_an_upstream(clock):
    """A rate limit that one of them received holds for all."""
    shop, upstream = Shop(), Upstream("shop")
    async with Client(official(shop), upstream=upstream) as client:
        await client.list_tools()
        results = await asyncio.gather(*(client.call_tool("look", {"times": 1}) for _ in range(5)))
    assert not any(result.is_error for result in results)
    assert upstream.open


async def test_credentials_are_renewed_once(clock):
    """`refresh` is called after AUTH_MISSING; then the call is repeated."""
    server = MCPServer("private")
    signed = []

    @server.tool()
    async def secret() -> str:
        if not signed:
            raise mcp.MCPError(-32028, "no", {"adcp_error": {"code": "AUTH_MISSING"}})
        return "open"

    async with Client(server, refresh=lambda: signed.append(1)) as client:
        assert (await client.call_tool("secret", {})).content[0].text == "open"
    assert signed == [1]


async def test_endless_and_missing_listings():
    """A bounded number of pages is read; a server without a listing has no annotations."""
    pages = []

    async def list_tools(ctx, params):
        pages.append(params.cursor)
        return types.ListToolsResult(tools=[], next_cursor="more")

    async def call_tool(ctx, params):
        return CallToolResult(content=[])

    async with Client(Server("endless", on_list_tools=list_tools, on_call_tool=call_tool)) as client:
        assert not (await client.call_tool("any")).is_error
    assert 1 < len(pages) < 50
    async with Client(Server("none", on_call_tool=call_tool)) as client:
        assert client._calls.operation_of("any", None) is None
        # The SDK lists the tools after a success, which fails here: the tool has run by then.
        with pytest.raises(FaultError) as caught:
            await client.call_tool("any")
        assert (caught.value.fault.executed, caught.value.fault.recovery.value) == (Executed.YES, "terminal")
        assert client._calls.operation_of("any", None) == Operation(
            name="tools/call any", binding="mcp client"
        )


async def test_a_listing_that_fails_after_the_call_repeats_nothing(clock):
    """The SDK lists the tools after a success without a known schema; a failure of the listing is not the call's."""
    bought = []

    async def list_tools(ctx, params):
        raise mcp.MCPError(-32029, "no", {"adcp_error": {"code": "RATE_LIMITED", "retry_after": 1}})

    async def call_tool(ctx, params):
        bought.append(1)
        return CallToolResult(content=[])

    async with Client(Server("s", on_list_tools=list_tools, on_call_tool=call_tool)) as client:
        with pytest.raises(FaultError) as caught:
            await client.call_tool("buy", {}, operation=Operation(read_only=True))
    assert (bought, caught.value.fault.executed) == ([1], Executed.YES)


async def test_completions():
    """The same as with the plain client."""

    async def complete(ctx, params):
        return types.CompleteResult(completion=types.Completion(values=["tea"]))

    async with Client(Server("c", on_completion=complete)) as client:
        ref = types.PromptReference(type="ref/prompt", name="order")
        assert (await client.complete(ref, {"name": "item", "value": "t"})).completion.values == ["tea"]


# -------------------------------------------------------------------------------------------------------------- HTTP


async def test_an_expired_session_is_replaced():
    """A restarted server does not know the session: nothing ran, so the call is repeated in a new one."""
    first, second = official(Shop()).streamable_http_app(), official(Shop()).streamable_http_app()
    serving = [first]

    async def restarted(scope, receive, send):
        if scope["type"] == "lifespan":
            await first(scope, receive, send)
            return
        await serving[0](scope, receive, send)

    with serve(restarted, lifespan="on") as url, serve(second, lifespan="on"):
        async with Client(f"{url}/mcp", mode="legacy") as client:
            assert (await client.call_tool("add", {"a": 1})).content[0].text == "2"
            connection = client._connection
            serving[0] = second
            assert (await client.call_tool("add", {"a": 2})).content[0].text == "3"
            assert client._connection is not connection


async def test_a_given_http_client_is_used_and_not_closed():
    """With its headers."""
    import httpx2

    seen = []
    app = official(Shop()).streamable_http_app()

    async def looking(scope, receive, send):
        if scope["type"] == "http":
            seen.append(dict(scope["headers"]).get(b"x-tenant"))
        await app(scope, receive, send)

    with serve(looking, lifespan="on") as url:
        async with httpx2.AsyncClient(headers={"x-tenant": "acme"}) as http:
            assert isinstance(HttpRecorder(http).headers, httpx2.Headers)
            async with Client(f"{url}/mcp", http_client=http) as client:
                assert not (await client.call_tool("add", {"a": 1})).is_error
            assert not http.is_closed
    assert set(seen) == {b"acme"}


async def test_the_target_id_of_a_shared_cache_has_no_credentials():
    """The plain client derives it from the URL in the same way."""
    from mcp.client.caching import CacheConfig, InMemoryResponseCacheStore

    config = CacheConfig(store=InMemoryResponseCacheStore(), partition="me")
    client = Client("http://user:secret@127.0.0.1:9/mcp", cache=config)
    assert client.cache.target_id == "http://127.0.0.1:9/mcp"
    assert client.server == "http://user:secret@127.0.0.1:9/mcp"


async def test_concurrent_calls_reconnect_once():
    """Five calls on a lost connection: the first connects, the others wait for it."""
    server, made = official(Shop()), []

    def fresh():
        made.append(InMemoryTransport(server))
        return made[-1]

    async with Client(fresh, mode="legacy", policy=NONE) as client:
        await client.call_tool("add", {"a": 1})
        client._connection.broken = True
        found = await asyncio.gather(*(client.call_tool("add", {"a": number}) for number in range(5)))
    assert [each.content[0].text for each in found] == ["1", "2", "3", "4", "5"]
    assert len(made) == 2


async def test_a_client_that_is_closed_while_it_reconnects(nothing_left):
    """The new connection is closed too, and a call that comes later does not open another one."""
    server, reconnecting, go = official(Shop()), asyncio.Event(), asyncio.Event()
    made = []

    @asynccontextmanager
    async def fresh():
        made.append(1)
        if len(made) > 1:
            reconnecting.set()
            await go.wait()
        async with InMemoryTransport(server) as streams:
            yield streams

    client = Client(fresh, mode="legacy", policy=NONE)
    async with client:
        client._connection.broken = True
        calls = [asyncio.create_task(client.list_tools()) for _ in range(2)]
        await reconnecting.wait()
        closing = asyncio.create_task(client.__aexit__())
        await asyncio.sleep(0)
        go.set()
        await asyncio.gather(*calls, closing, return_exceptions=True)
        with pytest.raises(RuntimeError, match="within an async context"):
            await client.list_tools()
    assert len(made) == 2


@pytest.mark.parametrize("limit", [300.0, None])
async def test_a_client_that_is_closed_during_a_call(limit, clock, nothing_left):
    """The call ends, also one of a server in this process; it is neither repeated nor opens another connection."""
    started = asyncio.Event()
    server = MCPServer("shop")

    @server.tool(annotations=types.ToolAnnotations(read_only_hint=True))
    async def look() -> None:
        started.set()
        await asyncio.Event().wait()

    async with Client(server, upstream=None, limit=limit) as client:
        call = asyncio.create_task(client.call_tool("look"))
        await started.wait()
    with pytest.raises(ServiceUnavailableError) as caught:
        await call
    assert len(caught.value.history) == 2
    assert (caught.value.fault.recovery.value, caught.value.fault.executed) == ("terminal", Executed.MAYBE)


async def test_a_client_is_entered_once(nothing_left):
    """Also if two tasks enter it at the same time; a client that could not connect can be entered again."""
    ready = []

    @asynccontextmanager
    async def transport():
        if not ready:
            raise ConnectionRefusedError
        async with InMemoryTransport(official(Shop())) as streams:
            yield streams

    client = Client(transport, mode="legacy", policy=NONE, upstream=None)
    with pytest.raises(ServiceUnavailableError):
        await client.__aenter__()
    ready.append(1)
    both = await asyncio.gather(client.__aenter__(), client.__aenter__(), return_exceptions=True)
    assert both[0] is client
    assert isinstance(both[1], RuntimeError)
    await client.__aexit__()


@pytest.mark.parametrize("server", ["http://127.0.0.1:9/mcp", StdioServerParameters(command="x")])
def test_each_connection_has_a_transport_of_its_own(server):
    """One that closes late must not close its successor."""
    target = Target.of(server, None)
    assert target.transport() is not target.transport()


async def test_calls_without_a_limit():
    """`limit=None`: only the caller's own cancellation ends a call."""
    async with Client(official(Shop()), limit=None, policy=NONE) as client:
        assert not (await client.call_tool("add", {"a": 1})).is_error
        assert not (await client.call_tool("add", {"a": 1}, operation=UNKNOWN)).is_error
        with pytest.raises(FaultError):
            await client.call_tool("fails", {"kind": "budget"})
