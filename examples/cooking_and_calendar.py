"""
The cooking and the calendar agent of the error contract, with MCP servers that are missing at first and then appear.

    python examples/cooking_and_calendar.py

Nothing is declared about the servers: the agents find out. Without the recipe parser the cooking agent asks for the recipe; without the
calendar the calendar agent falls back to what CLAUDE.md says. Then both servers are started, and the same requests go through. Needs
`pip install 'amends[mcp,server]'`.
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
    """What the cooking agent is asked with."""

    url: str


class Event(msgspec.Struct):
    """What the calendar agent is asked with."""

    title: str
    minutes: int = 60


def agents(address: str) -> tuple[Agent, Agent]:
    """Both agents, for servers that may or may not be listening; a server that says nothing for a minute is given up on."""
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


def serve(place: socket.socket) -> None:
    """Both MCP servers in one: a recipe parser and a calendar that knows a repeat by its key."""
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
    uvicorn.Server(uvicorn.Config(server.streamable_http_app(), log_config=None)).run([place])


@contextlib.contextmanager
def running_server(place: socket.socket):  # noqa: ANN201
    """The servers as a process of their own, up when this begins and gone when it ends."""
    quiet, held = subprocess.DEVNULL, place.fileno()
    server = subprocess.Popen(
        [sys.executable, __file__, "serve", str(held)], stdout=quiet, stderr=quiet, pass_fds=[held]
    )
    try:
        for _ in range(600):
            with contextlib.suppress(OSError), socket.create_connection(place.getsockname(), timeout=1):
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


async def evening(store: str, address: str) -> None:
    """Ask for the same two things, and say what comes back."""
    words = Catalogue()
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
            print(
                "the whole evening:", words.message(response.error), response.error.details.get("undone", [])
            )
        else:
            print("the whole evening:", response.status)


def main() -> None:
    """First without the servers, then with them."""
    if sys.argv[1:2] == ["serve"]:
        serve(socket.socket(fileno=int(sys.argv[2])))
        return
    logging.getLogger("amends").setLevel(logging.CRITICAL)  # what failed is printed here
    with socket.socket() as place, tempfile.TemporaryDirectory() as folder:
        # Held from the beginning and listened to later: nobody else gets the port in the meantime.
        place.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{place.getsockname()[1]}/mcp"
        print("--- the MCP servers are missing")
        asyncio.run(evening(f"sqlite:///{folder}/missing.db", address))
        print("--- they have appeared")
        with running_server(place):
            asyncio.run(evening(f"sqlite:///{folder}/there.db", address))


if __name__ == "__main__":
    main()

# > --- the MCP servers are missing
# > cooking-agent asks: I can't open that link right now. Could you paste the recipe here?
# > cooking-agent: {'title': "Grandma's soup", 'minutes': 45} (degraded)
# > calendar-agent, instead:
# >   - Inform user that calendar access isn't available
# >   - Offer to help draft the event details for manual creation
# >   - Suggest checking connection status
# > the whole evening: input_required
# > --- they have appeared
# > cooking-agent: {'title': 'Ratatouille', 'minutes': 50}
# > calendar-agent: {'id': 'event-1', 'title': 'Dinner'}
# > the whole evening: I'm missing title. Could you tell me? ['date']
