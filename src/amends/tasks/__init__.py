"""
Agents and their orchestrator: tasks by the agent error contract, kept in a log that survives crashes.

    from amends.tasks import Agent, Orchestrator

    cook = Agent("cooking-agent")

    @cook.capability(read_only=True)
    async def find_recipe(dish: str) -> dict: ...

    async with Orchestrator([cook], store="sqlite:///tasks.db") as orchestrator:
        response = await orchestrator.run("find_recipe", "ratatouille")

Remote agents are in `amends.tasks.remote`, OpenTelemetry in `amends.tasks.otel`. See docs/tasks.md.
"""

from __future__ import annotations

from amends.tasks.agent import Agent
from amends.tasks.capability import Capability
from amends.tasks.context import Context
from amends.tasks.documents import Metadata, Request, Response, Status
from amends.tasks.events import TaskEvent, add_hook, remove_hook, set_hooks
from amends.tasks.fallbacks import Fallback, FallbackError, parse_fallbacks, read_fallbacks
from amends.tasks.journal import TaskNotFoundError
from amends.tasks.message_catalogue import Catalogue
from amends.tasks.orchestrator import Handle, Orchestrator
from amends.tasks.plan import Step, fan_out, graph, result_of, sequence
from amends.tasks.wait import WaitTimeoutError

__all__ = [
    "Agent",
    "Capability",
    "Catalogue",
    "Context",
    "Fallback",
    "FallbackError",
    "Handle",
    "Metadata",
    "Orchestrator",
    "Request",
    "Response",
    "Status",
    "Step",
    "TaskEvent",
    "TaskNotFoundError",
    "WaitTimeoutError",
    "add_hook",
    "fan_out",
    "graph",
    "parse_fallbacks",
    "read_fallbacks",
    "remove_hook",
    "result_of",
    "sequence",
    "set_hooks",
]
