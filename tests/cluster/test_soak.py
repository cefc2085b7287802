"""Long tests: a storm of several minutes, and a week of traffic in accelerated time."""

from __future__ import annotations

import asyncio
import json
import os
import random
import time
from pathlib import Path

import pytest

from amends import stores
from amends.arcp import Limits, Runtime
from amends.stores.nats import table
from tests.arcp.agents import register
from tests.arcp.raw import TOKENS, connected
from tests.cluster.test_cluster import storm
from tests.stores.servers import NatsServer

pytestmark = pytest.mark.soak


async def test_a_long_storm(machines, tmp_path):
    """Three minutes of load; every three seconds a process is killed, or a node cut off until its jobs are taken over."""
    seen = await storm(machines, tmp_path, seconds=180.0, every=3.0, count=6, seed=7, cut=True)
    print(json.dumps(seen))
    assert seen["wrong"] == []
    assert seen["resumed"] > 0
    assert seen["restarted"] > 0
    assert min(seen["kills"].values()) >= 5


HOUR = 1.0
"""Seconds per simulated hour; all time limits are shortened by the same factor."""


def resident(pid):
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


async def week(server, url, hours, seed=0):
    """Run traffic of so many hours on two nodes; returns twelve samples of the resources in use."""
    limits = Limits(
        finished_for=HOUR,
        key_window=2 * HOUR,
        resume_window=HOUR,
        node_lease=HOUR,
        drain=0.0,
        cancel_grace=0.1,
    )
    dice = random.Random(seed)
    done = 0

    async def visit(runtime):
        """Run a client session with random jobs and a random way to close it."""
        nonlocal done
        raw = await connected(runtime)
        for number in range(dice.randint(1, 6)):
            if dice.random() < 0.2:
                job = (await raw.submit("waiting"))["payload"]["job_id"]
                await raw.until(lambda m, job=job: m["type"] == "job.event" and m.get("job_id") == job)
                await raw.send("job.cancel", job_id=job)
                await raw.end(job)
            else:
                agent, input = dice.choice([("echo", number), ("counting", {"count": 20})])
                key = {"idempotency_key": f"{raw.session_id}-{number}"} if dice.random() < 0.5 else {}
                await raw.run(agent, input, **key)
            done += 1
        if dice.random() < 0.5:
            await raw.send("session.bye", {"reason": "done"})
        await raw.close()

    async def visitors(runtimes, until):
        while time.monotonic() < until:
            await visit(dice.choice(runtimes))

    samples = []
    nodes = [register(Runtime(url, tokens=TOKENS, limits=limits)) for _ in range(2)]
    async with nodes[0], nodes[1], await stores.open(url) as observer:
        end = time.monotonic() + hours * HOUR
        clients = [asyncio.ensure_future(visitors(nodes, end)) for _ in range(4)]
        for _ in range(12):
            await asyncio.sleep(hours * HOUR / 12)
            info = await observer._streams.connection.api("INFO")
            samples.append(
                {
                    "jobs": done,
                    "streams": info["streams"],
                    "stored": info["storage"],
                    "disk": sum(f.stat().st_blocks * 512 for f in server.directory.rglob("*") if f.is_file()),
                    "server": resident(server.process.pid),
                    "nodes": resident(os.getpid()),
                }
            )
        await asyncio.gather(*clients)
        end = time.monotonic() + 60
        while (left := _left(await observer.names())) and time.monotonic() < end:
            await asyncio.sleep(0.2)
        assert left == [], "logs of ended jobs and sessions are deleted"
    return samples


def _left(names):
    return [name for name in names["logs"] if name.startswith(("arcp.job/", "arcp.session/"))]


async def test_a_week_in_minutes(machines, tmp_path, monkeypatch):
    """Disk and memory depend on an hour of traffic, not on the week, because streams are trimmed."""
    monkeypatch.setattr(table, "_DELETION_KEPT", "2s")
    server = NatsServer(tmp_path / "nats")
    server.start()
    machines.callback(server.stop)
    samples = await week(server, f"{server.url}/week?dedupe_window=1", 168)
    print(json.dumps(samples, indent=1))
    early, late = samples[2:6], samples[8:]
    for what in ("streams", "stored", "disk", "server", "nodes"):
        before, after = max(s[what] for s in early), max(s[what] for s in late)
        slack = 16 * 1024 * 1024 if what != "streams" else 0
        assert after <= before * 1.3 + slack, (what, before, after)
