"""Workers that pause or die at a given point, and the records of their tasks."""

import asyncio
from contextlib import asynccontextmanager

from amends.tasks import Agent, entries
from amends.tasks.journal import Journal, log_name, read_task
from amends.tasks.registry import Registry
from amends.tasks.run import Run

SHORT = 0.4
"""Seconds of a lease in these tests."""


async def records(orchestrator, id):
    """All records of a task's log."""
    found = []
    for entry in await orchestrator.store.log(log_name("tasks", id)).read(limit=1000):
        found += entries.decode(entry.value)
    return found


@asynccontextmanager
async def paused_worker(store, agents, id):
    """A worker that has taken the task and does not extend its lease."""
    queue = store.queue("tasks", lease=SHORT)
    lease = await queue.take(wait=10)
    found = await read_task(store, "tasks", id)
    registry = Registry("paused")
    registry.register(agents)
    run = Run(registry, Journal(store, "tasks", found, lease))
    task = asyncio.ensure_future(run.execute(takeover=False))
    yield run, task
    if not task.done():
        task.cancel()
    await asyncio.wait([task])


def recording_agent(calls, **options):
    """An agent whose only capability adds (step, attempt, key) to `calls`."""
    agent = Agent("worker")

    @agent.capability(**options)
    async def work(payload, ctx):
        calls.append((ctx.step_name, ctx.attempt, ctx.key))
        return ctx.step_name

    return agent


async def crash(orchestrator, clock, id, *more):
    """Let a worker take the message, write the given records, and die. The clock is advanced past its lease."""
    lease = await orchestrator.store.queue("tasks", lease=30).take()
    assert lease is not None
    if more:
        _, last, _ = await read_task(orchestrator.store, "tasks", id)
        await orchestrator.store.log(log_name("tasks", id)).append(entries.encode(more), last=last)
    clock.pass_(31)
