"""
The cooking and the calendar agent of the agent error contract, first without their MCP servers and then with them.

    python examples/cooking_and_calendar.py

The agents do not know in advance whether the servers run. Without the recipe parser the cooking agent asks for the
recipe; without the calendar the calendar agent uses the fallback in CLAUDE.md. Then both servers are started, and the
same requests succeed. It needs `pip install 'amends[mcp]'`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import msgspec

from amends.tasks import Agent, Catalogue, Context, Orchestrator, Step, result_of, sequence

HERE = Path(__file__).resolve().parent


class Recipe(msgspec.Struct):
    """The request to the cooking agent."""

    url: str


class Event(msgspec.Struct):
    """The request to the calendar agent."""

    title: str
    minutes: int = 60


def agents(address: str) -> tuple[Agent, Agent]:
    """Return both agents. Their servers may or may not run; a call times out after a minute."""
    cooking = Agent("cooking-agent", mcp={"pinterest-parser": address}, timeout=60)

    async def by_hand(recipe: Recipe, ctx: Context) -> dict[str, object]:
        text = ctx.ask("I can't open that link right now. Could you paste the recipe here?")
        return {"title": text.splitlines()[0], "minutes": 45}

    @cooking.capability(requires=["pinterest-parser"], read_only=True, fallback=by_hand)
    async def import_recipe(recipe: Recipe, ctx: Context) -> dict[str, object]:
        found = await ctx.mcp["pinterest-parser"].call_tool("parse", {"url": recipe.url})
        return found.structured_content

    calendar = Agent(
        "calendar-agent",
        mcp={"google-calendar": address},
        fallbacks=HERE / "CLAUDE.md",
        timeout=60,
    )

    async def remove(event: Event, result: dict[str, str], ctx: Context) -> None:
        await ctx.mcp["google-calendar"].call_tool("delete_event", {"id": result["id"]})

    @calendar.capability(requires=["google-calendar"], keyed=True, undo=remove)
    async def create_event(event: Event, ctx: Context) -> dict[str, object]:
        wanted = {"title": event.title, "minutes": event.minutes, "idempotency_key": ctx.key}
        made = await ctx.mcp["google-calendar"].call_tool("create_event", wanted)
        return made.structured_content

    return cooking, calendar


def serve(listening: socket.socket) -> None:
    """Run both MCP servers in one: a recipe parser and a calendar that recognises a repeat by its idempotency key."""
    import uvicorn
    from mcp.server.mcpserver import MCPServer

    from amends.bindings.mcp import guard

    server = MCPServer("household")
    events: dict[str, dict[str, str]] = {}

    @server.tool()
    def parse(url: str) -> dict[str, object]:
        return {"title": "Ratatouille", "minutes": 50}

    @server.tool()
    def create_event(title: str, minutes: int, idempotency_key: str) -> dict[str, str]:
        return events.setdefault(idempotency_key, {"id": f"event-{len(events) + 1}", "title": title})

    @server.tool()
    def delete_event(id: str) -> dict[str, str]:
        return {"deleted": id}

    guard(server)
    uvicorn.Server(uvicorn.Config(server.streamable_http_app(), log_config=None)).run([listening])


@contextlib.contextmanager
def running_server(listening: socket.socket):  # noqa: ANN201
    """Run the servers in a process of their own until the block ends."""
    quiet, fd = subprocess.DEVNULL, listening.fileno()
    server = subprocess.Popen(
        [sys.executable, __file__, "serve", str(fd)], stdout=quiet, stderr=quiet, pass_fds=[fd]
    )
    try:
        for _ in range(600):
            with contextlib.suppress(OSError), socket.create_connection(listening.getsockname(), timeout=1):
                break
            if server.poll() is not None:
                raise SystemExit("the MCP server did not start: pip install 'amends[mcp,server]'")
            time.sleep(0.1)
        yield
    finally:
        server.terminate()
        try:
            server.wait(10)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


async def send_requests(store: str, address: str) -> None:
    """Send the same requests to both agents and print the responses."""
    catalogue = Catalogue()
    async with Orchestrator(agents(address), store=store) as orchestrator:
        cooked = await orchestrator.submit("import_recipe", {"url": "https://pin.example/42"})
        response = await cooked.wait()
        if response.status == "input_required":
            print("cooking-agent asks:", response.input["question"])
            await cooked.answer("Grandma's soup\nCarrots, leek, patience")
            response = await cooked.wait()
        print("cooking-agent:", response.result, *(["(degraded)"] if response.metadata.degraded else []))

        response = await orchestrator.run("create_event", {"title": "Dinner"})
        if response.metadata.degraded:
            print("calendar-agent, instead:", *response.result["fallback"]["steps"], sep="\n  - ")
        else:
            print("calendar-agent:", response.result)

        plan = sequence(
            Step(name="recipe", type="import_recipe", payload={"url": "https://pin.example/42"}),
            Step(name="date", type="create_event", payload={"title": result_of("recipe", "/title")}),
            Step(name="broken", type="create_event", payload={"minutes": 5}),
        )
        handle = await orchestrator.submit(plan)
        response = await handle.wait()
        if response.error is not None:
            message = catalogue.message(response.error)
            print("sequence:", message, "undone:", response.error.details.get("undone", []))
        else:
            print("sequence:", response.status)


def main() -> None:
    """Send the requests without the servers, then with them."""
    if sys.argv[1:2] == ["serve"]:
        serve(socket.socket(fileno=int(sys.argv[2])))
        return
    logging.getLogger("amends").setLevel(logging.CRITICAL)  # this program prints the failures itself
    with socket.socket() as listening, tempfile.TemporaryDirectory() as folder:
        # The port is reserved now and served later, so that no other process takes it in the meantime.
        listening.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"
        print("--- without the MCP servers")
        asyncio.run(send_requests(f"sqlite:///{folder}/without.db", address))
        print("--- with the MCP servers")
        with running_server(listening):
            asyncio.run(send_requests(f"sqlite:///{folder}/with.db", address))


if __name__ == "__main__":
    main()

# > --- without the MCP servers
# > cooking-agent asks: I can't open that link right now. Could you paste the recipe here?
# > cooking-agent: {'title': "Grandma's soup", 'minutes': 45} (degraded)
# > calendar-agent, instead:
# >   - Inform user that calendar access isn't available
# >   - Offer to help draft the event details for manual creation
# >   - Suggest checking connection status
# > sequence: input_required
# > --- with the MCP servers
# > cooking-agent: {'title': 'Ratatouille', 'minutes': 50}
# > calendar-agent: {'id': 'event-1', 'title': 'Dinner'}
# > sequence: I still need title. Could you provide it? undone: ['date']
