"""Exceptions with secrets on every transport, a thousand in all: no piece of their texts reaches a plain client (A19)."""

import asyncio
import json
from contextlib import contextmanager
from functools import partial
from itertools import product

import fastmcp
import mcp
import pytest
from mcp.client.sse import sse_client

from tests.bindings.apps.mcp_shop import KINDS, POISONS, Shop, fast
from tests.bindings.apps.mcp_sse import sse_served
from tests.bindings.test_mcp_guard import stdio
from tests.foreign.test_leaks import POISONS as TEXTS
from tests.http.serving import serve

AT_ONCE = 25
FEW = 150
"""The exceptions of most combinations in every run; `make soak` raises a thousand in each."""

pytestmark = pytest.mark.usefixtures("quiet")


def pieces():
    """All substrings of eight characters of the secret texts."""
    for text in TEXTS:
        visible = text.encode("ascii", "ignore").decode()
        yield from (visible[at : at + 8] for at in range(len(visible) - 7))


PIECES = frozenset(pieces())


async def responses_of(call, count):
    """The responses of so many calls, as text."""
    found = []
    for begin in range(0, count, AT_ONCE):
        results = await asyncio.gather(
            *(call("poisoned", {"number": number}) for number in range(begin, begin + AT_ONCE)),
            return_exceptions=True,
        )
        for result in results:
            if isinstance(result, mcp.MCPError):
                found.append(result.error.model_dump_json())
            else:
                assert result.is_error
                found.append(result.model_dump_json(by_alias=True))
    return found


def clean(found, count):
    assert len(found) == count
    for text in found:
        assert "acme" not in text.lower()
        assert not any(piece in text for piece in PIECES), text
        result = json.loads(text)
        # Up to 2025-11-25 the error of a tool with an output schema is text only.
        error = (result["structuredContent"] or json.loads(result["content"][0]["text"]))["adcp_error"]
        assert error["code"] in {"SERVICE_UNAVAILABLE", "RATE_LIMITED"}


@contextmanager
def in_memory(kind):
    made = KINDS[kind](Shop())
    yield made._mcp_server if kind == "fast" else made


@contextmanager
def over_standard_streams(kind):
    yield stdio(kind)


@contextmanager
def over_http(kind, *, json_response):
    made = KINDS[kind](Shop())
    app = made.http_app if kind == "fast" else made.streamable_http_app
    with serve(app(json_response=json_response), lifespan="on", timeout_keep_alive=600) as url:
        yield f"{url}/mcp"


@contextmanager
def over_sse(kind):
    with sse_served(KINDS[kind](Shop())) as url:
        yield sse_client(url)


TRANSPORTS = {
    "memory": in_memory,
    "stdio": over_standard_streams,
    "http": partial(over_http, json_response=True),
    "http streams": partial(over_http, json_response=False),
    "sse": over_sse,
}
MODES = ("2026-07-28", "legacy")
QUICK = {
    ("memory", "official", "2026-07-28"): POISONS,
    ("memory", "official", "legacy"): FEW,
    ("memory", "low_level", "2026-07-28"): FEW,
    ("memory", "fast", "2026-07-28"): FEW,
    ("stdio", "official", "2026-07-28"): FEW,
    ("http", "official", "2026-07-28"): FEW,
}
"""The combinations in every run, with the number of exceptions; `make soak` runs all of them."""


def ways():
    for way in product(TRANSPORTS, KINDS, MODES):
        if way[0] == "sse" and way[2] != "legacy":
            continue  # only older protocols have this transport
        for count in sorted({QUICK.get(way, POISONS), POISONS}):
            quick = QUICK.get(way) == count
            name = f"{' '.join(way)} {count}"
            yield pytest.param(*way, count, marks=() if quick else pytest.mark.soak, id=name)


@pytest.mark.parametrize(("transport", "kind", "mode", "count"), list(ways()))
async def test_no_secret_is_sent(transport, kind, mode, count):
    """Each framework on each transport, with old and new protocols."""
    with TRANSPORTS[transport](kind) as target:
        async with mcp.Client(target, mode=mode) as client:
            clean(await responses_of(client.call_tool, count), count)


async def test_fastmcps_own_client():
    """FastMCP on both sides."""
    async with fastmcp.Client(fast(Shop())) as client:
        clean(await responses_of(client.call_tool_mcp, FEW), FEW)


async def test_the_plain_server_leaks():
    """The same exceptions without a guard."""
    async with fastmcp.Client(fast(Shop(), guarded=False)) as client:
        result = await client.call_tool_mcp("poisoned", {"number": 0})
    assert TEXTS[0] in result.content[0].text
