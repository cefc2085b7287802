"""Three NATS servers and four runtime nodes as processes, any of which is killed or cut off."""

from __future__ import annotations

import asyncio
import json
import random
import time
from contextlib import AsyncExitStack, asynccontextmanager

from amends import stores
from amends.arcp.runtime.ledger import Ledger
from amends.arcp.runtime.limits import Limits
from amends.arcp.runtime.status import read_status
from tests.arcp.raw import Raw
from tests.cluster.load_client import LoadClient
from tests.cluster.machines import RuntimeProcess, Wire, balancer, start_all
from tests.stores.servers import NatsCluster, NatsServer

_LEASE = 3.0


@asynccontextmanager
async def behind_wires(servers, name):
    """Proxies in front of a cluster's servers that can be cut, and the store's URL through them."""
    async with AsyncExitStack() as stack:
        wires = [await stack.enter_async_context(Wire(node.port)) for node in servers.nodes]
        hosts = ",".join(f"127.0.0.1:{wire.port}" for wire in wires)
        yield wires, f"nats://{hosts}/{name}?replicas=3&timeout=20"


async def storm(machines, directory, *, seconds, every, count, seed=0, nodes=4, cut=False):
    """Put load on a cluster while one process after another is killed or cut off; returns what was observed."""
    servers = NatsCluster(directory)
    servers.start()
    machines.callback(servers.stop)
    async with behind_wires(servers, "storm") as (wires, detour):
        urls = [servers.url("storm")] * (nodes - cut) + [detour] * cut
        runtimes = [RuntimeProcess(url, "--repeatable", "--drain", "0", lease=_LEASE) for url in urls]
        await asyncio.to_thread(start_all, machines, *runtimes)
        clients = [LoadClient(balancer(runtimes, seed + n), f"c{n}") for n in range(count)]
        going = [asyncio.ensure_future(client.go()) for client in clients]
        troubles = {"runtime": runtimes, "nats": servers.nodes} | ({"cut": [wires]} if cut else {})
        counts = await trouble(troubles, seconds, every, random.Random(seed))
        return await settled(servers, clients, going) | {"kills": counts}


async def trouble(troubles, seconds, every, dice):
    """Disturb one process at a time, each kind in turn and at least once: three servers tolerate the loss of one."""
    counts = dict.fromkeys(troubles, 0)
    end = time.monotonic() + seconds
    while not all(counts.values()) or time.monotonic() + every < end:
        await asyncio.sleep(every)
        kind = min(counts, key=counts.__getitem__)
        counts[kind] += 1
        victim = dice.choice(troubles[kind])
        if kind == "cut":
            for wire in victim:
                wire.cut()
            # Long enough for other nodes to take its jobs over while it still runs them.
            await asyncio.sleep(_LEASE * 1.5)
            for wire in victim:
                wire.restore()
        else:
            await asyncio.to_thread(victim.kill)
            await asyncio.sleep(every / 4)
            await asyncio.to_thread(victim.start)
    return counts


async def settled(servers, clients, going):
    """Wait until all jobs have ended; then compare the received events with the logs."""
    for client in clients:
        client.more = False
    started = time.monotonic()
    done, late = await asyncio.wait(going, timeout=120)
    took = round(time.monotonic() - started, 1)
    for task in late:
        task.cancel()
    wrong = [repr(task.exception()) for task in done if task.exception()]
    wrong += [
        f"without an end after two minutes: {client.open or client.waiting}"
        for client in clients
        if client.open or client.waiting
    ]
    async with await stores.open(servers.url("storm")) as store:
        ledger = Ledger(store, "test", Limits())
        for client in clients:
            await client.compare(ledger)
            wrong += client.wrong
        status = await read_status(store)
    return {
        "jobs": sum(len(client.ends) for client in clients),
        "events": sum(client.last for client in clients),
        "resumed": sum(client.resumed for client in clients),
        "restarted": sum(client.restarted for client in clients),
        "settled_in": took,
        "wrong": wrong,
        "errors": status.errors,
    }


async def test_any_process_may_be_killed(machines, tmp_path):
    """No job is lost, no event is lost or doubled for clients that resume, and each job ends once; see also the soak."""
    seen = await storm(machines, tmp_path, seconds=0.0, every=1.0, count=2)
    assert seen["wrong"] == []
    assert seen["kills"] == {"runtime": 1, "nats": 1}
    assert seen["jobs"] > 0


async def test_a_node_cut_off_finishes_nothing_it_no_longer_owns(machines, tmp_path):
    """It continues to work while it is cut off. After that its work is discarded, and it drops the job."""
    server = NatsServer(tmp_path / "nats")
    server.start()
    machines.callback(server.stop)
    go, done = tmp_path / "go", tmp_path / "done"
    async with Wire(server.port) as wire:
        straight = f"{server.url}/cut"
        lonely = RuntimeProcess(f"nats://127.0.0.1:{wire.port}/cut?timeout=2", "--repeatable", lease=1.5)
        await asyncio.to_thread(start_all, machines, lonely)
        connect = balancer([lonely])
        raw = Raw(await connect())
        await raw.hello()
        given = {"go": str(go), "done": str(done)}
        job = (await raw.submit("patient", given, idempotency_key="k"))["payload"]["job_id"]
        await raw.until("job.event")
        first = raw.seen[-1]["payload"]["body"]["message"]
        wire.cut()
        # They take the job over soon, and have a long lease so that they stay alive on a busy machine.
        others = [RuntimeProcess(straight, "--repeatable", lease=6.0) for _ in range(2)]
        await asyncio.to_thread(start_all, machines, *others)
        watcher = Raw(await balancer(others)())
        await watcher.hello(features=[])
        answer = await watcher.submit("patient", given, idempotency_key="k")
        assert answer["payload"]["job_id"] == job
        # The job may have been restarted before the subscription; its log shows it in any case.
        async with await stores.open(straight) as store, asyncio.timeout(100):
            while (second := await _last_start(store, job)) == first:
                await asyncio.sleep(0.05)
        go.touch()
        end = await watcher.end(job, 100)
        # Both nodes have done the work, one of them while cut off. Now restore the connection.
        async with asyncio.timeout(100):
            while not done.exists() or len(done.read_text().splitlines()) < 2:
                await asyncio.sleep(0.05)
        wire.restore()
        assert f"started by {end['payload']['result']}" == second
        # The node is alive again and has no jobs.
        async with await stores.open(straight) as store, asyncio.timeout(100):
            while True:
                nodes = (await read_status(store)).nodes
                if len(nodes) == 3 and not any(node.holds or node.running for node in nodes):
                    break
                await asyncio.sleep(0.1)
            entries = [entry async for _, entry in Ledger(store, "test", Limits()).history(job)]
        assert [entry.kind for entry in entries].count("result") == 1
        assert len({entry.node for entry in entries if entry.kind == "event"}) == 2
        assert entries[-1].kind == "result"
        assert entries[-1].node != entries[1].node
        await watcher.close()
        await raw.close()


async def _last_start(store, job):
    """Return the first message of a job's last run."""
    entries = [
        entry async for _, entry in Ledger(store, "test", Limits()).history(job) if entry.kind == "event"
    ]
    messages = [json.loads(bytes(entry.payload))["body"].get("message", "") for entry in entries]
    return [message for message in messages if message.startswith("started by")][-1]
