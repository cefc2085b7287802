"""
The real client and the real runtime on a simulated network and clock, for a range of seeds.

`python -m tests.arcp.simulation FIRST COUNT` needs Python 3.12 and simloop. Two nodes share a store. Three clients run
jobs over WebSockets while links are cut and restored (frames in transit arrive late, on connections that both sides have
abandoned) and nodes are killed and restarted. Every seed is a different history, which is the same every time.

For every client, each job's events arrive once, in order and complete, and every handle completes. No key has two jobs,
and every run has one terminal entry. A job that was running on a node when that was killed may end in doubt, once.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections import Counter

from websockets.asyncio.server import serve

from amends import stores
from amends.arcp import Limits, Runtime, connect
from amends.arcp.errors import ARCPError, HeartbeatLostError
from amends.arcp.runtime.entries import job_log
from amends.arcp.runtime.ledger import read_entry
from amends.arcp.transports import ConnectionLost, websocket
from amends.arcp.transports.text_frames import ServerSocket

TOKEN = "secret"
LIMITS = Limits(
    heartbeat=2.0, node_lease=6.0, resume_window=300.0, send_timeout=8.0, cancel_grace=1.0, drain=0.0
)
LINES = 8


class Clock:
    """The simulated time, for the store's leases."""

    def __init__(self, loop):
        self._loop = loop

    def wall(self):
        return 1_800_000_000.0 + self._loop.time()

    def steady(self):
        return self._loop.time()

    def boot(self):
        return "simulated"


class World:
    """The state and the tasks of one simulation."""

    def __init__(self, loop, rng):
        self.loop = loop
        self.rng = rng
        self.started = Counter()
        self.jobs = {}
        self.killed = 0
        self.doubts = 0
        self.resumed = 0

    async def agent(self, input, ctx):
        self.started[ctx.job_id, ctx.run] += 1
        for number in range(LINES):
            await ctx.log(f"{ctx.run}/{number}")
            await asyncio.sleep(input["pause"])
        return input["name"]

    async def node(self, store):
        runtime = Runtime(store, tokens={TOKEN: "alice"}, limits=LIMITS)
        runtime.register_agent("agent", self.agent)

        async def handle(socket):
            await runtime.serve(websocket.WebSocketConnection(socket))

        # As in `websocket.serve`; simulated servers have no sockets from which it could read the port.
        async with (
            runtime,
            serve(
                handle, "0.0.0.0", 8000, compression=None, ping_interval=None, create_connection=ServerSocket
            ),
        ):
            await asyncio.Event().wait()

    async def client(self, name, nodes):
        turn = 0

        async def dial():
            nonlocal turn
            turn += 1
            self.resumed += turn > 1
            node = nodes[(turn + len(name)) % len(nodes)]
            try:
                async with asyncio.timeout(4):
                    return await websocket.dial(f"ws://{node}:8000/arcp", insecure=True, ping_interval=None)
            except TimeoutError:
                raise ConnectionLost("connection refused") from None

        client = await self.connected(dial)
        for number in range(4):
            key = f"{name}-{number}"
            input = {"name": key, "pause": self.rng.choice([0.0, 0.05, 0.4])}
            handle = await client.submit("agent", input, idempotency_key=key)
            self.jobs.setdefault(key, set()).add(handle.job_id)
            lines = [event.body["message"] async for event in handle.events() if event.kind == "log"]
            try:
                assert await handle.done == key
            except ARCPError as error:
                if not (error.details or {}).get("in_doubt"):
                    raise
                self.doubts += 1
                assert lines == [f"1/{n}" for n in range(len(lines))]
            else:
                assert lines == [f"1/{n}" for n in range(LINES)], lines
            assert handle.missed == 0
        await client.close()

    @staticmethod
    async def connected(dial):
        """Connect a client, repeating the first connection, which `connect` itself does not repeat."""
        while True:
            connecting = connect(dial, token=TOKEN, connect_timeout=8.0, request_timeout=200.0)
            try:
                return await connecting
            except HeartbeatLostError:
                await asyncio.sleep(1.0)

    async def chaos(self, net, clients, nodes, start):
        for _ in range(self.rng.randrange(2, 7)):
            await asyncio.sleep(self.rng.uniform(0.1, 2.0))
            if self.rng.random() < 0.3:
                node = self.rng.choice(nodes)
                net.crash(node)
                self.killed += 1
                await asyncio.sleep(self.rng.uniform(0.1, 4.0))
                net.restart(node)
                start(node)
            else:
                cut_off = clients if self.rng.random() < 0.5 else [self.rng.choice(clients)]
                net.partition(cut_off, [self.rng.choice(nodes)])
                await asyncio.sleep(self.rng.uniform(0.2, 9.0))
                net.heal()


async def scenario():
    from simloop import sim

    loop = asyncio.get_running_loop()
    world = World(loop, sim.random)
    net = loop.net
    net.set_defaults(latency=(0.001, 0.06))
    store = await stores.open("memory:", clock=Clock(loop))
    nodes, clients = ["n1", "n2"], ["c", "cc", "ccc"]

    def start(node):
        net.host(node).create_task(world.node(store))

    for node in nodes:
        start(node)
    await asyncio.sleep(0.5)
    tasks = [net.host(name).create_task(world.client(name, nodes)) for name in clients]
    chaos = loop.create_task(world.chaos(net, clients, nodes, start))
    async with asyncio.timeout(900):
        await asyncio.gather(chaos, *tasks)
    assert all(len(found) == 1 for found in world.jobs.values())
    assert max(world.started.values()) == 1
    assert world.doubts <= world.killed * len(clients)
    for found in world.jobs.values():
        (job_id,) = found
        entries = [read_entry(entry.value) for entry in await store.log(job_log(job_id)).read(limit=1_000)]
        assert [entry.ended for entry in entries] == [False] * (len(entries) - 1) + [True]
    TOTAL.update(killed=world.killed, doubts=world.doubts, resumed=world.resumed, jobs=len(world.jobs))


TOTAL: Counter[str] = Counter()


def main(first: int, count: int) -> int:
    from simloop import explore

    logging.disable(logging.CRITICAL)
    report = explore(scenario, range(first, first + count))
    if report is not None:
        print(report.render())
        return 1
    print(f"{count} seeds from {first}: {dict(TOTAL)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2])))
