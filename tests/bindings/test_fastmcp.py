"""Guarded FastMCP servers with FastMCP's client and the official one, and the FastMCP client with recovery."""

import json
import subprocess
import sys

import fastmcp
import mcp
import mcp_types
import pydantic
import pytest
from fastmcp.client.transports import StreamableHttpTransport
from fastmcp.server.middleware import Middleware
from mcp.server.mcpserver import MCPServer
from mcp_types import PromptReference

from amends import FaultError, Operation, Policy, extract
from amends.bindings.fastmcp import Client, Recovering, guard
from amends.bindings.mcp import guard as guard_official
from amends.bindings.mcp.sdk_internals import fastmcp_server
from amends.core.enums import Executed
from amends.dialects.adcp import KEY
from amends.errors import RateLimitedError, ServiceUnavailableError, ValidationError
from amends.recovery import NONE
from amends.testing import FakeClock
from tests.bindings.apps.mcp_shop import SECRET, Shop, fast, official
from tests.bindings.test_mcp_guard import error_in, stdio
from tests.http.serving import serve

MODES = ("2026-07-28", "legacy")

pytestmark = pytest.mark.usefixtures("quiet")


@pytest.mark.parametrize("mode", MODES)
async def test_a_guarded_server_answers_with_adcp_errors(mode):
    """A1, A2, A5, A19: typed and foreign exceptions, invalid arguments, unknown tools, denied calls, ToolErrors."""
    wanted = {
        "limited": "RATE_LIMITED",
        "budget": "BUDGET_TOO_LOW",
        "own": "X_SHOP_OUT_OF_STOCK",
        "crash": "SERVICE_UNAVAILABLE",
        "denied": "PERMISSION_DENIED",
        "tool error": "INVALID_REQUEST",
    }
    async with fastmcp.Client(fast(Shop()), mode=mode) as client:
        for kind, code in wanted.items():
            result = await client.call_tool_mcp("fails", {"kind": kind})
            assert error_in(result)["code"] == code
            assert SECRET not in result.model_dump_json()
        refused = error_in(await client.call_tool_mcp("add", {"a": "x"}))
        assert (refused["code"], refused["field"]) == ("VALIDATION_ERROR", "a")
        assert error_in(await client.call_tool_mcp("nothing", {}))["code"] == "REFERENCE_NOT_FOUND"
        with pytest.raises(mcp.MCPError) as caught:
            await client.call_tool_mcp("fails", {"kind": "protocol"})
        assert caught.value.error.data == {"why": "because"}


@pytest.mark.parametrize("mode", MODES)
async def test_resources_and_prompts(mode):
    """JSON-RPC errors with the object in `data`; only text that the author wrote for the caller is sent."""
    async with fastmcp.Client(fast(Shop()), mode=mode) as client:
        for call, code in (
            (client.read_resource("shop://stock"), "SERVICE_UNAVAILABLE"),
            (client.get_prompt("order", {"item": "tea"}), "SERVICE_UNAVAILABLE"),
            (client.get_prompt("order", {"item": "closed"}), "INVALID_REQUEST"),
            (client.get_prompt("nothing", {}), "REFERENCE_NOT_FOUND"),
            (client.read_resource("shop://nothing"), "REFERENCE_NOT_FOUND"),
        ):
            with pytest.raises(mcp.MCPError) as caught:
                await call
            assert extract(caught.value).code == code
            assert SECRET not in repr(caught.value.error)


async def test_mounted_servers_are_guarded_too():
    """The guard of the outer server is enough."""
    above = fastmcp.FastMCP("above")
    above.mount(fast(Shop(), guarded=False), namespace="below")
    guard(guard(above))
    async with fastmcp.Client(above) as client:
        assert error_in(await client.call_tool_mcp("below_fails", {"kind": "limited"}))["retry_after"] == 5
        result = await client.call_tool_mcp("below_fails", {"kind": "crash"})
        assert error_in(result)["code"] == "SERVICE_UNAVAILABLE"
        assert SECRET not in result.model_dump_json()


async def test_direct_calls_raise_fastmcps_exceptions():
    """Programs that call the server's methods."""
    from fastmcp.exceptions import ToolError

    with pytest.raises(ToolError):
        await fast(Shop()).call_tool("fails", {"kind": "crash"})


async def test_the_official_client():
    """Over standard streams and HTTP."""
    async with mcp.Client(stdio("fast")) as client:
        assert error_in(await client.call_tool("fails", {"kind": "limited"}))["retry_after"] == 5
    with serve(fast(Shop()).http_app(), lifespan="on") as url:
        for mode in MODES:
            async with mcp.Client(f"{url}/mcp", mode=mode) as client:
                found = await client.call_tool("fails", {"kind": "budget"})
                assert json.loads(found.content[0].text)[KEY]["field"] == "budget"


def test_other_objects_are_refused():
    """TypeError names what guard takes."""
    with pytest.raises(TypeError, match="FastMCP"):
        guard(object())


# ------------------------------------------------------------------------------------------------------------ client


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("make", [fast, official])
async def test_the_client_raises_typed_errors_and_recovers(make, mode, clock):
    """On a server of either kind: a call without an effect is repeated, one that may have had an effect is not."""
    shop = Shop()
    async with Client(make(shop), mode=mode) as client:
        assert isinstance(client, fastmcp.Client)
        assert (await client.call_tool("add", {"a": 1})).structured_content == {"result": 2}
        assert not (await client.call_tool("buy", {"item": "tea", "times": 2})).is_error
        assert (await client.call_tool("look", {"times": 1})).structured_content == {"result": 2}
        with pytest.raises(ServiceUnavailableError) as caught:
            await client.call_tool("breaks_once")
        assert caught.value.decision.action.value == "verify"
        with pytest.raises(ValidationError) as caught:
            await client.call_tool("add", {"a": "x"})
        assert caught.value.fault.field == "a"
        with pytest.raises(ServiceUnavailableError):
            await client.read_resource("shop://stock")
        with pytest.raises(FaultError):
            await client.get_prompt("order", {"item": "crash"})
    assert shop.bought == ["tea"]
    assert shop.calls["breaks_once"] == 1
    assert clock.waits[:2] == [1, 1]


async def test_failed_results_can_be_returned(clock):
    """By `raise_on_error=False` and `call_tool_mcp`, after recovery."""
    async with Client(fast(Shop()), policy=NONE, upstream=None) as client:
        assert (await client.call_tool("fails", {"kind": "limited"}, raise_on_error=False)).is_error
        assert (await client.call_tool_mcp("fails", {"kind": "limited"})).is_error
        with pytest.raises(RateLimitedError):
            await client.call_tool("fails", {"kind": "limited"}, meta={"a": 1})
        assert not (await client.call_tool("add", {"a": 1}, version="7")).is_error  # the tool has no versions
        with pytest.raises(FaultError) as caught:
            await client.call_tool("fails", {"kind": "page"})
        assert (caught.value.fault.code, caught.value.fault.actor) == ("PERMISSION_DENIED", "user")


@pytest.mark.parametrize("code", [-32601, -32042])
async def test_a_server_without_a_listing(code):
    """The tool is called; FastMCP lists the tools afterwards, and that failure is raised."""
    ran = []

    class Unlisted(Middleware):
        async def on_list_tools(self, context, call_next):
            raise mcp.MCPError(code, "no")

    server = fastmcp.FastMCP("shop", middleware=[Unlisted()])
    server.tool(lambda: ran.append(1), name="buy")
    async with Client(server) as client:
        with pytest.raises(FaultError) as caught:
            await client.call_tool("buy")
    # A listing that asks for a page first refuses the call as well; any other one fails after it.
    assert ran == ([1] if code == -32601 else [])
    assert caught.value.fault.executed is (Executed.YES if ran else Executed.NO)


async def test_progress():
    """From a guarded server to the client's handler."""
    seen = []

    async def progress(at, total, message):
        seen.append(at)

    async with Client(fast(Shop())) as client:
        await client.call_tool("steps", progress_handler=progress)
    assert {0, 1, 2} <= set(seen)


async def test_a_program_that_dies_is_started_again():
    """The call in flight may have had its effect; the next one uses a new session."""
    from fastmcp.client.transports import StdioTransport

    transport = StdioTransport(
        command=sys.executable, args=["-m", "tests.bindings.apps.mcp_shop", "official"]
    )
    async with Client(transport) as client:
        with pytest.raises(FaultError) as caught:
            await client.call_tool("dies", operation=Operation(name="dies"))
        assert caught.value.fault.executed.value == "maybe"
        again = await client.call_tool("add", {"a": 1}, operation=Operation(read_only=True))
        assert again.structured_content == {"result": 2}


async def test_listings_and_completions_recover(clock):
    """As with the other client; a failure is a typed error."""
    turns = dict.fromkeys(("tools/list", "resources/list", "resources/templates/list", "prompts/list"), 1)
    server = guard(fastmcp.FastMCP("shop"))

    @server.prompt
    def order(item: str) -> str:
        return item

    class Busy(Middleware):
        async def on_request(self, context, call_next):
            if turns.pop(context.method, None):
                raise RateLimitedError(retry_after=2)
            return await call_next(context)

    server.add_middleware(Busy())
    async with Client(server, upstream=None) as client:
        assert await client.list_tools() == []
        assert await client.list_resources() == []
        assert await client.list_resource_templates() == []
        assert [prompt.name for prompt in await client.list_prompts()] == ["order"]
        assert clock.waits == [2, 2, 2, 2]
        with pytest.raises(FaultError):
            await client.complete(PromptReference(name="order"), {"name": "item", "value": "t"})


async def test_a_listing_that_fails_after_the_call_keeps_the_result(clock):
    """After the SDK, FastMCP lists the tools again if the tool was not listed; that listing is not repeated."""
    listings = []

    class Unlisted(Middleware):
        async def on_list_tools(self, context, call_next):
            listings.append(1)
            if len(listings) > 2:
                raise RateLimitedError(retry_after=60)
            return []

    server = guard(fastmcp.FastMCP("shop", middleware=[Unlisted()]))
    server.tool(lambda: mcp_types.CallToolResult(content=[], structured_content={"a": 1}), name="buy")
    async with Client(server, upstream=None) as client:
        assert (await client.call_tool("buy")).structured_content == {"a": 1}
    assert clock.waits == []


async def test_the_settings_of_a_transport_are_kept():
    """The recorder wraps the user's HTTP client, or one with the user's `verify`."""
    import httpx2

    made = []

    def factory(**options):
        made.append(options)
        return httpx2.AsyncClient(**options)

    with serve(fast(Shop()).http_app(), lifespan="on") as url:
        for options in ({"httpx_client_factory": factory}, {"verify": False}):
            async with Client(StreamableHttpTransport(f"{url}/mcp", **options)) as client:
                assert (await client.call_tool("add", {"a": 1})).data == 2
    assert made


def test_the_mixin_for_other_client_classes():
    """`Recovering` before the other bases."""

    class Own(Recovering, fastmcp.Client):
        pass

    assert Own(fast(Shop()), policy=NONE)._calls.policy is NONE


def test_a_missing_extra_names_the_install_line():
    """Without fastmcp, importing the binding raises an ImportError with the line."""
    code = "import sys; sys.modules['fastmcp'] = None\nimport amends.bindings.fastmcp"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "amends[fastmcp]" in done.stderr


async def test_a_client_that_was_not_entered():
    """FastMCP's RuntimeError is raised; it is not a failure of a server, and nothing is repeated."""
    client = Client(fast(Shop()))
    for call in (client.call_tool("add", {"a": 1}), client.read_resource_mcp("shop://stock")):
        with pytest.raises(RuntimeError, match="not connected"):
            await call


class Seat(pydantic.BaseModel):
    number: int


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")  # FastMCP serialises the wrong result
@pytest.mark.parametrize(
    "make", [lambda: guard(fastmcp.FastMCP("shop")), lambda: guard_official(MCPServer("shop"))]
)
async def test_a_value_that_a_tool_fails_to_validate_is_its_own_mistake(make):
    """Not transient, and the tool may have had an effect before: only the argument check is the caller's mistake."""
    server = make()

    async def book() -> str:
        Seat.model_validate({"number": SECRET})

    async def misreport() -> Seat:
        return SECRET

    server.tool()(book)
    server.tool()(misreport)
    async with mcp.Client(server if isinstance(server, MCPServer) else fastmcp_server(server)) as client:
        for name in ("book", "misreport"):
            result = await client.call_tool(name, {})
            assert SECRET not in result.model_dump_json()
            fault = extract(result)
            assert (fault.code, fault.recovery, fault.executed) == (
                "SERVICE_UNAVAILABLE",
                "terminal",
                "maybe",
            )


async def test_a_call_states_what_is_left():
    """The tries of the client's policy, less those that were made; other members of `_meta` stay."""
    server, stated = fastmcp.FastMCP("x"), []

    @server.tool()
    async def fails(ctx: fastmcp.Context) -> str:
        meta = dict(ctx.request_context.meta or {})
        stated.append((meta.get("amends/left"), meta.get("own")))
        raise RateLimitedError(retry_after=1)

    with FakeClock():
        async with Client(guard(server), policy=Policy(attempts=2)) as client:
            with pytest.raises(RateLimitedError):
                await client.call_tool("fails", {}, meta={"own": 1})
            with pytest.raises(RateLimitedError):
                await client.call_tool("fails", {}, policy=Policy(attempts=1))
    assert stated == [("2", 1), ("1", 1), ("1", None)]
