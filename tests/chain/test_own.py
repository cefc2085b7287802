"""Tests of `own=True` (M9): failures of our own services are passed on as they were read."""

import httpx
import mcp
import pytest
from mcp.server import Server
from mcp.server.mcpserver import MCPServer
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from amends import Policy, Upstream, extract
from amends.bindings.httpx import AsyncTransport
from amends.bindings.mcp import Client, guard
from amends.bindings.starlette import install
from amends.errors import NotFoundError

ONE = Policy(attempts=1)


async def plain(request):
    return PlainTextResponse("no /srv/orders/7", status_code=404)


async def typed(request):
    raise NotFoundError("There is no order 7", field="id", suggestions=["List the orders"])


def api():
    app = Starlette(routes=[Route("/plain", plain), Route("/typed", typed)])
    install(app)
    return app


OPTIONS = [{"own": True}, {"upstream": Upstream("orders", own=True)}]


def call(options, path):
    async def send():
        transport = AsyncTransport(httpx.ASGITransport(api()), policy=ONE, **options)
        async with httpx.AsyncClient(transport=transport) as client:
            return (await client.get(f"http://orders/{path}")).text

    return send


def tool_around(send):
    server = MCPServer("orders")

    @server.tool()
    async def read() -> str:
        return await send()

    return guard(server)


async def fault_of(server):
    async with mcp.Client(server) as client:
        result = await client.call_tool("read")
    assert "/srv/" not in result.model_dump_json()
    return extract(result)


@pytest.mark.parametrize("options", OPTIONS)
async def test_a_tool_around_our_own_api(options):
    """An honest 404 arrives as such; before it was unavailable, transient, and may have happened."""
    bare = await fault_of(tool_around(call(options, "plain")))
    assert (bare.code, bare.recovery.value, bare.executed.value) == (
        "REFERENCE_NOT_FOUND",
        "correctable",
        "no",
    )
    typed = await fault_of(tool_around(call(options, "typed")))
    assert (typed.code, typed.message, typed.field, typed.suggestions) == (
        "REFERENCE_NOT_FOUND",
        "There is no order 7",
        "id",
        ("List the orders",),
    )
    assert typed.details is None


async def test_a_tool_around_a_strangers_api():
    """The caller can neither correct the request nor wait. That it had no effect is not believed of a stranger."""
    for path in ("plain", "typed"):
        fault = await fault_of(tool_around(call({}, path)))
        assert (fault.code, fault.recovery.value) == ("SERVICE_UNAVAILABLE", "terminal")
        assert (fault.executed.value, fault.origin.record["executed"]) == ("maybe", "no")
        assert (fault.field, fault.suggestions) == (None, ())


async def test_a_web_application_around_our_own_api():
    """The same 404 through two web applications; a stranger's is 503, terminal."""
    for options, expected in (
        ({"own": True}, (404, "NOT_FOUND", "correctable")),
        ({}, (503, "SERVICE_UNAVAILABLE", "terminal")),
    ):
        send = call(options, "typed")

        async def relay(request, send=send):
            return PlainTextResponse(await send())

        app = Starlette(routes=[Route("/", relay)])
        install(app)
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app)) as client:
            response = await client.get("http://front/")
        body = response.json()
        assert (response.status_code, body["code"], body["recovery"]) == expected


async def test_a_tool_of_our_own_behind_a_tool():
    """MCP: the intermediary's own mistake is its bug; a bug of the inner tool passes as the conformant error it is."""
    inner = MCPServer("inner")

    @inner.tool()
    async def fine() -> str:
        raise KeyError("x")

    guard(inner)
    for own in (True, False):

        async def send(own=own):
            async with Client(inner, policy=ONE, own=own) as client:
                return (await client.call_tool("fine")).content[0].text

        fault = await fault_of(tool_around(send))
        assert (fault.code, fault.recovery.value) == ("SERVICE_UNAVAILABLE", "terminal")

        async def prompt(own=own):
            async with Client(Server("bare"), policy=ONE, own=own) as client:
                return (await client.get_prompt("unknown")).description

        mistake = await fault_of(tool_around(prompt))
        assert (mistake.code, mistake.recovery.value) == ("SERVICE_UNAVAILABLE", "terminal")
        assert mistake.origin.record["executed"] == "no"
