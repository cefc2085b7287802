"""Three NATS servers, four runtime nodes as processes, and what happens when any of them is killed or cut off."""

from __future__ import annotations

import asyncio
import json
import random
import time
from contextlib import AsyncExitStack, asynccontextmanager

from amends import stores
from amends.arcp.runtime.ledger import Ledger
from amends.arcp.runtime.limits import Limits
from amends.arcp.runtime.status import look
from tests.arcp.raw import Raw
from tests.cluster.customer import Customer
from tests.cluster.machines import RuntimeProcess, Wire, balancer, started
from tests.stores.servers import NatsCluster, NatsServer

_LEASE = 3.0


@asynccontextmanager
async def behind_wires(servers, name):
    """The same cluster by another way, one that can be cut."""
    async with AsyncExitStack() as stack:
        wires = [await stack.enter_async_context(Wire(node.port)) for node in servers.nodes]
        hosts = ",".join(f"127.0.0.1:{wire.port}" for wire in wires)
        yield wires, f"nats://{hosts}/{name}?replicas=3&timeout=20"


async def storm(machines, directory, *, seconds, every, customers, seed=0, nodes=4, cut=False):
    """Load on a cluster while one process after the other is killed, or cut off for a while; what was seen."""
    servers = NatsCluster(directory)
    servers.start()
    machines.callback(servers.stop)
    async with behind_wires(servers, "storm") as (wires, detour):
        urls = [servers.url("storm")] * (nodes - cut) + [detour] * cut
        runtimes = [RuntimeProcess(url, "--repeatable", "--drain", "0", lease=_LEASE) for url in urls]
        await asyncio.to_thread(started, machines, *runtimes)
        crowd = [Customer(balancer(runtimes, seed + n), f"c{n}") for n in range(customers)]
        going = [asyncio.ensure_future(customer.go()) for customer in crowd]
        troubles = {"runtime": runtimes, "nats": servers.nodes} | ({"cut": [wires]} if cut else {})
        counts = await trouble(troubles, seconds, every, random.Random(seed))
        return await settled(servers, crowd, going) | {"kills": counts}


async def trouble(troubles, seconds, every, dice):
    """One thing at a time, of each kind in turn and at least once: three servers bear the loss of one."""
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
            # Long enough for the others to take its jobs over, while it goes on with them.
            await asyncio.sleep(_LEASE * 1.5)
            for wire in victim:
                wire.mend()
        else:
            await asyncio.to_thread(victim.kill)
            await asyncio.sleep(every / 4)
            await asyncio.to_thread(victim.start)
    return counts


async def settled(servers, crowd, going):
    """Everything comes to its end; then what was heard is held against what was written."""
    for customer in crowd:
        customer.more = False
    begun = time.monotonic()
    done, late = await asyncio.wait(going, timeout=120)
    took = round(time.monotonic() - begun, 1)
    for task in late:
        task.cancel()
    wrong = [repr(task.exception()) for task in done if task.exception()]
    wrong += [
        f"without an end after two minutes: {customer.open or customer.waiting}"
        for customer in crowd
        if customer.open or customer.waiting
    ]
    async with await stores.open(servers.url("storm")) as store:
        ledger = Ledger(store, "test", Limits())
        for customer in crowd:
            await customer.compare(ledger)
            wrong += customer.wrong
        standing = await look(store)
    return {
        "jobs": sum(len(customer.ends) for customer in crowd),
        "events": sum(customer.last for customer in crowd),
        "resumed": sum(customer.resumed for customer in crowd),
        "restarted": sum(customer.restarted for customer in crowd),
        "settled_in": took,
        "wrong": wrong,
        "errors": standing.errors,
    }


async def test_any_process_may_be_killed(machines, tmp_path):
    """No accepted job lost, no event lost or doubled for who resumes, one end each; short, the long one is in soak."""
    seen = await storm(machines, tmp_path, seconds=0.0, every=1.0, customers=2)
    assert seen["wrong"] == []
    assert seen["kills"] == {"runtime": 1, "nats": 1}
    assert seen["jobs"] > 0


async def test_a_node_cut_off_finishes_nothing_it_no_longer_owns(machines, tmp_path):
    """It goes on working behind the cut; when it is back, what it did counts for nothing, and it knows."""
    server = NatsServer(tmp_path / "nats")
    server.start()
    machines.callback(server.stop)
    go, done = tmp_path / "go", tmp_path / "done"
    async with Wire(server.port) as wire:
        straight = f"{server.url}/cut"
        lonely = RuntimeProcess(f"nats://127.0.0.1:{wire.port}/cut?timeout=2", "--repeatable", lease=1.5)
        await asyncio.to_thread(started, machines, lonely)
        connect = balancer([lonely])
        raw = Raw(await connect())
        await raw.hello()
        given = {"go": str(go), "done": str(done)}
        job = (await raw.submit("patient", given, idempotency_key="k"))["payload"]["job_id"]
        await raw.until("job.event")
        first = raw.seen[-1]["payload"]["body"]["message"]
        wire.cut()
        # They see to it soon, and are not taken for dead themselves on a busy machine.
        others = [RuntimeProcess(straight, "--repeatable", lease=6.0) for _ in range(2)]
        await asyncio.to_thread(started, machines, *others)
        watcher = Raw(await balancer(others)())
        await watcher.hello(features=[])
        answer = await watcher.submit("patient", given, idempotency_key="k")
        assert answer["payload"]["job_id"] == job
        # It may have been begun again before anybody listened: its log says so in any case.
        async with await stores.open(straight) as store, asyncio.timeout(100):
            while (second := await _begun(store, job)) == first:
                await asyncio.sleep(0.05)
        go.touch()
        end = await watcher.end(job, 100)
        # Both did the work: one behind the cut. Only then it is back.
        async with asyncio.timeout(100):
            while not done.exists() or len(done.read_text().splitlines()) < 2:
                await asyncio.sleep(0.05)
        wire.mend()
        assert f"begun by {end['payload']['result']}" == second
        # It lives again, and holds nothing.
        async with await stores.open(straight) as store, asyncio.timeout(100):
            while True:
                nodes = (await look(store)).nodes
                if len(nodes) == 3 and not any(node.holds or node.running for node in nodes):
                    break
                await asyncio.sleep(0.1)
            marks = [mark async for _, mark in Ledger(store, "test", Limits()).history(job)]
        assert [mark.kind for mark in marks].count("result") == 1
        assert len({mark.node for mark in marks if mark.kind == "event"}) == 2
        assert marks[-1].kind == "result"
        assert marks[-1].node != marks[1].node
        await watcher.close()
        await raw.close()


async def _begun(store, job):
    """What the last run of a job has said of itself."""
    marks = [mark async for _, mark in Ledger(store, "test", Limits()).history(job) if mark.kind == "event"]
    said = [json.loads(bytes(mark.payload))["body"].get("message", "") for mark in marks]
    return [message for message in said if message.startswith("begun")][-1]
