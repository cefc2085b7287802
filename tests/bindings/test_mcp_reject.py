"""Rejections before dispatch (A3): as JSON-RPC errors, which every client keeps, or as HTTP responses."""

import httpx2
import mcp
import pytest
from mcp.server.mcpserver import MCPServer

from amends import Fault, FaultError, extract
from amends.bindings.mcp import Client, guard, reject
from amends.core.enums import Executed
from amends.errors import RateLimitedError, ServiceUnavailableError, UnauthenticatedError
from amends.errors.adcp import AuthMissingError, PermissionDeniedError
from amends.recovery import NONE
from tests.bindings.apps.mcp_shop import Shop, official
from tests.http.serving import serve

REASONS = {
    "limit": RateLimitedError("Slow down", retry_after=7),
    "auth": UnauthenticatedError("Who are you?"),
    "down": ServiceUnavailableError("Closed"),
    "denied": PermissionDeniedError("Not you"),
}
NUMBERS = {"limit": (-32029, -31029), "auth": (-32028, -31028), "down": (-32027, -31027)}
CODES = {"limit": "RATE_LIMITED", "auth": "AUTH_MISSING", "down": "SERVICE_UNAVAILABLE"}

pytestmark = pytest.mark.usefixtures("quiet")


def shop(check, **options):
    return official(Shop(), middleware=[reject(check, methods=["tools/call"], **options)])


@pytest.mark.parametrize("reason", NUMBERS)
async def test_the_numbers_depend_on_the_protocol(reason):
    """Design 8: AdCP's own up to 2025-11-25, moved from 2026-07-28 on; with `collapse` one for all."""
    for mode, number in zip(("legacy", "2026-07-28"), NUMBERS[reason], strict=True):
        async with mcp.Client(shop(lambda request: REASONS[reason]), mode=mode) as client:
            with pytest.raises(mcp.MCPError) as caught:
                await client.call_tool("add", {"a": 1})
            assert caught.value.code == number
            fault = extract(caught.value)
            assert (fault.code, fault.executed) == (CODES[reason], Executed.NO)
        async with mcp.Client(shop(lambda request: REASONS[reason], collapse=True), mode=mode) as client:
            with pytest.raises(mcp.MCPError) as caught:
                await client.call_tool("add", {"a": 1})
            assert caught.value.code == (-32000 if mode == "legacy" else -31000)


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_other_codes_are_sent_in_the_tools_result(mode):
    """A3: only three codes have a JSON-RPC number."""
    async with mcp.Client(shop(lambda request: REASONS["denied"]), mode=mode) as client:
        result = await client.call_tool("add", {"a": 1})
        assert extract(result).code == "PERMISSION_DENIED"
    server = official(
        Shop(), middleware=[reject(lambda request: REASONS["denied"], methods=["prompts/list"])]
    )
    async with mcp.Client(server, mode=mode) as client:
        with pytest.raises(mcp.MCPError) as caught:
            await client.list_prompts()
        assert extract(caught.value).code == "PERMISSION_DENIED"


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_a_check_gets_the_request_and_may_raise(mode):
    """It may be async. A FaultError is the reason; any other exception rejects too, and none of its text is sent."""
    seen = []

    async def check(request):
        seen.append((request.method, request.name, request.protocol, dict(request.headers)))
        if request.name == "add":
            raise RateLimitedError(retry_after=2)
        if request.name == "buy":
            raise ValueError("db-7.internal.acme")
        if request.name == "look":
            return Fault(code="SERVICE_UNAVAILABLE")
        return None

    server = official(Shop(), middleware=[reject(check)])
    async with mcp.Client(server, mode=mode) as client:
        for name, code in (
            ("add", "RATE_LIMITED"),
            ("buy", "SERVICE_UNAVAILABLE"),
            ("look", "SERVICE_UNAVAILABLE"),
        ):
            with pytest.raises(mcp.MCPError) as caught:
                await client.call_tool(name, {"a": 1})
            assert extract(caught.value).code == code
            assert "acme" not in repr(caught.value.error)
        assert not (await client.call_tool("steps")).is_error
    methods = {method for method, *_ in seen}
    assert {"tools/call", "tools/list"} <= methods
    assert "notifications/initialized" not in methods
    assert ("tools/call", "add", "2025-11-25" if mode == "legacy" else mode, {}) in seen


async def test_our_client_recovers_from_a_rejection(amends_clock):
    """Nothing ran, so a call that changes something is repeated too."""
    turns = [REASONS["limit"], REASONS["down"]]
    store = Shop()
    server = official(
        store, middleware=[reject(lambda request: turns.pop() if turns else None, methods=["tools/call"])]
    )
    async with Client(server) as client:
        assert (await client.call_tool("buy", {"item": "tea"})).content[0].text == "tea"
    assert store.bought == ["tea"]
    assert 7 in amends_clock.waits


async def test_waits_depend_on_the_caller_only(amends_clock):
    """A19: one caller's limit does not affect another's, and the wait is the same for every request of a caller."""
    spent = {"greedy": 40}

    def check(request):
        wait = spent.get(request.headers.get("x-caller"))
        return None if wait is None else RateLimitedError(retry_after=wait)

    app = reject(check).http(official(Shop()).streamable_http_app(), body="jsonrpc")
    with serve(app, lifespan="on") as url:
        waits = set()
        for name, arguments in (("add", {"a": 1}), ("nothing", {}), ("fails", {"kind": "crash"})):
            async with (
                httpx2.AsyncClient(headers={"x-caller": "greedy"}) as http,
                Client(f"{url}/mcp", mode="2026-07-28", policy=NONE, http_client=http) as client,
            ):
                with pytest.raises(RateLimitedError) as caught:
                    await client.call_tool(name, arguments)
                waits.add(caught.value.fault.retry_after)
        assert waits == {40}
        async with (
            httpx2.AsyncClient(headers={"x-caller": "modest"}) as http,
            Client(f"{url}/mcp", policy=NONE, http_client=http) as client,
        ):
            assert not (await client.call_tool("add", {"a": 1})).is_error


def missing(request):
    return None if "authorization" in request.headers else AuthMissingError()


@pytest.mark.parametrize(("reason", "status"), [("limit", 429), ("auth", 401), ("down", 503)])
async def test_over_http_with_problem_details(reason, status):
    """Status, `Retry-After` and a problem document, sent before the body is parsed; our client keeps them."""
    app = reject(lambda request: REASONS[reason]).http(official(Shop()).streamable_http_app())
    with serve(app, lifespan="on") as url:
        answer = httpx2.post(f"{url}/mcp", json={})
        assert answer.status_code == status
        assert answer.headers["content-type"] == "application/problem+json"
        assert extract(answer).code == REASONS[reason].code
        if reason == "limit":
            assert (answer.headers["retry-after"], answer.json()["retry_after_ms"]) == ("7", 7000)
        if reason == "auth":
            assert answer.headers["www-authenticate"]
        async with mcp.Client(f"{url}/mcp", mode="2026-07-28") as client:
            with pytest.raises(mcp.MCPError) as caught:
                await client.list_tools()
        assert caught.value.error.data is None  # official clients drop the rest
        with pytest.raises(FaultError) as ours:
            async with Client(f"{url}/mcp", mode="2026-07-28", policy=NONE) as client:
                await client.list_tools()
        assert (ours.value.code, ours.value.fault.status) == (REASONS[reason].code, status)
        # A retriable answer always has a wait; for an unavailable service it comes from the table.
        expected = 5.0 if reason == "down" else REASONS[reason].fault.retry_after
        assert ours.value.fault.retry_after == expected


@pytest.mark.parametrize("make", [mcp.Client, Client])
async def test_over_http_with_a_body_that_official_clients_keep(make):
    """`body="jsonrpc"`: proxies see the status, clients get the data."""
    app = reject(lambda request: REASONS["limit"]).http(
        official(Shop()).streamable_http_app(), body="jsonrpc"
    )
    with serve(app, lifespan="on") as url:
        answer = httpx2.post(f"{url}/mcp", json={}, headers={"mcp-protocol-version": "2026-07-28"})
        assert (answer.status_code, answer.headers["retry-after"]) == (429, "7")
        assert answer.json()["error"]["code"] == -31029
        options = {"policy": NONE} if make is Client else {}
        async with make(f"{url}/mcp", mode="2026-07-28", **options) as client:
            with pytest.raises((mcp.MCPError, FaultError)) as caught:
                await client.list_tools()
        fault = getattr(caught.value, "fault", None) or extract(caught.value)
        assert (fault.code, fault.retry_after) == ("RATE_LIMITED", 7)


async def test_over_http_other_requests_pass():
    """With credentials, with another method, and ASGI scopes other than HTTP."""
    rejection = reject(missing, methods=["tools/call"])
    server = MCPServer("open", middleware=[rejection])

    @server.tool()
    async def add(a: int) -> int:
        return a + 1

    guard(server)
    app = rejection.http(server.streamable_http_app())
    with serve(app, lifespan="on") as url:
        async with (
            httpx2.AsyncClient(headers={"authorization": "Bearer x"}) as http,
            Client(f"{url}/mcp", http_client=http) as client,
        ):
            assert (await client.call_tool("add", {"a": 1})).content[0].text == "2"
        async with Client(f"{url}/mcp", mode="2026-07-28", policy=NONE) as client:
            # From 2026-07-28 on a header has the method, so listing is not checked.
            assert (await client.list_tools()).tools
            with pytest.raises(FaultError) as caught:
                await client.call_tool("add", {"a": 1})
            assert caught.value.code in {"AUTH_MISSING", "UNAUTHENTICATED"}


def test_an_unknown_body_is_refused():
    """ValueError names the choices."""
    with pytest.raises(ValueError, match="problem, jsonrpc"):
        reject(missing).http(None, body="xml")
