"""A lost call inside a handler that is declared to be safe to repeat, and clients whose caller stops waiting."""

import argparse
import asyncio
import json

import httpx
import pytest
from mcp.server.mcpserver import MCPServer
from mcp_types import ToolAnnotations

from amends import FaultError, arcp
from amends.bindings.argparse import main
from amends.bindings.argparse import operation as declare
from amends.bindings.httpx import AsyncTransport
from amends.bindings.mcp import guard
from amends.foreign.in_doubt import IN_DOUBT
from amends.serving.tracing import handling
from tests.arcp.raw import TOKENS, connected
from tests.hops.chains import Case, repeats, run
from tests.hops.formats import FORMATS, MORE, Mcp, PlainError


async def lose(*_):
    """Send a POST whose answer is lost."""

    def silent(request):
        raise httpx.ReadTimeout("x")

    transport = AsyncTransport(httpx.MockTransport(silent))
    async with httpx.AsyncClient(transport=transport) as client:
        await client.post("http://shop.example/orders")


@pytest.mark.parametrize("declared", [None, "read_only_hint", "idempotent_hint"])
async def test_a_tool(declared):
    class Declared(Mcp):
        def server(self):
            server = MCPServer("shop")

            async def act() -> str:
                return await self.handler()

            annotations = ToolAnnotations(**{declared: True}) if declared else None
            server.tool(annotations=annotations)(act)
            return guard(server)

    with pytest.raises(PlainError) as caught:
        await Declared(lose, amends=True, own=True).call(amends=False)
    assert repeats("mcp", caught.value.document) is (declared is not None)
    assert (IN_DOUBT in str(caught.value.document)) is (declared is None)


@pytest.mark.parametrize("declared", [None, "read_only", "idempotent", "keyed"])
def test_a_command(declared, capfd):
    async def act(_):
        await lose()

    command = declare(**{declared: True})(act) if declared else act
    with pytest.raises(SystemExit):
        main(argparse.ArgumentParser(prog="act"), command, [], piped="json")
    error = json.loads(capfd.readouterr().out)["error"]
    assert error["code"] == ("TIMEOUT" if declared else "EFFECT_UNKNOWN")
    assert error["retryable"] is (declared is not None)


@pytest.mark.parametrize(("declared", "executed"), [(None, "maybe"), ("read_only", "no")])
def test_an_exception_of_a_command_itself(declared, executed, capfd):
    """The command may have done something before it; not if it is declared to read."""

    def act(_):
        raise FileNotFoundError(2, "gone", "/etc/shop")

    command = declare(**{declared: True})(act) if declared else act
    with pytest.raises(SystemExit):
        main(argparse.ArgumentParser(prog="act"), command, [], piped="json")
    error = json.loads(capfd.readouterr().out)["error"]
    assert (error["code"], error["executed"]) == ("NOT_FOUND", executed)


@pytest.mark.parametrize("repeatable", [False, True])
async def test_an_agent(repeatable):
    async with arcp.Runtime(tokens=TOKENS) as runtime:
        runtime.register_agent("act", lose, repeatable=repeatable)
        raw = await connected(runtime)
        accepted = await raw.submit("act", {})
        payload = (await raw.end(accepted["payload"]["job_id"], within=60))["payload"]
        await raw.close()
    assert payload["retryable"] is repeatable
    assert (payload["message"] == IN_DOUBT) is not repeatable


@pytest.mark.parametrize("name", ["arcp", "mcp", "a2a-stream", "aiohttp", "flask"])
async def test_a_client_stops_waiting_with_its_caller(name):
    """The server never answers, and the client has no time-out of its own that is shorter."""
    over = asyncio.Event()
    hop = {**FORMATS, **MORE}[name](over.wait, amends=True, own=True)
    async with hop.serve():
        with handling(None, "3;deadline-ms=400"), pytest.raises(FaultError) as caught:
            await hop.call(amends=True)
        over.set()
    assert caught.value.fault.code == "TIMEOUT"
    assert caught.value.fault.executed.value == "maybe"


@pytest.mark.parametrize("name", ["task", "arcp"])
async def test_a_registered_exception(name):
    """`amends.register` holds in tasks and jobs, too."""
    outcome = await run(Case(f"{name}:both", "registered"))
    assert (outcome.fault.code, outcome.fault.recovery.value, outcome.calls) == ("CONFLICT", "correctable", 1)
