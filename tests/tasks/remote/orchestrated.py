"""An orchestrator in memory for agents elsewhere, and a retry policy that does not keep tests waiting."""

from contextlib import asynccontextmanager

from amends.tasks import Orchestrator

SOON = {"maxAttempts": 3, "initialDelay": 10}


@asynccontextmanager
async def orchestrated(*agents, **options):
    async with Orchestrator(agents, grace=0, **options) as orchestrator:
        yield orchestrator
