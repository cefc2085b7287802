"""An orchestrator in memory for remote agents, and a retry policy with short waits."""

from contextlib import asynccontextmanager

from amends.tasks import Orchestrator

SOON = {"maxAttempts": 3, "initialDelay": 10}


@asynccontextmanager
async def orchestrated(*agents, **options):
    async with Orchestrator(agents, grace=0, **options) as orchestrator:
        yield orchestrator
