"""MCP on both sides: the server runs a tool once per key, the client makes a call once and sends its key."""

import pytest
from mcp.server.mcpserver import MCPServer
from mcp_types import ToolAnnotations

from amends import Operation, Policy
from amends.bindings.mcp import Client, guard
from amends.effects import AlreadyDoneError, Effects, InDoubtError, current_key
from amends.errors import RateLimitedError, ServiceUnavailableError


def shop(effects=None, **options):
    server, seen = MCPServer("shop"), []
    script = []

    def work(item):
        seen.append((item, current_key()))
        if script:
            raise script.pop(0)
        return f"did {item}"

    @server.tool(annotations=ToolAnnotations(read_only_hint=False))
    def order(item: str) -> str:
        return work(item)

    @server.tool(annotations=ToolAnnotations(destructive_hint=True))
    def drop(item: str) -> str:
        return work(item)

    @server.tool(annotations=ToolAnnotations(read_only_hint=True))
    def look(item: str) -> str:
        return work(item)

    @server.tool()
    def unknown(item: str) -> str:
        return work(item)

    if effects is not None:
        guard(server, effects=effects, **options)
    else:
        guard(server)
    return server, seen, script


async def call(client, tool, item="tea", **options):
    result = await client.call_tool(tool, {"item": item}, raises="nothing", **options)
    return result.is_error, result.content[0].text


async def test_a_server_runs_covered_tools_once():
    """Covered are tools that say that they change something, and those that are named."""
    server, seen, _ = shop(Effects("memory:"), tools=["unknown"])
    async with Client(server) as client:
        for tool in ("order", "drop", "unknown"):
            seen.clear()
            assert await call(client, tool) == (False, "did tea")
            failed, text = await call(client, tool)
            assert failed
            assert "already done at" in text
            assert len(seen) == 1
            assert await call(client, tool, meta={"amends/key": "k"}) == (False, "did tea")
            assert await call(client, tool, meta={"amends/key": "k"}) == (False, "did tea")
            assert [key for _, key in seen][1] == f"{tool}:k"
            assert len(seen) == 2
            again = await client.call_tool(tool, {"item": "tea", "again": "a second one"})
            assert (again.content[0].text, len(seen)) == ("did tea", 3)
        for _ in range(2):
            assert await call(client, "look") == (False, "did tea")


async def test_only_explicit_annotations_count_by_default():
    """A tool without annotations is not covered, although the protocol's default is that it may destroy something."""
    server, seen, _ = shop(Effects("memory:"))
    async with Client(server) as client:
        for _ in range(2):
            assert await call(client, "unknown") == (False, "did tea")
    assert len(seen) == 2


async def test_a_failed_tool_frees_its_key_or_is_in_doubt():
    """What the tool raised decides; the model gets the question."""
    effects = Effects("memory:")
    server, seen, script = shop(effects)
    async with Client(server, upstream=None) as client:
        script.append(RateLimitedError(retry_after=0.001))
        assert await call(client, "order") == (False, "did tea")
        assert len(seen) == 2
        script.append(TimeoutError())
        for _ in range(2):
            failed, text = await call(client, "order", "milk")
            assert failed
            assert "not known" in text
        assert len(seen) == 3
        (doubt,) = await effects.pending()
        await effects.averify(doubt.key, happened=True, outcome="found")
        assert await call(client, "order", "milk") == (False, "found")


async def test_a_client_makes_a_call_once_and_sends_its_key():
    """The server here has no ledger; the client's own recognises the repeated call."""
    effects = Effects("memory:")
    server, seen, script = shop()
    async with Client(server, effects=effects, effect_tools=["unknown"], upstream=None) as client:
        for tool in ("order", "unknown"):
            seen.clear()
            with effects.scope("task-42"):
                assert (await client.call_tool(tool, {"item": "tea"})).content[0].text == "did tea"
                with pytest.raises(AlreadyDoneError) as done:
                    await client.call_tool(tool, {"item": "tea"})
                assert done.value.outcome["content"][0]["text"] == "did tea"
                assert len(seen) == 1
                assert await client.call_tool(tool, {"item": "tea"}, again="another one")
        script.append(TimeoutError())
        for _ in range(2):
            with pytest.raises(InDoubtError):
                await client.call_tool("order", {"item": "rum"}, key="17")
        for _ in range(2):
            await client.call_tool("look", {"item": "tea"})
    assert sum(item == "rum" for item, _ in seen) == 1


async def test_a_client_lists_the_tools_before_the_first_call():
    """Two identical calls of a tool that the client has not seen are one; a tool that only reads is not covered."""
    effects = Effects("memory:")
    server, seen, _ = shop()
    for options in ({}, {"operation": Operation(name="order")}):
        seen.clear()
        async with Client(server, effects=effects, upstream=None) as client:
            with effects.scope(f"task-{len(options)}"):
                await client.call_tool("order", {"item": "tea"}, **options)
                with pytest.raises(AlreadyDoneError):
                    await client.call_tool("order", {"item": "tea"}, **options)
                await client.call_tool("unknown", {"item": "tea"}, **options)
                with pytest.raises(AlreadyDoneError):
                    await client.call_tool("unknown", {"item": "tea"}, **options)
                for _ in range(2):
                    await client.call_tool("look", {"item": "tea"}, **options)
        assert len(seen) == 4


async def test_a_listing_that_fails_covers_every_tool():
    """Without a listing nothing says that a tool only reads."""
    effects = Effects("memory:")
    server, seen, _ = shop()

    async def no_listing(*args, **options):
        raise ServiceUnavailableError(executed="no")

    async with Client(server, effects=effects, upstream=None, policy=Policy(attempts=1)) as client:
        client._list_operations = no_listing
        with effects.scope("task"):
            await client.call_tool("order", {"item": "tea"}, operation=Operation(name="order"))
            with pytest.raises(AlreadyDoneError):
                await client.call_tool("order", {"item": "tea"}, operation=Operation(name="order"))
    assert len(seen) == 1


async def test_both_sides():
    """The client's key reaches the server, so that the server's ledger recognises a call that the client lost."""
    server_side, client_side = Effects("memory:"), Effects("memory:")
    server, seen, _ = shop(server_side)
    async with Client(server, effects=client_side) as client:
        await client.call_tool("order", {"item": "tea"}, key="17")
    assert seen == [("tea", "order:order:17")]
    async with Client(server, effects=Effects("memory:")) as client:
        # The client's ledger was lost, too.
        assert (await client.call_tool("order", {"item": "tea"}, key="17")).content[0].text == "did tea"
    assert len(seen) == 1


async def test_a_key_belongs_to_its_caller():
    """Another caller that sends the same key gets neither the outcome nor a refusal."""
    caller = ["alice"]
    server, seen, _ = shop(Effects("memory:"), scope=lambda ctx: caller[0])
    async with Client(server) as client:
        for caller[0] in ("alice", "bob", "alice"):
            assert await call(client, "order", caller[0], meta={"amends/key": "1"}) == (
                False,
                f"did {caller[0]}",
            )
    assert [item for item, _ in seen] == ["alice", "bob"]


def test_wrong_options():
    """A mistake is refused with what to do."""
    with pytest.raises(TypeError, match="tools="):
        guard(MCPServer("s"), tools=["a"])
    with pytest.raises(TypeError, match="list of tool names"):
        guard(MCPServer("s"), effects=Effects("memory:"), tools="a")


async def test_fastmcp_servers():
    """The same guard around a FastMCP server."""
    fastmcp = pytest.importorskip("fastmcp")
    from amends.bindings import fastmcp as binding

    server, seen = fastmcp.FastMCP("shop"), []

    @server.tool(annotations=ToolAnnotations(read_only_hint=False))
    def order(item: str) -> str:
        seen.append(item)
        return f"did {item}"

    binding.guard(server, effects=Effects("memory:"))
    async with fastmcp.Client(server) as client:
        assert (await client.call_tool("order", {"item": "tea"})).data == "did tea"
        again = await client.call_tool("order", {"item": "tea"}, raise_on_error=False)
        assert again.is_error
        assert "already done at" in again.content[0].text
    assert seen == ["tea"]
