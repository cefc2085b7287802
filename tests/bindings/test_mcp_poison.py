"""A thousand poisoned exceptions on every transport: no piece of their texts arrives at a plain client (A19)."""

import asyncio
import json
import logging

import fastmcp
import mcp
import pytest

from tests.bindings.apps.mcp_shop import POISONS, Shop, fast, low_level, official
from tests.bindings.test_mcp_guard import stdio
from tests.foreign.test_leaks import POISONS as TEXTS
from tests.http.serving import serve

AT_ONCE = 25


@pytest.fixture(autouse=True)
def quiet():
    """A thousand tracebacks are not written: the logger's own time is not what is tested."""
    names = ("mcp", "fastmcp", "amends.mcp")
    for name in names:
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    yield
    for name in names:
        logging.getLogger(name).setLevel(logging.NOTSET)


def pieces():
    """Any eight characters of a poison that no other text would have."""
    for text in TEXTS:
        visible = text.encode("ascii", "ignore").decode()
        yield from (visible[at : at + 8] for at in range(len(visible) - 7))


PIECES = frozenset(pieces())


async def arrived(call, step=1):
    """Everything that arrived for a thousand calls, as text; or for every `step`-th of them."""
    found = []
    for begin in range(0, POISONS, AT_ONCE * step):
        results = await asyncio.gather(
            *(call("poisoned", {"number": number}) for number in range(begin, begin + AT_ONCE * step, step)),
            return_exceptions=True,
        )
        for result in results:
            if isinstance(result, mcp.MCPError):
                found.append(result.error.model_dump_json())
            else:
                assert result.is_error
                found.append(result.model_dump_json(by_alias=True))
    return found


def clean(found, step=1):
    assert len(found) == POISONS // step
    for text in found:
        assert "acme" not in text.lower()
        assert not any(piece in text for piece in PIECES), text
        error = json.loads(text)["structuredContent"]["adcp_error"]
        assert error["code"] in {"SERVICE_UNAVAILABLE", "RATE_LIMITED"}


@pytest.mark.parametrize("mode", ["2026-07-28", "legacy"])
@pytest.mark.parametrize("make", [official, low_level])
async def test_in_memory(make, mode):
    """Both eras, high and low level."""
    step = 1 if mode == "2026-07-28" else 4
    async with mcp.Client(make(Shop()), mode=mode) as client:
        clean(await arrived(client.call_tool, step), step)


async def test_fastmcp_in_memory():
    """FastMCP, which shows every text unless told otherwise."""
    async with fastmcp.Client(fast(Shop())) as client:
        clean(await arrived(client.call_tool_mcp, 4), 4)


async def test_over_streamable_http():
    """One server for all of them; the older era gets every eighth."""
    with serve(official(Shop()).streamable_http_app(json_response=True), lifespan="on") as url:
        for mode, step in (("2026-07-28", 1), ("legacy", 8)):
            async with mcp.Client(f"{url}/mcp", mode=mode) as client:
                clean(await arrived(client.call_tool, step), step)


async def test_over_standard_streams():
    """A process of its own."""
    async with mcp.Client(stdio("official")) as client:
        clean(await arrived(client.call_tool))


async def test_the_plain_server_leaks():
    """What the guard is for: the same exceptions without it."""
    async with fastmcp.Client(fast(Shop(), guarded=False)) as client:
        result = await client.call_tool_mcp("poisoned", {"number": 0})
    assert TEXTS[0] in result.content[0].text
