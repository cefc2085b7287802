"""The walk of a task with a fallback: the files that it passes through, and how often control goes back and forth."""

import re
import sys
from pathlib import Path

import amends
from amends.errors import task as errors
from amends.tasks import Agent, Orchestrator

SOURCE = f"{amends.__path__[0]}/"
PAGE = Path(__file__).parents[2] / "docs" / "architecture.md"


async def walk():
    """Run a task twice, the first time to load what is loaded once. Return the files that the second one called."""
    agent, called = Agent("calendar"), []

    @agent.capability(read_only=True, fallback=lambda payload: "instead")
    async def create(payload):
        raise errors.McpNotConnectedError(details={"mcp": "calendar"})

    def note(frame, event, arg):
        name = frame.f_code.co_filename
        if event == "call" and name.startswith(SOURCE):
            called.append(name.removeprefix(SOURCE))

    async with Orchestrator([agent]) as orchestrator:
        for profile in (sys.getprofile(), note):
            before = sys.getprofile()
            sys.setprofile(profile)
            try:
                response = await orchestrator.run("create", {"title": "Dinner"})
            finally:
                sys.setprofile(before)
    assert response.result == "instead"
    return called


async def test_a_task_with_a_fallback():
    """Not more files and bounces than the page says. The shortest of three: on a loaded machine a tick may come between."""
    called = min([await walk() for _ in range(3)], key=len)
    path = [name for place, name in enumerate(called) if place == 0 or called[place - 1] != name]
    bounces = sum(one == other for one, other in zip(path, path[2:], strict=False))
    pattern = r"A task with a fallback, in memory, passes through (\d+) files with (\d+) bounces"
    found = re.search(pattern, " ".join(PAGE.read_text().split()))
    # Where it is loaded, it is asked for the trace of the request that submits the task.
    loaded = "amends.http.current" in sys.modules
    assert len(set(path)) <= int(found[1]) + loaded
    assert bounces <= int(found[2]) + loaded
