"""The official TypeScript clients against a guarded server. npm installs them into a temporary folder (`make soak`)."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from mcp.server.mcpserver import MCPServer

from amends import extract
from amends.bindings.mcp import guard
from amends.errors import RateLimitedError
from tests.http.serving import serve

pytestmark = [pytest.mark.soak, pytest.mark.usefixtures("quiet")]

PACKAGES = {"1": "@modelcontextprotocol/sdk@1", "2": "@modelcontextprotocol/client@2"}


def server():
    shop = MCPServer("shop")

    @shop.tool()
    def shaped() -> int:
        raise RateLimitedError("Too many orders", retry_after=5)

    @shop.tool(structured_output=False)
    def bare() -> int:
        raise RateLimitedError("Too many orders", retry_after=5)

    return guard(shop)


@pytest.mark.parametrize("version", PACKAGES)
def test_a_typescript_client_gets_every_error(version, tmp_path):
    """Also of a tool with an output schema, for which the client of 1.x threw -32602."""
    npm, node = shutil.which("npm"), shutil.which("node")
    assert npm, "npm is needed: apt-get install npm"
    assert node, "node is needed: apt-get install npm"
    shutil.copy(Path(__file__).parent / "typescript" / "client.mjs", tmp_path)
    subprocess.run([npm, "install", "--silent", PACKAGES[version]], cwd=tmp_path, check=True, timeout=600)
    with serve(server().streamable_http_app(), lifespan="on") as url:
        done = subprocess.run(
            [node, "client.mjs", f"{url}/mcp", version],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
            timeout=120,
        )
    for result in json.loads(done.stdout).values():
        fault = extract(result, "mcp")
        assert (fault.code, fault.retry_after, fault.executed.value) == ("RATE_LIMITED", 5, "no")
