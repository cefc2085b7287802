"""The table on the README's first screen is real output: what a model reads without and with amends."""

import asyncio
import logging
import re
from pathlib import Path

import httpx2
import mcp
import openai
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from mcp.server.mcpserver import MCPServer

from amends import extract, for_llm, from_exception
from amends.bindings.fastapi import install
from amends.bindings.mcp import guard

README = Path(__file__).parents[1] / "README.md"
# The answer of OpenAI's API when an account has no credit left.
QUOTA = {
    "error": {
        "message": "You exceeded your current quota, please check your plan and billing details.",
        "type": "insufficient_quota",
        "param": None,
        "code": "insufficient_quota",
    }
}


async def call_tool(*, guarded):
    """Call a tool that lost its database."""
    server = MCPServer("shop")
    if guarded:
        guard(server)

    @server.tool()
    def order(item: str) -> str:
        raise ConnectionResetError("db-7.internal:5432")

    async with mcp.Client(server) as client:
        return await client.call_tool("order", {"item": "tea"})


def call_api(*, installed):
    """Call an API whose handler timed out."""
    app = FastAPI()

    @app.post("/orders")
    def order():
        raise TimeoutError

    if installed:
        install(app)
    return TestClient(app, raise_server_exceptions=False).post("/orders")


def call_openai():
    """Return the SDK's exception for an account without credit."""
    transport = httpx2.MockTransport(lambda request: httpx2.Response(429, json=QUOTA))
    client = openai.OpenAI(api_key="x", max_retries=0, http_client=httpx2.Client(transport=transport))
    with pytest.raises(openai.RateLimitError) as caught:
        client.chat.completions.create(model="m", messages=[{"role": "user", "content": "Hi"}])
    return caught.value


def facts(fault):
    """Return the line of the facts, which precedes the text of the failing service."""
    return for_llm(fault).splitlines()[0]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_what_a_model_reads_without_and_with_amends(caplog):
    """Each row's two cells."""
    caplog.set_level(logging.CRITICAL)
    rows = re.findall(r"^\| [^|`]+ \| `([^`]+)` \| `([^`]+)` \|$", README.read_text(), re.MULTILINE)
    error = call_openai()
    assert rows == [
        (
            asyncio.run(call_tool(guarded=False)).content[0].text,
            facts(extract(asyncio.run(call_tool(guarded=True)))),
        ),
        (call_api(installed=False).text, facts(extract(call_api(installed=True)))),
        (str(error), facts(from_exception(error))),
    ]
