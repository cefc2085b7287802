"""The way of a failed tool through the source, as docs/architecture.md counts it."""

import asyncio
import sys
from pathlib import Path

import mcp
import pytest
from mcp.server.mcpserver import MCPServer

import amends
from amends.bindings.mcp import guard
from amends.errors import RateLimitedError

SOURCE = f"{Path(amends.__file__).parent}/"

pytestmark = pytest.mark.usefixtures("quiet")


def server():
    shop = guard(MCPServer("shop"))

    @shop.tool()
    async def order(count: int) -> str:
        raise RateLimitedError("Too many orders", retry_after=5)

    return shop


async def walk(arguments):
    """Return the files that the second call of the tool passes through, in order."""
    files = []

    def note(frame, event, arg):
        name = frame.f_code.co_filename
        if event == "call" and name.startswith(SOURCE) and files[-1:] != [name]:
            files.append(name)

    async with mcp.Client(server()) as client:
        await client.call_tool("order", arguments)
        before = sys.getprofile()
        sys.setprofile(note)
        try:
            assert (await client.call_tool("order", arguments)).is_error
        finally:
            sys.setprofile(before)
    return files


def test_a_failed_tool_passes_few_files_and_seldom_goes_back():
    """The goal: at most 28 files, and 15 times to another file and straight back."""
    files = asyncio.run(walk({"count": 1}))
    back = [file for file, there in zip(files, files[2:], strict=False) if file == there]
    assert 10 < len(set(files)) <= 28
    assert len(back) <= 15
