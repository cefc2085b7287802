"""Failures beyond one killed process: most servers down, everything killed at once, wrong clocks."""

from __future__ import annotations

import asyncio

from amends import stores
from amends.arcp.runtime.ledger import Ledger
from amends.arcp.runtime.limits import Limits
from tests.arcp.raw import Raw
from tests.cluster.load_client import LoadClient
from tests.cluster.machines import RuntimeProcess, balancer, start_all
from tests.stores.servers import NatsCluster

KEYED = {"input": {"key": "k", "steps": 1, "pause": 0.0}, "idempotency_key": "k"}


async def session(nodes):
    raw = Raw(await balancer(nodes)())
    welcome = await raw.hello()
    assert welcome["type"] == "session.welcome", welcome
    return raw


async def test_two_of_three_servers_gone(machines, tmp_path):
    """Submissions are refused with an error; with one server back they succeed, and earlier jobs still exist."""
    servers = NatsCluster(tmp_path)
    servers.start()
    machines.callback(servers.stop)
    url = servers.url("most")
    # A new cluster takes its time to elect leaders, so only one of the nodes has a short timeout.
    patient, hasty = [
        RuntimeProcess(one, "--repeatable", lease=2.0)
        for one in (url, url.replace("timeout=20", "timeout=3"))
    ]
    patient.complains = hasty.complains = True
    await asyncio.to_thread(start_all, machines, patient)
    raw = await session([patient])
    first = await raw.run("steps", **KEYED)
    await raw.close()
    await asyncio.to_thread(start_all, machines, hasty)
    raw = await session([hasty])
    for server in servers.nodes[:2]:
        server.kill()
    answer = await raw.submit("steps", {"key": "x", "steps": 1, "pause": 0.0}, idempotency_key="x")
    assert answer["payload"]["code"] == "INTERNAL_ERROR"
    assert answer["payload"]["retryable"] is True
    await raw.close()
    await asyncio.to_thread(servers.nodes[0].start)
    client = LoadClient(balancer([hasty]), "c", at_once=2)
    going = asyncio.ensure_future(client.go())
    async with asyncio.timeout(100):
        while not client.ends:
            await asyncio.sleep(0.05)
    client.more = False
    await asyncio.wait_for(going, 100)
    assert client.wrong == []
    raw = await session([patient])
    again = await raw.run("steps", **KEYED)
    assert (again["job_id"], again["payload"]["result"]) == (first["job_id"], "k")
    await raw.close()


async def test_everything_killed_at_once(machines, tmp_path):
    """Three servers and two nodes: accepted jobs exist under their keys after the restart, and run to their end."""
    servers = NatsCluster(tmp_path / "servers")
    servers.start()
    machines.callback(servers.stop)
    nodes = [RuntimeProcess(servers.url("all"), "--repeatable", lease=1.5) for _ in range(2)]
    await asyncio.to_thread(start_all, machines, *nodes)
    raw = await session(nodes)
    first = await raw.run("steps", **KEYED)
    given = {"go": str(tmp_path / "go"), "done": str(tmp_path / "done")}
    running = (await raw.submit("patient", given, idempotency_key="p"))["payload"]["job_id"]
    await raw.until(lambda m: m["type"] == "job.event" and m["job_id"] == running)
    for process in (*nodes, *servers.nodes):
        process.process.kill()
    for process in nodes:
        process.kill()
    for server in servers.nodes:
        server.process.wait()
    await raw.close()
    (tmp_path / "go").touch()
    await asyncio.to_thread(servers.start)
    await asyncio.to_thread(start_all, machines, *nodes)
    raw = await session(nodes)
    again = await raw.run("steps", **KEYED)
    assert (again["job_id"], again["payload"]["result"]) == (first["job_id"], "k")
    assert (await raw.submit("patient", given, idempotency_key="p"))["payload"]["job_id"] == running
    end = await raw.end(running, 100)
    assert end["type"] == "job.result"
    assert (tmp_path / "done").read_text() == f"{end['payload']['result']}\n"
    await raw.close()


async def test_clocks_that_are_wrong(machines, nats_url, tmp_path):
    """With one node an hour ahead and one behind, both are considered alive, and a dead node's job is taken over."""
    agents = ("steps=tests.cluster.wrong_clock:steps", "patient=tests.cluster.wrong_clock:patient")
    ahead, behind = [
        RuntimeProcess(nats_url, "--repeatable", agents=agents, lease=4.0, worker=True, TESTS_CLOCK_WRONG=by)
        for by in ("3600", "-3600")
    ]
    front = RuntimeProcess(nats_url, agents=(), lease=4.0)
    await asyncio.to_thread(start_all, machines, front, ahead, behind)
    client = LoadClient(balancer([front]), "c", at_once=4, pause=0.0)
    going = asyncio.ensure_future(client.go())
    async with await stores.open(nats_url) as store:
        async with asyncio.timeout(100):
            while len(await ended_by(store, client)) < 2:
                await asyncio.sleep(0.1)
        client.more = False
        await asyncio.wait_for(going, 100)
        await client.compare(Ledger(store, "test", Limits()))
        assert client.wrong == []
        assert client.restarted == 0, "no live node was considered dead"
        raw = await session([front])
        given = {"go": str(tmp_path / "go"), "done": str(tmp_path / "done")}
        job = (await raw.submit("patient", given))["payload"]["job_id"]
        await raw.until(lambda m: m["type"] == "job.event" and m["job_id"] == job)
        holder = raw.seen[-1]["payload"]["body"]["message"].removeprefix("started by ")
        dead = next(node for node in (ahead, behind) if str(node.process.pid) == holder)
        dead.kill()
        (tmp_path / "go").touch()
        end = await raw.end(job, 100)
        assert end["type"] == "job.result"
        assert str(end["payload"]["result"]) != holder
        await raw.close()


async def ended_by(store, client):
    """Return the nodes that have ended the client's jobs."""
    ledger = Ledger(store, "test", Limits())
    return {(await ledger.tail(job))[1].node for job in list(client.ends)}
