"""A backup of a cluster in use, and a cluster restored from it."""

from __future__ import annotations

import asyncio

from tests.arcp.raw import Raw
from tests.cluster.load_client import LoadClient
from tests.cluster.machines import RuntimeProcess, balancer, start_all
from tests.cluster.snapshots import copy_streams
from tests.stores.servers import NatsServer

TABLES_FIRST = (("table",), ("logs", "log"), ("queue", "state"))


async def test_snapshots_taken_while_everything_runs(machines, tmp_path):
    """With tables copied before logs, every job accepted before exists under its key and ends."""
    old, new = [NatsServer(tmp_path / name) for name in ("old", "new")]
    for server in (old, new):
        server.start()
        machines.callback(server.stop)
    node = RuntimeProcess(f"{old.url}/kept", "--repeatable", lease=1.0)
    await asyncio.to_thread(start_all, machines, node)
    client = LoadClient(balancer([node]), "c", at_once=6, pause=0.02)
    going = asyncio.ensure_future(client.go())
    async with asyncio.timeout(100):
        while len(client.ends) < 12:
            await asyncio.sleep(0.05)
    accepted = dict(client.jobs)
    await copy_streams(old.url, new.url, "kept", TABLES_FIRST)
    going.cancel()
    await asyncio.wait([going])
    node.kill()

    node = RuntimeProcess(f"{new.url}/kept", "--repeatable", lease=1.0)
    await asyncio.to_thread(start_all, machines, node)
    raw = Raw(await balancer([node])())
    await raw.hello()
    for key, job in accepted.items():
        work = {"key": key, "steps": 3, "pause": 0.02}
        answer = await raw.submit("steps", work, idempotency_key=key)
        assert answer["payload"]["job_id"] == job
        end = await raw.end(job, 100)
        assert end["payload"]["result"] == key
    assert (await raw.run("steps", {"key": "n", "steps": 1, "pause": 0.0}))["payload"]["result"] == "n"
    await raw.close()
