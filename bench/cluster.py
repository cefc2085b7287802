"""
What a job costs on NATS, in CPU of the nodes: one node, four nodes, memory, and bare nats-py with the same messages.

**Four nodes and one.** Nodes are processes (`amends runtime serve`), all with the same agent on one nats-server; the clients
are here, over WebSockets. What is counted is the CPU of all runtime processes together, by the kernel's account of each, over
the jobs that were done: not the clients', and not the server's. Two readings of "the same load" are measured:

- *the same clients*: four sessions with sixteen jobs at once each, all at one node, or each at a node of its own. The submissions
  are the same, the sessions are the same; what differs is where they come in. Four nodes have four connections to the
  server and a quarter of the jobs on each, so less travels together in one system call: that is the price of spreading a load one node
  could carry.
- *the same load per node*: one such session at one node, and one at each of four. That is what a cluster is grown for.

The first is measured at two loads: with sixteen jobs at once a client, and with four times as many. What the machine makes of
spreading any such work is measured too: nats-py alone, sending what one of our jobs sends, sixty-four times at once in one
process, and sixteen times in each of four.

Nodes keep what is submitted to them while they have room, so in neither does a job cross over. One that does (a front without
the agent, three workers with it) is measured beside.

**Memory and bare nats-py.** One node with its client in this process, on NATS and on memory, and a client of nats-py that sends what
one of our jobs sends, counted while jobs ran: as many acknowledged publications (`js.publish`, with a header and a payload of
the usual size), as many other requests (`nc.request`, a message read back) and as many messages without a reply (`nc.publish`).

The sides take turns, and a round's ratios are taken within the round. So few jobs are run that no node has to delete its oldest
(`Limits.finished`): one node would have to sooner than each of four.

    python -m bench.cluster [ROUNDS]
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Callable
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from pathlib import Path
from statistics import median, quantiles
from typing import Any, NamedTuple

JOBS = 160
AT_ONCE = 16
CLIENTS = 4
ROUNDS = 10
IDLE = 5.0
INPUT = {"instruction": "say it again", "items": [1, 2, 3], "deep": {"a": {"b": "c"}}}


async def echo(given, ctx):
    return given


@asynccontextmanager
async def server():
    """A nats-server of our own."""
    from tests.ports import free_port

    binary = Path(sys.executable).parent / "nats-server"
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        process = subprocess.Popen(
            [str(binary), "-js", "-sd", folder, "-a", "127.0.0.1", "-p", str(port), "-l", f"{folder}/log"]
        )
        try:
            await asyncio.sleep(1.0)
            yield f"nats://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait()


@asynccontextmanager
async def here(url):
    """A node in this process, and its client."""
    from amends.arcp import Runtime, connect

    runtime = Runtime(url, tokens={"secret": "bench"})
    runtime.register_agent("echo", echo)
    async with runtime, connect(runtime, token="secret") as client:

        async def job():
            handle = await client.submit("echo", INPUT)
            assert await handle.done == INPUT

        yield job


def used(processes) -> int:
    """Nanoseconds of CPU these processes have used so far."""
    # The clock of another process, as clock_getcpuclockid(3) makes it.
    return sum(time.clock_gettime_ns(~process.pid << 3 | 2) for process in processes)


class Side(NamedTuple):
    """Nodes that are processes, and clients at some of them."""

    nodes: list[Any]
    clients: list[Any]

    @property
    def processes(self):
        return [node.process for node in self.nodes]

    async def cpu(self, times: int = 1) -> float:
        """Microseconds per job, with so many jobs at once for each client, or so many times more."""

        async def some(client):
            for _ in range(JOBS // AT_ONCE):
                handle = await client.submit("echo", INPUT)
                assert await handle.done == INPUT

        before = used(self.processes)
        await asyncio.gather(*(some(client) for client in self.clients for _ in range(AT_ONCE * times)))
        return (used(self.processes) - before) / (JOBS * times * len(self.clients)) / 1000

    async def idle(self) -> float:
        """Milliseconds of CPU a node uses in a second without work."""
        before = used(self.processes)
        await asyncio.sleep(IDLE)
        return (used(self.processes) - before) / len(self.nodes) / IDLE / 1e6


class Alone(NamedTuple):
    """Processes that do nothing but send what our jobs send, by nats-py."""

    processes: list[asyncio.subprocess.Process]

    async def cpu(self) -> float:
        """Microseconds per job, with as many at once, in all of them together, as four clients have."""
        share = AT_ONCE * CLIENTS // len(self.processes)
        before = used(self.processes)
        for process in self.processes:
            process.stdin.write(f"{share}\n".encode())
        for process in self.processes:
            assert await process.stdout.readline() == b"done\n"
        return (used(self.processes) - before) / (JOBS * CLIENTS) / 1000


async def alone(url, counts, stack, count) -> Alone:
    """So many of them."""
    words = [sys.executable, "-m", "bench.cluster", "alone", url, json.dumps(counts)]
    pipes = {"stdin": asyncio.subprocess.PIPE, "stdout": asyncio.subprocess.PIPE}
    processes = [await asyncio.create_subprocess_exec(*words, **pipes) for _ in range(count)]
    for process in processes:
        stack.callback(process.kill)
    for process in processes:
        assert await process.stdout.readline() == b"ready\n"
    return Alone(processes)


async def being_alone(url: str, counts: str) -> None:
    """Run one such process: each input line gives the number of concurrent jobs."""
    loop = asyncio.get_running_loop()
    async with bare(url, json.loads(counts)) as job:
        print("ready", flush=True)
        while line := await loop.run_in_executor(None, sys.stdin.readline):

            async def some():
                for _ in range(JOBS // AT_ONCE):
                    await job()

            await asyncio.gather(*(some() for _ in range(int(line))))
            print("done", flush=True)


async def clusters(url, stack) -> dict[str, Side]:
    """The sides that are processes."""
    from tests.cluster.machines import TOKEN, RuntimeProcess, start_all

    from amends.arcp import connect

    agents = ("echo=bench.cluster:echo",)
    one = [RuntimeProcess(f"{url}/one", agents=agents, lease=30.0)]
    four = [RuntimeProcess(f"{url}/four", agents=agents, lease=30.0) for _ in range(CLIENTS)]
    front = [RuntimeProcess(f"{url}/apart", agents=(), lease=30.0)]
    workers = [RuntimeProcess(f"{url}/apart", agents=agents, lease=30.0, worker=True) for _ in range(3)]
    start_all(stack.enter_context(ExitStack()), *one, *four, *front, *workers)

    async def clients(nodes):
        return [await stack.enter_async_context(connect(node.url, token=TOKEN)) for node in nodes]

    return {
        "one": Side(one, await clients(one * CLIENTS)),
        "four": Side(four, await clients(four)),
        "quarter": Side(one, await clients(one)),
        "apart": Side([*front, *workers], await clients(front)),
    }


@asynccontextmanager
async def bare(url, counts):
    """The same messages by nats-py alone."""
    import nats

    client = await nats.connect(url)
    stream = client.jetstream()
    await stream.add_stream(name="bare", subjects=["bare.>"], allow_direct=True, max_msgs_per_subject=1)
    payload = b"x" * 300
    await stream.publish("bare.read", payload)
    count = iter(range(10**9))

    due = Counter()

    async def job():
        # A fraction of a message per job adds up to a whole one now and then.
        due.update(counts)
        while due["publications"] >= 1:
            due["publications"] -= 1
            await stream.publish(f"bare.{next(count)}", payload, headers={"Nats-Msg-Id": uuid.uuid4().hex})
        while due["requests"] >= 1:
            due["requests"] -= 1
            await client.request("$JS.API.DIRECT.GET.bare.bare.read", b"", timeout=5)
        while due["unacknowledged"] >= 1:
            due["unacknowledged"] -= 1
            await client.publish("bare_unacknowledged", b"")

    yield job
    await client.close()


async def cpu(job) -> float:
    """Microseconds of CPU per job, in this process."""

    async def some():
        for _ in range(JOBS // AT_ONCE):
            await job()

    begin = time.process_time_ns()
    await asyncio.gather(*(some() for _ in range(AT_ONCE)))
    return (time.process_time_ns() - begin) / JOBS / 1000


async def counted(job) -> dict[str, float]:
    """How many messages of each kind a job sends."""
    from amends.stores.nats.connection import NatsConnection

    seen: Counter[str] = Counter()
    send, publish = NatsConnection.send, NatsConnection.publish

    async def counting(self, subject, payload, reply, headers):
        seen["publications" if headers is not None else "requests"] += 1
        return await send(self, subject, payload, reply, headers)

    def counting_publish(self, subject, payload=b""):
        seen["unacknowledged"] += 1
        publish(self, subject, payload)

    NatsConnection.send, NatsConnection.publish = counting, counting_publish  # type: ignore[method-assign]
    try:
        await cpu(job)
    finally:
        NatsConnection.send, NatsConnection.publish = send, publish  # type: ignore[method-assign]
    return {kind: count / JOBS for kind, count in sorted(seen.items())}


async def measured(rounds: int) -> list[str]:
    """The section."""
    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(server())
        mine = await stack.enter_async_context(here(f"{url}/here"))
        counts = await counted(mine)
        sides: dict[str, Callable[[], Any]] = {}
        for name, job in (
            ("memory", await stack.enter_async_context(here("memory:"))),
            ("here", mine),
            ("bare", await stack.enter_async_context(bare(url, counts))),
        ):
            sides[name] = lambda job=job: cpu(job)  # type: ignore[misc]
        apart = await clusters(url, stack)
        sides |= {name: side.cpu for name, side in apart.items()}
        for name in ("one", "four"):
            sides[f"{name} at once"] = lambda side=apart[name]: side.cpu(4)  # type: ignore[misc]
        sides["alone"] = (await alone(url, counts, stack, 1)).cpu
        sides["spread"] = (await alone(url, counts, stack, CLIENTS)).cpu
        taken: list[dict[str, float]] = []
        for number in range(rounds + 2):
            names = list(sides)
            turn = number % len(names)
            times = {name: await sides[name]() for name in names[turn:] + names[:turn]}
            if number >= 2:
                taken.append(times)
        idle = await apart["four"].idle()
    middle = {name: median(times[name] for times in taken) for name in sides}
    sent = ", ".join(f"{count:.1f} {kind}" for kind, count in counts.items())
    lines = [
        f"A job sends {sent}; each client runs {AT_ONCE} jobs at once. CPU per job in µs: "
        + ", ".join(f"{words} {middle[name]:.0f}" for name, words in WORDS.items())
        + f". An idle node uses {idle:.1f} ms of CPU per second.",
        "",
        "| what | ratio (middle half) | least and most | want |",
        "|---|---|---|---|",
    ]
    for words, want, ratio in RATIOS:
        ratios = [ratio(times) for times in taken]
        low, _, high = quantiles(ratios, n=4)
        lines.append(
            f"| {words} | {median(ratios):.2f} ({low:.2f}–{high:.2f}) | {min(ratios):.2f}, {max(ratios):.2f} | {want} |"
        )
    return lines


WORDS = {
    "one": "one node with four clients",
    "quarter": "one node with one client",
    "four": "four nodes with a client each",
    "one at once": "one node with four clients, 64 jobs at once each",
    "four at once": "four nodes with a client each, 64 jobs at once",
    "apart": "a front and three workers",
    "here": "one node and its client in one process",
    "memory": "the same in memory",
    "bare": "bare nats-py",
    "alone": "the same in a process of its own, 64 at once",
    "spread": "in four processes, 16 at once each",
}
RATIOS: list[tuple[str, str, Callable[[dict[str, float]], float]]] = [
    ("four nodes over one, the same load per node", "≤ 1.10", lambda t: t["four"] / t["quarter"]),
    (
        "four nodes over one, the same clients, 64 jobs at once each",
        "≤ 1.10",
        lambda t: t["four at once"] / t["one at once"],
    ),
    ("four nodes over one, the same clients, 16 jobs at once each", "≤ 1.10", lambda t: t["four"] / t["one"]),
    ("four processes of bare nats-py over one, the same load", "", lambda t: t["spread"] / t["alone"]),
    (
        "one node over memory plus twice bare nats-py",
        "≤ 1.00",
        lambda t: t["here"] / (t["memory"] + 2 * t["bare"]),
    ),
    ("a job that goes to another node over one that stays", "", lambda t: t["apart"] / t["quarter"]),
]


def main(rounds: int = ROUNDS) -> list[str]:
    """The section's lines."""
    return asyncio.run(measured(rounds))


if __name__ == "__main__":
    if sys.argv[1:2] == ["alone"]:
        asyncio.run(being_alone(*sys.argv[2:]))
    else:
        print("\n".join(main(*map(int, sys.argv[1:]))))
