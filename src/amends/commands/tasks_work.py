"""`amends tasks worker` and `amends tasks submit`: work on the tasks of a store, and add to them."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from amends.tasks import Agent, Orchestrator

__all__ = ["json_or_text", "load_agents", "next_step", "submit", "work"]


async def submit(orchestrator: Orchestrator, args: argparse.Namespace) -> dict[str, object]:
    """Submit a task, and wait for it if that was asked for."""
    payload = None if args.payload is None else json_or_text(args.payload)
    handle = await orchestrator.submit(
        args.type, payload, agent=args.agent, id=args.id, key=args.key, deadline=args.deadline
    )
    response = await handle.response() if args.wait is None else await handle.wait(timeout=args.wait)
    return {"task": response.document(), "next": await next_step(orchestrator, handle.id, [])}


async def work(orchestrator: Orchestrator, args: argparse.Namespace) -> dict[str, object]:
    """Work on tasks until a signal ends the process, or until nothing is due."""
    if args.drain:
        return {"handled": await orchestrator.drain()}
    import signal

    ended = asyncio.Event()
    for each in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(each, ended.set)
    await ended.wait()
    return {"handled": None}


def load_agents(name: str) -> list[Agent]:
    """Import `module:agents`. Raises ValueError with what is wrong."""
    import importlib
    import sys

    from amends.tasks import Agent

    module, colon, attribute = name.partition(":")
    if not colon or not module or not attribute:
        raise ValueError(f"{name!r} is not of the form module:agents")
    sys.path.insert(0, "")
    try:
        found = getattr(importlib.import_module(module), attribute)
    except ModuleNotFoundError as missing:
        raise ValueError(
            f"there is no module {missing.name!r}: run it in the folder of {missing.name}.py, or correct the name"
        ) from missing
    except AttributeError:
        raise ValueError(f"the module {module!r} has no {attribute!r}") from None
    agents = [found] if isinstance(found, Agent) else found
    if (
        not isinstance(agents, list | tuple)
        or not all(isinstance(each, Agent) for each in agents)
        or not agents
    ):
        raise ValueError(f"{name!r} must be an Agent or a list of Agents")
    return list(agents)


async def next_step(orchestrator: Orchestrator, id: str, doubtful: Sequence[str]) -> str:
    """What will happen after a command."""
    lacking = await orchestrator.missing_agents(id)
    if lacking:
        return f"no worker offers {', '.join(lacking)}: start one with `amends tasks worker MODULE:AGENTS`"
    if doubtful:
        return f"a worker verifies {', '.join(doubtful)} before anything is repeated"
    return "a worker goes on with the task"


def json_or_text(text: str) -> object:
    """Decode JSON; anything else is taken as text."""
    import msgspec

    try:
        return msgspec.json.decode(text, type=object)
    except msgspec.DecodeError:
        return text
