"""The MCP conformance suite (npm) through the gateway gives the same result as without it."""

import asyncio
import re
import shutil
import subprocess
import sys

import pytest

from amends.gateway.config import UpstreamConfig
from tests.gateway.peers import free_port, serving

SUITE = "@modelcontextprotocol/conformance@0.1.8"
SERVER = """
import sys
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
server = MCPServer("conformance")

@server.tool()
def test_simple_text() -> str:
    return "This is a simple text response for testing."

@server.tool()
def test_error_handling() -> str:
    raise RuntimeError("This tool intentionally returns an error for testing")

@server.tool()
async def test_tool_with_logging(ctx: Context) -> str:
    await ctx.info("Tool execution started")
    await ctx.info("Tool processing data")
    await ctx.info("Tool execution completed")
    return "done"

@server.tool()
async def test_tool_with_progress(ctx: Context) -> str:
    for number in (0, 50, 100):
        await ctx.report_progress(number, 100)
    return "done"

@server.resource("test://static-text")
def static_text() -> str:
    return "This is the content of the static text resource."

@server.resource("test://template/{id}/data")
def template(id: str) -> str:
    return id

@server.prompt()
def test_simple_prompt() -> str:
    return "This is a simple prompt for testing."

@server.prompt()
def test_prompt_with_arguments(arg1: str, arg2: str) -> str:
    return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"

server.run("streamable-http", port=int(sys.argv[1]))
"""


def suite(place, url):
    """Run the suite, and return its lines of results without times."""
    command = ["npx", "--prefix", str(place), "conformance", "server", "--url", url]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False, cwd=place)
    return sorted(set(re.findall(r"^\s*[✓✗].*$|^Total:.*$", done.stdout, re.MULTILINE)))


@pytest.mark.soak
@pytest.mark.timeout(1800)
async def test_the_conformance_suite(tmp_path):
    """Each scenario passes or fails as it does without the gateway."""
    if shutil.which("npm") is None:
        pytest.skip("the suite needs npm")
    install = ["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(tmp_path), SUITE]
    subprocess.run(install, check=True, timeout=600, cwd=tmp_path)
    port = free_port()
    server = subprocess.Popen([sys.executable, "-c", SERVER, str(port)], stderr=subprocess.DEVNULL)
    try:
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
                break
            except ConnectionError:
                assert server.poll() is None
                await asyncio.sleep(0.1)
        writer.close()
        url = f"http://127.0.0.1:{port}/mcp"
        config = UpstreamConfig(name="server", kind="mcp", url=url, prefix="/mcp")
        async with serving(config) as gateway:
            direct = await asyncio.to_thread(suite, tmp_path, url)
            through = await asyncio.to_thread(suite, tmp_path, f"{gateway.url}/mcp")
        assert len(direct) > 10
        assert through == direct
    finally:
        server.terminate()
        server.wait(20)
