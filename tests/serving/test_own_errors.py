"""Own codes and registered classes as AdCP errors: recovery stays, vendor codes are checked (A15)."""

import mcp
import pytest
from fastmcp import Client as FastClient
from fastmcp import FastMCP
from mcp.server.mcpserver import MCPServer

from amends import FaultError, encode, extract, translate
from amends.bindings import a2a, fastmcp
from amends.bindings.mcp import guard
from amends.core.vocabularies import app
from amends.errors import NotFoundError
from amends.serving.server_errors import OwnErrors, classify
from tests.bindings.agents import PATHS, Agent, agent_server, plain_client, request


class SeatTaken(Exception):
    """An application's own exception."""


@pytest.fixture(scope="module")
def own():
    """Classes of own codes: one per recovery, one derived from an everyday class, one with a long code."""
    made = {
        recovery: type(
            f"Own{recovery}", (FaultError,), {"code": f"OWN_{recovery.upper()}", "recovery": recovery}
        )
        for recovery in ("transient", "correctable", "terminal", "uncertain")
    }
    made["derived"] = type("OrderMissing", (NotFoundError,), {"code": "ORDER_MISSING"})
    made["long"] = type("Long", (FaultError,), {"code": "L" * 60, "recovery": "terminal"})
    yield made
    for cls in made.values():
        app._ROWS.pop(cls.code)


EXPECTED = {
    "transient": ("SERVICE_UNAVAILABLE", "transient", "X_ACME_OWN_TRANSIENT"),
    "correctable": ("INVALID_REQUEST", "correctable", "X_ACME_OWN_CORRECTABLE"),
    "terminal": ("CONFIGURATION_ERROR", "terminal", "X_ACME_OWN_TERMINAL"),
    # AdCP has no "uncertain" (M2).
    "uncertain": ("SERVICE_UNAVAILABLE", "transient", "X_ACME_OWN_UNCERTAIN"),
    "derived": ("REFERENCE_NOT_FOUND", "correctable", "X_ACME_ORDER_MISSING"),
    # Too long for a vendor code.
    "long": ("CONFIGURATION_ERROR", "terminal", "CONFIGURATION_ERROR"),
}


def test_own_codes_keep_their_recovery(own):
    """Without a vendor name a published code of the same recovery, with one a vendor code; never a note."""
    for kind, (code, recovery, vendor) in EXPECTED.items():
        error = own[kind]("What happened")
        plain = encode(classify(error).fault, "adcp")
        assert plain == {"code": code, "message": "What happened", "recovery": recovery}
        prefixed = encode(classify(error, OwnErrors.of(None, "ACME")).fault, "adcp")
        assert prefixed == {**plain, "code": vendor}
        assert translate(error.fault, to="adcp")[0].code == code


def test_invalid_options():
    """The prefix and the codes are checked when the server is guarded."""
    for prefix in ("acme", "A", "ACME_SHOP", "X" * 21, ""):
        with pytest.raises(ValueError, match="X_"):
            guard(MCPServer("shop"), code_prefix=prefix)
    with pytest.raises(ValueError, match="NO_SUCH"):
        guard(MCPServer("shop"), errors={SeatTaken: "NO_SUCH"})
    with pytest.raises(TypeError):
        guard(MCPServer("shop"), errors={"SeatTaken": "CONFLICT"})


def tools(server):
    @server.tool
    def book() -> str:
        raise SeatTaken("row 3, seat 14")

    @server.tool
    def move() -> str:
        raise NotFoundError("There is no row 99", suggestions=["Take row 3"])


async def test_errors_and_code_prefix_on_guarded_servers(own):
    """`errors={E: "CODE"}` on both MCP frameworks and on A2A; none of the exception's text is sent."""
    options = {"errors": {SeatTaken: own["correctable"].code}, "code_prefix": "ACME"}
    official, fast = MCPServer("seats"), FastMCP("seats")
    tools(fast)

    @official.tool()
    def book() -> str:
        raise SeatTaken("row 3, seat 14")

    results = []
    async with mcp.Client(guard(official, **options)) as client:
        results.append(await client.call_tool("book"))
    async with FastClient(fastmcp.guard(fast, **options)) as client:
        results.append(await client.call_tool_mcp("book", {}))
        moved = extract(await client.call_tool_mcp("move", {}))

    async def work(context, updater):
        raise SeatTaken("row 3, seat 14")

    with agent_server(a2a.guard(Agent(work), **options), wrap=a2a.guard) as base:
        async with plain_client(base, PATHS[0]) as client:
            async for event in client.send_message(request("book")):
                results.append(event)
    for result in results:
        assert "seat 14" not in str(result)
        fault = extract(result)
        assert (fault.code, fault.recovery.value) == ("X_ACME_OWN_CORRECTABLE", "correctable")
    assert len(results) == 3
    assert (moved.code, moved.suggestions) == ("REFERENCE_NOT_FOUND", ("Take row 3",))
