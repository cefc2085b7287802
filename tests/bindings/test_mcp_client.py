"""Our MCP client against plain and guarded servers of the official SDK: typed errors, and recovery that cannot harm."""

import asyncio
from typing import Any

import mcp
import mcp_types as types
import pytest
from mcp.server import Server
from mcp.server.mcpserver import MCPServer
from mcp_types import CallToolResult, TextContent

from amends import FaultError, Operation, Upstream
from amends.bindings.mcp import Client, HttpRecorder, guard
from amends.bindings.mcp.calls import UNKNOWN
from amends.core.enums import Executed
from amends.errors import RateLimitedError, ServiceUnavailableError, ValidationError
from amends.errors.adcp import BudgetTooLowError
from amends.errors.adcp import RateLimitedError as AdcpRateLimitedError
from amends.recovery import ADCP, NONE
from tests.bindings.apps.mcp_shop import Shop, official
from tests.http.serving import serve

MODES = ("2026-07-28", "legacy")

pytestmark = pytest.mark.usefixtures("quiet")


# ----------------------------------------------------------------------------------------------- as the plain client


@pytest.mark.parametrize("mode", MODES)
async def test_it_does_what_the_plain_client_does(mode):
    """A16: a drop-in. Calls, listings, resources, prompts, properties, progress, elicitation."""
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


def test_mistakes_in_the_arguments_are_said_at_once():
    """Like those of the plain client."""
    with pytest.raises(ValueError, match="errors is one of"):
        Client("http://127.0.0.1/mcp", errors="ignore")
    with pytest.raises(ValueError, match="mode must be"):
        Client("http://127.0.0.1/mcp", mode="1999")


async def test_pages_to_open_and_protocol_errors():
    """What is the application's business passes as the SDK raised it; other protocol errors are typed."""
    async with Client(official(Shop())) as client:
        for operation in (None, Operation(key="k")):
            with pytest.raises(mcp.MCPError) as caught:
                await client.call_tool("fails", {"kind": "page"}, operation=operation)
            assert caught.value.code == -32042
        with pytest.raises(FaultError) as caught:
            await client.call_tool("fails", {"kind": "protocol"})
        assert isinstance(caught.value.__cause__, FaultError)
        assert caught.value.fault.origin.dialect == "mcp"


# ------------------------------------------------------------------------------------------------------ typed errors


@pytest.mark.parametrize("mode", MODES)
async def test_errors_are_typed_and_whole(mode):
    """A16: code, recovery, wait, field, suggestion, details; the class of the code; the result as it came."""
    async with Client(official(Shop()), mode=mode, policy=NONE) as client:
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


async def test_results_that_failed_can_be_returned():
    """`errors="return"`, for the client or one call: the last result as it came."""
    async with Client(official(Shop()), errors="return", policy=NONE) as client:
        assert (await client.call_tool("fails", {"kind": "limited"})).is_error
        with pytest.raises(FaultError):
            await client.call_tool("fails", {"kind": "limited"}, errors="raise")


async def test_plain_servers_are_read_as_far_as_they_speak():
    """Text alone is a failure of which nobody knows more; its text is kept for people."""
    async with Client(official(Shop(), guarded=False), policy=NONE) as client:
        with pytest.raises(FaultError) as caught:
            await client.call_tool("fails", {"kind": "said"})
        fault = caught.value.fault
        assert (fault.code, fault.recovery.value) == ("INTERNAL_ERROR", "uncertain")
        assert "There is no such order" in fault.message
        with pytest.raises(FaultError) as caught:
            await client.call_tool("nothing", {})
        assert caught.value.fault.code == "INTERNAL_ERROR"


SAYS = {
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
async def test_every_path_of_a_plain_server_is_found(mode):
    """A6 over the real SDK: structured content, text, payload, and the JSON-RPC error with any number."""

    async def call_tool(ctx, params):
        if params.name in SAYS:
            return SAYS[params.name]
        raise mcp.MCPError(int(params.name), "no", {"adcp_error": {"code": "RATE_LIMITED", "retry_after": 3}})

    server = Server("plain", on_call_tool=call_tool)
    async with Client(server, mode=mode, policy=NONE) as client:
        for name in (*SAYS, "-32029", "-31029", "-32000", "7"):
            with pytest.raises(AdcpRateLimitedError) as caught:
                await client.call_tool(name)
            assert caught.value.fault.retry_after == 3


async def test_results_that_break_their_own_schema():
    """The tool ran, so it is not repeated; an answer that is no MCP may have run."""
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


async def test_an_error_gets_into_nobodys_state():
    """A20: members with the client's own names, and a field that looks like a way somewhere, change nothing."""
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
        assert (client.policy, client.errors) == (ADCP, "raise")
        assert caught.value.fault.extensions["policy"] == "x"
        assert caught.value.decision.action.value == "escalate"


async def test_remarks_on_a_success_are_no_failure():
    """A5: only the payload layer of a result that did not fail. It is returned, and the remark can be read."""
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
async def test_what_did_not_happen_is_repeated_as_told(mode, clock):
    """A10: a rate limit says that nothing ran, so also a purchase is repeated, after the stated wait, once each."""
    shop = Shop()
    async with Client(official(shop), mode=mode) as client:
        assert (await client.call_tool("buy", {"item": "tea", "times": 2})).content[0].text == "tea"
    assert shop.bought == ["tea"]
    assert clock.waits == [1, 1]


async def test_the_ceiling_holds(clock):
    """A11: three attempts for an AdCP error, then it is for a human."""
    async with Client(official(Shop()), policy=ADCP) as client:
        with pytest.raises(RateLimitedError) as caught:
            await client.call_tool("look", {"times": 9})
    assert len(caught.value.history) == 3
    assert caught.value.decision.action.value == "escalate"


async def test_annotations_decide_what_may_be_repeated(clock):
    """A crash may have happened: the idempotent and the read-only tool are called again, the other is not."""
    shop = Shop()
    async with Client(official(shop)) as client:
        assert (await client.call_tool("breaks", {})).content[0].text == "mended"
        assert (await client.call_tool("peeks", {})).content[0].text == "seen"
        with pytest.raises(ServiceUnavailableError) as caught:
            await client.call_tool("breaks_once", {})
        assert caught.value.decision.action.value == "verify"
    assert shop.calls["breaks_once"] == 1
    assert shop.calls["breaks"] == 2


async def test_the_callers_word_stands_above_the_annotations(clock):
    """`operation=` says what the server did not."""
    shop = Shop()
    async with Client(official(shop)) as client:
        with pytest.raises(ServiceUnavailableError):
            await client.call_tool("breaks_once", {}, operation=Operation(idempotent=True))
    assert shop.calls["breaks_once"] == 3


async def test_an_idempotency_key_makes_a_repeat_safe(clock):
    """AdCP's tools take one as an argument: where the schema has it, a call that carries it is repeated."""
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


async def test_somebody_can_look_whether_it_happened(clock):
    """`verify`: what it finds is the result."""
    found = CallToolResult(content=[TextContent(type="text", text="it had")])
    async with Client(official(Shop()), verify=lambda: found) as client:
        assert await client.call_tool("breaks_once", {}) is found


async def test_reading_is_always_repeatable(clock):
    """Resources, prompts and listings change nothing: they are tried again after any passing failure."""
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
    """One hint holds for all of them."""
    shop, upstream = Shop(), Upstream("shop")
    async with Client(official(shop), upstream=upstream) as client:
        await client.list_tools()
        results = await asyncio.gather(*(client.call_tool("look", {"times": 1}) for _ in range(5)))
    assert not any(result.is_error for result in results)
    assert upstream.open


async def test_credentials_are_renewed_once(clock):
    """`refresh` after AUTH_MISSING; then the call is made again."""
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


async def test_listings_that_never_end_or_are_not_there():
    """Annotations are asked for within bounds; a server without a listing has none."""
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
        assert client._calls.known("any", None) is None
        # The SDK itself asks for a listing after a success, and fails where there is none: the tool has run by then.
        with pytest.raises(FaultError) as caught:
            await client.call_tool("any")
        assert (caught.value.fault.executed, caught.value.fault.recovery.value) == (Executed.YES, "terminal")
        assert client._calls.known("any", None) == Operation(name="tools/call any")


async def test_a_listing_that_fails_after_the_call_repeats_nothing(clock):
    """The SDK lists tools after a success it has no schema for: what that fails with says nothing about the call."""
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


async def test_completions_are_read_like_everything_else():
    """As the plain client's."""

    async def complete(ctx, params):
        return types.CompleteResult(completion=types.Completion(values=["tea"]))

    async with Client(Server("c", on_completion=complete)) as client:
        ref = types.PromptReference(type="ref/prompt", name="order")
        assert (await client.complete(ref, {"name": "item", "value": "t"})).completion.values == ["tea"]


# -------------------------------------------------------------------------------------------------------------- HTTP


async def test_a_forgotten_session_begins_anew():
    """A server that was restarted knows no session: nothing ran, so the call is made on a new one."""
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
            session = client._link
            serving[0] = second
            assert (await client.call_tool("add", {"a": 2})).content[0].text == "3"
            assert client._link is not session


async def test_an_http_client_of_ones_own_is_used_and_stays_open():
    """With its headers; and what it sends is seen through."""
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


async def test_a_shared_cache_knows_servers_by_their_address_without_credentials():
    """As the plain client derives it from the URL."""
    from mcp.client.caching import CacheConfig, InMemoryResponseCacheStore

    config = CacheConfig(store=InMemoryResponseCacheStore(), partition="me")
    client = Client("http://user:secret@127.0.0.1:9/mcp", cache=config)
    assert client.cache.target_id == "http://127.0.0.1:9/mcp"
    assert client.server == "http://user:secret@127.0.0.1:9/mcp"


async def test_calls_that_find_the_connection_lost_make_one_anew_together():
    """Five at once: the first connects, the others wait for it."""
    from mcp.client._memory import InMemoryTransport

    server, made = official(Shop()), []

    def fresh():
        made.append(InMemoryTransport(server))
        return made[-1]

    async with Client(fresh, mode="legacy", policy=NONE) as client:
        await client.call_tool("add", {"a": 1})
        client._link.lost = True
        found = await asyncio.gather(*(client.call_tool("add", {"a": number}) for number in range(5)))
    assert [each.content[0].text for each in found] == ["1", "2", "3", "4", "5"]
    assert len(made) == 2


async def test_no_limit_at_all():
    """`limit=None`: then nothing but the caller's own cancellation ends a call."""
    async with Client(official(Shop()), limit=None, policy=NONE) as client:
        assert not (await client.call_tool("add", {"a": 1})).is_error
        assert not (await client.call_tool("add", {"a": 1}, operation=UNKNOWN)).is_error
        with pytest.raises(FaultError):
            await client.call_tool("fails", {"kind": "budget"})
