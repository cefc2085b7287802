"""Failures that are rarer than one killed process: most servers gone, everything gone at once, a clock that is wrong."""

from __future__ import annotations

import asyncio

from amends import stores
from amends.arcp.runtime.ledger import Ledger
from amends.arcp.runtime.limits import Limits
from tests.arcp.raw import Raw
from tests.cluster.customer import Customer
from tests.cluster.machines import RuntimeProcess, balancer, started
from tests.stores.servers import NatsCluster

KEYED = {"input": {"key": "k", "steps": 1, "pause": 0.0}, "idempotency_key": "k"}


async def session(nodes):
    raw = Raw(await balancer(nodes)())
    welcome = await raw.hello()
    assert welcome["type"] == "session.welcome", welcome
    return raw


async def test_two_of_three_servers_gone(machines, tmp_path):
    """Nothing is accepted, and that is said; with one of them back it goes on, and what was accepted is there."""
    servers = NatsCluster(tmp_path)
    servers.start()
    machines.callback(servers.stop)
    url = servers.url("most")
    # Servers that have just met take their time to elect, and only one of the nodes is to have little of it.
    patient, hasty = [
        RuntimeProcess(one, "--repeatable", lease=2.0)
        for one in (url, url.replace("timeout=20", "timeout=3"))
    ]
    patient.complains = hasty.complains = True
    await asyncio.to_thread(started, machines, patient)
    raw = await session([patient])
    first = await raw.run("steps", **KEYED)
    await raw.close()
    await asyncio.to_thread(started, machines, hasty)
    raw = await session([hasty])
    for server in servers.nodes[:2]:
        server.kill()
    answer = await raw.submit("steps", {"key": "x", "steps": 1, "pause": 0.0}, idempotency_key="x")
    assert answer["payload"]["code"] == "INTERNAL_ERROR"
    assert answer["payload"]["retryable"] is True
    await raw.close()
    await asyncio.to_thread(servers.nodes[0].start)
    customer = Customer(balancer([hasty]), "c", at_once=2)
    going = asyncio.ensure_future(customer.go())
    async with asyncio.timeout(100):
        while not customer.ends:
            await asyncio.sleep(0.05)
    customer.more = False
    await asyncio.wait_for(going, 100)
    assert customer.wrong == []
    raw = await session([patient])
    again = await raw.run("steps", **KEYED)
    assert (again["job_id"], again["payload"]["result"]) == (first["job_id"], "k")
    await raw.close()


async def test_everything_killed_at_once(machines, tmp_path):
    """Three servers and two nodes: what was accepted is there when they are back, under its key, and runs to its end."""
    servers = NatsCluster(tmp_path / "servers")
    servers.start()
    machines.callback(servers.stop)
    nodes = [RuntimeProcess(servers.url("all"), "--repeatable", lease=1.5) for _ in range(2)]
    await asyncio.to_thread(started, machines, *nodes)
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
    await asyncio.to_thread(started, machines, *nodes)
    raw = await session(nodes)
    again = await raw.run("steps", **KEYED)
    assert (again["job_id"], again["payload"]["result"]) == (first["job_id"], "k")
    assert (await raw.submit("patient", given, idempotency_key="p"))["payload"]["job_id"] == running
    end = await raw.end(running, 40)
    assert end["type"] == "job.result"
    assert (tmp_path / "done").read_text() == f"{end['payload']['result']}\n"
    await raw.close()


async def test_clocks_that_are_wrong(machines, nats_url, tmp_path):
    """One node an hour ahead, one behind: both are alive to the others, and a dead one's job is taken over in its time."""
    agents = ("steps=tests.cluster.wrong_clock:steps", "patient=tests.cluster.wrong_clock:patient")
    ahead, behind = [
        RuntimeProcess(nats_url, "--repeatable", agents=agents, lease=1.5, worker=True, TESTS_CLOCK_WRONG=by)
        for by in ("3600", "-3600")
    ]
    front = RuntimeProcess(nats_url, agents=(), lease=1.5)
    await asyncio.to_thread(started, machines, front, ahead, behind)
    customer = Customer(balancer([front]), "c", at_once=4, pause=0.0)
    going = asyncio.ensure_future(customer.go())
    async with await stores.open(nats_url) as store:
        async with asyncio.timeout(100):
            while len(await ended_by(store, customer)) < 2:
                await asyncio.sleep(0.1)
        customer.more = False
        await asyncio.wait_for(going, 100)
        await customer.compare(Ledger(store, "test", Limits()))
        assert customer.wrong == []
        assert customer.restarted == 0, "nobody was taken for dead"
        raw = await session([front])
        given = {"go": str(tmp_path / "go"), "done": str(tmp_path / "done")}
        job = (await raw.submit("patient", given))["payload"]["job_id"]
        await raw.until(lambda m: m["type"] == "job.event" and m["job_id"] == job)
        holder = raw.seen[-1]["payload"]["body"]["message"].removeprefix("begun by ")
        dead = next(node for node in (ahead, behind) if str(node.process.pid) == holder)
        dead.kill()
        (tmp_path / "go").touch()
        end = await raw.end(job, 40)
        assert end["type"] == "job.result"
        assert str(end["payload"]["result"]) != holder
        await raw.close()


async def ended_by(store, customer):
    """The nodes that have ended its jobs."""
    ledger = Ledger(store, "test", Limits())
    return {(await ledger.tail(job))[1].node for job in list(customer.ends)}
