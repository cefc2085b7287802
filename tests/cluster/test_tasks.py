"""Agent tasks on the same cluster: submitted here, worked on there, delays kept by the queue, a dead worker's task taken over."""

from __future__ import annotations

import asyncio
import time

from amends import stores
from amends.errors.task import McpRateLimitedError
from amends.tasks import Agent, Orchestrator


async def test_a_delayed_retry_is_the_queues(nats_url):
    """While it waits nobody holds it: the worker that failed may go, and another one makes the next try in its time."""
    tries = []

    def made(name):
        agent = Agent("agent")

        @agent.capability(read_only=True)
        async def work(payload, ctx):
            tries.append((name, time.monotonic()))
            if len(tries) == 1:
                raise McpRateLimitedError(retry_after=1)
            return name

        return agent

    client = Orchestrator(store=nats_url, worker=False, grace=0)
    first = Orchestrator([made("first")], store=nats_url, grace=0)
    async with client, await stores.open(nats_url) as store:
        async with first:
            handle = await client.submit("work", agent="agent")
            async with asyncio.timeout(100):
                while not await _delayed(store, handle.id):
                    await asyncio.sleep(0.02)
        async with Orchestrator([made("second")], store=nats_url, grace=0):
            response = await asyncio.wait_for(handle.wait(), 100)
    assert response.result == "second"
    assert [name for name, _ in tries] == ["first", "second"]
    assert tries[1][1] - tries[0][1] >= 0.99


async def _delayed(store, id):
    return [
        task async for task in store.queue("tasks").tasks() if id.encode() in task.value and task.due_in > 0
    ]
