"""Agent tasks on three NATS servers: servers, submitters and workers are killed, one at a time."""

from __future__ import annotations

import asyncio
import json
import random
import subprocess
import sys
import time

import pytest

from amends.stores import StoreUnavailableError
from amends.tasks import Orchestrator
from tests.cluster.machines import ROOT
from tests.stores.servers import NatsCluster
from tests.tasks.chaos import POLICY, Ledger
from tests.tasks.test_chaos import check_outcomes, ended_tasks

LEASE = 6.0
"""Longer than the election of a leader, and than a busy machine suspends a process."""


class Role:
    """A process of the storm, which is restarted with the same arguments after a kill."""

    def __init__(self, *arguments):
        self._arguments = arguments
        self.process = None

    def start(self):
        command = [sys.executable, "-m", "tests.tasks.chaos", *self._arguments]
        self.process = subprocess.Popen(
            command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    def kill(self):
        self.process.kill()
        self.process.wait()

    stop = kill


async def storm(machines, directory, *, count, workers, every, kills):
    """Run tasks while processes are killed, then wait for their ends; returns their outcomes."""
    servers = NatsCluster(directory)
    servers.start()
    machines.callback(servers.stop)
    url, path = servers.url("tasks"), f"{directory}/ledger.db"
    ledger, dice = Ledger(path, shared=False), random.Random(11)
    machines.callback(ledger.close)
    submitter = Role("submit", url, "0", str(count))
    crew = [Role(path, url, str(LEASE)) for _ in range(workers)]
    for role in (submitter, *crew):
        role.start()
        machines.callback(role.stop)
    for number in range(kills):
        await asyncio.sleep(every * (0.5 + dice.random()))
        # Each kind in turn: a server, the submitter, a worker.
        victim = (dice.choice(servers.nodes), submitter, dice.choice(crew))[number % 3]
        await asyncio.to_thread(victim.kill)
        await asyncio.sleep(every / 4)
        await asyncio.to_thread(victim.start)
    ids = {f"task-{number}" for number in range(count)}
    async with Orchestrator(store=url, worker=False, policy=POLICY, lease=LEASE, keep=None) as client:
        started = time.monotonic()
        while (left := ids - await ended_or_none(client, ledger)) and time.monotonic() - started < 240:
            await asyncio.sleep(0.2)
        assert not left, f"no end after four minutes: {sorted(left)[:10]}"
        assert await asyncio.to_thread(submitter.process.wait, 60) == 0, "all submissions are answered"
        outcomes = await check_outcomes(client, ledger, sorted(ids))
    return dict(outcomes) | {"kills": kills, "settled_in": round(time.monotonic() - started, 1)}


async def ended_or_none(client, ledger):
    """Return the ids of the tasks that have ended; none while a server is unavailable."""
    try:
        return await ended_tasks(client, ledger)
    except StoreUnavailableError:
        return set()


async def test_killed_servers_submitters_and_workers(machines, tmp_path):
    """After one kill of each, every task has one end, no finished task runs again, and undo is keyed."""
    seen = await storm(machines, tmp_path, count=18, workers=2, every=0.6, kills=3)
    assert seen["completed"] + seen["failed"] == 18
    assert seen["failed"] >= 2  # the plans with a doomed step


@pytest.mark.soak
async def test_a_long_storm_of_tasks(machines, tmp_path):
    """The same with hundreds of tasks and dozens of kills."""
    seen = await storm(machines, tmp_path, count=600, workers=4, every=1.5, kills=45)
    print(json.dumps(seen))
    assert seen["completed"] + seen["failed"] == 600
    assert seen["failed"] >= 75  # every eighth task is a plan with a doomed step
    assert seen["taken over"] >= 10
