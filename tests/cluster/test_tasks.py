"""Agent tasks on a NATS server: delays kept by the queue, late acknowledgements, and workers that are cut off."""

from __future__ import annotations

import asyncio
import time

from amends import stores
from amends.errors.task import McpRateLimitedError
from amends.tasks import Agent, Orchestrator
from amends.tasks.entries import Started
from amends.tasks.journal import Journal
from tests.cluster.machines import Wire


async def test_a_delayed_retry_waits_in_the_queue(nats_url):
    """No worker holds the task while it waits: the worker that failed may stop, and another makes the next try in time."""
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
        task
        async for task in store.queue("tasks").messages()
        if id.encode() in task.value and task.due_in > 0
    ]


async def test_a_late_acknowledgement_begins_nothing(nats_server, nats_url, monkeypatch):
    """
    A worker gets the acknowledgement of its "started" record only after its lease has expired.

    Another worker has verified and done the step in the meantime, so the late worker does not start it.
    """
    deeds = []

    def made(name):
        agent = Agent("agent")

        @agent.capability(verify=lambda payload, ctx: bool(deeds) and "found")
        async def pay(payload, ctx):
            deeds.append(name)
            return name

        return agent

    async with Wire(nats_server.port) as wire:
        behind = nats_url.replace(str(nats_server.port), str(wire.port))
        late = Orchestrator([made("late")], store=f"{behind}?timeout=30", lease=3.0, grace=0)
        write, going_on = Journal.write, asyncio.Event()

        async def slowly(self, records, **options):
            done = await write(self, records, **options)
            if self._store is late.store and isinstance(records[0], Started):
                wire.cut()
                going_on.set()
                async with asyncio.timeout(100):
                    while not deeds:
                        await asyncio.sleep(0.02)
            return done

        monkeypatch.setattr(Journal, "write", slowly)
        async with Orchestrator(store=nats_url, worker=False, grace=0) as client:
            await late.start()
            handle = await client.submit("pay", agent="agent")
            await asyncio.wait_for(going_on.wait(), 100)
            async with Orchestrator([made("other")], store=nats_url, lease=3.0, grace=0):
                response = await asyncio.wait_for(handle.wait(), 100)
            assert response.result == "other"
            # Enough time for the late worker to start the step, if it did not check its lease.
            await asyncio.sleep(0.3)
            wire.restore()
            await late.close()
    assert deeds == ["other"]


async def test_a_worker_cut_off_stops_what_must_not_happen_twice(nats_server, nats_url):
    """When its lease expires while it is cut off, it stops its handler before another worker verifies and runs it."""
    deeds, started = [], asyncio.Event()

    def made(name, seconds):
        agent = Agent("agent")

        @agent.capability(verify=lambda payload, ctx: "late" in deeds and "found")
        async def pay(payload, ctx):
            started.set()
            try:
                await asyncio.sleep(seconds)
            except asyncio.CancelledError:
                deeds.append("stopped")
                raise
            deeds.append(name)
            return name

        return agent

    async with Wire(nats_server.port) as wire:
        behind = nats_url.replace(str(nats_server.port), str(wire.port))
        late = Orchestrator([made("late", 60.0)], store=f"{behind}?timeout=30", lease=3.0, grace=0)
        async with Orchestrator(store=nats_url, worker=False, grace=0) as client:
            await late.start()
            handle = await client.submit("pay", agent="agent")
            await asyncio.wait_for(started.wait(), 100)
            wire.cut()
            async with Orchestrator([made("other", 0.0)], store=nats_url, lease=3.0, grace=0):
                response = await asyncio.wait_for(handle.wait(), 100)
            wire.restore()
            await late.close()
    assert response.result == "other"
    assert deeds == ["stopped", "other"]


async def test_an_extended_lease_lasts(nats_url):
    """A task may run longer than its lease, as long as the store answers."""
    agent = Agent("agent")

    @agent.capability
    async def slow(payload, ctx):
        await asyncio.sleep(4.5)
        return "done"

    async with Orchestrator([agent], store=nats_url, lease=3.0, grace=0) as orchestrator:
        response = await asyncio.wait_for(orchestrator.run("slow", agent="agent"), 100)
    assert response.result == "done"
