"""
`adcp` 9.2 as the peer, in both directions, for every standard code. Only with `make soak`: it requires an older a2a-sdk
than the other tests, so it is installed into a separate environment, and importing it is slow.
"""

import asyncio
import json
import subprocess
import sys
import venv
from pathlib import Path

import pytest
from mcp.server import Server
from mcp.server.mcpserver import MCPServer
from mcp_types import ListToolsResult, Tool

from amends import Fault, FaultError
from amends.bindings import fastmcp as fast_binding
from amends.bindings.mcp import Client, guard
from amends.core.vocabularies.adcp import VOCABULARY
from amends.recovery import NONE
from tests.http.serving import serve

pytestmark = [pytest.mark.soak, pytest.mark.usefixtures("quiet")]

ADCP = "adcp==9.2.0"
WAIT = 7
PEER = Path(__file__).parent / "apps" / "adcp_peer.py"


@pytest.fixture(scope="module")
def environment():
    """The python of an environment with adcp, which is created once."""
    place = Path(sys.prefix) / "tools" / ADCP.replace("==", "-")
    python, ready = place / "bin" / "python", place / "ready"
    if not ready.exists():
        venv.create(place, with_pip=True, clear=True)
        subprocess.run([python, "-m", "pip", "install", "-q", ADCP], check=True, timeout=1200)
        ready.touch()
    return python


class Peer:
    """adcp's server and client, in another process."""

    def __init__(self, python):
        self._process = subprocess.Popen(
            [python, PEER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.url = self._process.stdout.readline().strip()

    async def read(self, url, errors):
        """What its client reads from the responses of the server at `url`."""
        print(json.dumps({"url": url, "errors": errors}), file=self._process.stdin, flush=True)
        return json.loads(await asyncio.to_thread(self._process.stdout.readline))

    def close(self):
        self._process.stdin.close()
        self._process.kill()
        self._process.wait(60)
        self._process.stdout.close()


@pytest.fixture(scope="module")
def peer(environment):
    found = Peer(environment)
    yield found
    found.close()


ERRORS = [
    {
        "code": row.code,
        "message": row.message,
        "recovery": row.recovery.value,
        "retry_after": WAIT if row.recovery == "transient" else None,
    }
    for row in VOCABULARY.rows.values()
]


def fails(brief):
    """Raise the error that a request describes."""
    raise FaultError.from_fault(Fault(vocabulary="adcp", **json.loads(brief)))


def official():
    server = MCPServer("ours")

    @server.tool()
    async def get_products(brief: str) -> dict[str, str]:
        fails(brief)

    return guard(server).streamable_http_app()


def low_level():
    async def list_tools(ctx, params):
        return ListToolsResult(tools=[Tool(name="get_products", input_schema={"type": "object"})])

    async def call_tool(ctx, params):
        fails(params.arguments["brief"])

    return guard(Server("ours", on_list_tools=list_tools, on_call_tool=call_tool)).streamable_http_app()


def fast():
    from fastmcp import FastMCP

    server = FastMCP("ours")

    @server.tool
    async def get_products(brief: str, buying_mode: str) -> dict[str, str]:
        fails(brief)

    return fast_binding.guard(server).http_app()


@pytest.mark.parametrize("app", [official, low_level, fast])
async def test_its_client_reads_every_code_of_a_guarded_server(app, peer):
    """Code, message, recovery and wait, as adcp extracts them."""
    with serve(app(), lifespan="on") as url:
        read = await peer.read(f"{url}/mcp", ERRORS)
    names = ("code", "message", "recovery", "retry_after")
    assert [{name: each.get(name) for name in names} for each in read] == ERRORS


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_our_client_reads_every_code_of_its_server(mode, peer):
    """Each as a typed error with the values that adcp's handler raised."""
    found = []
    async with Client(peer.url, mode=mode, policy=NONE) as client:
        for error in ERRORS:
            with pytest.raises(FaultError) as caught:
                await client.call_tool("get_products", {"brief": json.dumps(error), "buying_mode": "brief"})
            fault = caught.value.fault
            found.append(
                {
                    "code": fault.code,
                    "message": fault.message,
                    "recovery": fault.recovery.value,
                    "retry_after": fault.retry_after,
                }
            )
    assert found == ERRORS
