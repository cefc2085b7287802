"""Workers that are lost at a given point, and what their logs say then."""

import asyncio
from contextlib import asynccontextmanager

from amends.tasks import Agent, entries
from amends.tasks.journal import Journal
from amends.tasks.registry import House
from amends.tasks.run import Run
from amends.tasks.task_reader import log_name, read

SHORT = 0.4
"""Seconds of a lease in these tests."""


async def records(orchestrator, id):
    found = []
    for entry in await orchestrator.store.log(log_name("tasks", id)).read(limit=1000):
        found += entries.decode(entry.value)
    return found


@asynccontextmanager
async def paused_worker(store, agents, id):
    """A worker that has taken the task, and forgets to say that it lives."""
    queue = store.queue("tasks", lease=SHORT)
    lease = await queue.take(wait=10)
    state, last = await read(store, "tasks", id)
    house = House("paused")
    house.register(agents)
    run = Run(house, Journal(store, "tasks", state, last, lease))
    task = asyncio.ensure_future(run.go(takeover=False))
    yield run, task
    if not task.done():
        task.cancel()
    await asyncio.wait([task])


def lonely(steps_run, **promises):
    agent = Agent("worker")

    @agent.capability(**promises)
    async def work(payload, ctx):
        steps_run.append((ctx.step, ctx.attempt, ctx.key))
        return ctx.step

    return agent


async def crash(orchestrator, clock, id, *more):
    """A worker took the message, perhaps wrote something, and died."""
    lease = await orchestrator.store.queue("tasks", lease=30).take()
    assert lease is not None
    if more:
        _, last = await read(orchestrator.store, "tasks", id)
        await orchestrator.store.log(log_name("tasks", id)).append(entries.encode(more), last=last)
    clock.pass_(31)
