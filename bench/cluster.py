"""
What a job costs on NATS, in CPU of the nodes: one node, four nodes, memory, and bare nats-py with the same messages.

Everything runs in this process but nats-server, whose own work is not counted. The bare side sends what one of our jobs
sends to the server, counted while jobs ran: as many acknowledged publications (`js.publish`, with a header and
a payload of the usual size), as many other requests (`nc.request`, a message read back) and as many words nobody
answers (`nc.publish`). The sides take turns, and a
round's ratios are taken within the round.
"""

from __future__ import annotations

import asyncio
import subprocess
import tempfile
import time
import uuid
from collections import Counter
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from statistics import median, quantiles

JOBS = 160
AT_ONCE = 16
ROUNDS = 12
INPUT = {"instruction": "say it again", "items": [1, 2, 3], "deep": {"a": {"b": "c"}}}


async def echo(given, ctx):
    return given


@asynccontextmanager
async def server():
    """A nats-server of our own."""
    import sys

    from tests.stores.servers import free_port

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
async def cluster(url, fronts, workers=0):
    """Clients of `fronts` nodes that have the agent; with workers, of nodes that do not, and the workers do."""
    from amends.arcp import Runtime, connect

    async with AsyncExitStack() as stack:
        clients = []
        for number in range(fronts + workers):
            runtime = Runtime(url, tokens={"secret": "bench"})
            if not workers or number < workers:
                runtime.register_agent("echo", echo)
            await stack.enter_async_context(runtime)
            if number >= workers:
                clients.append(await stack.enter_async_context(connect(runtime, token="secret")))
        turn = iter(range(10**9))

        async def job():
            handle = await clients[next(turn) % len(clients)].submit("echo", INPUT)
            assert await handle.done == INPUT

        yield job


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
        while due["words"] >= 1:
            due["words"] -= 1
            await client.publish("bare_words", b"")

    yield job
    await client.close()


async def cpu(job, nodes=1) -> float:
    """Microseconds of CPU per job, each node with the same load."""

    async def some():
        for _ in range(JOBS // AT_ONCE):
            await job()

    begin = time.process_time_ns()
    await asyncio.gather(*(some() for _ in range(AT_ONCE * nodes)))
    return (time.process_time_ns() - begin) / JOBS / nodes / 1000


async def counted(job) -> dict[str, float]:
    """How many messages of each kind a job sends."""
    from amends.stores.nats.link import Link

    seen: Counter[str] = Counter()
    send, tell = Link.send, Link.tell

    async def counting(self, subject, payload, reply, headers):
        seen["publications" if headers is not None else "requests"] += 1
        return await send(self, subject, payload, reply, headers)

    async def telling(self, subject, payload=b""):
        seen["words"] += 1
        await tell(self, subject, payload)

    Link.send, Link.tell = counting, telling  # type: ignore[method-assign]
    try:
        await cpu(job)
    finally:
        Link.send, Link.tell = send, tell  # type: ignore[method-assign]
    return {kind: count / JOBS for kind, count in sorted(seen.items())}


async def measured(rounds: int) -> list[str]:
    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(server())
        one = await stack.enter_async_context(cluster(f"{url}/one", 1))
        counts = await counted(one)
        sides = {
            "memory": await stack.enter_async_context(cluster("memory:", 1)),
            "one": one,
            "four": await stack.enter_async_context(cluster(f"{url}/four", 4)),
            "apart": await stack.enter_async_context(cluster(f"{url}/apart", 1, workers=3)),
            "bare": await stack.enter_async_context(bare(url, counts)),
        }
        taken: list[dict[str, float]] = []
        for number in range(rounds + 2):
            names = list(sides)
            names = names[number % 5 :] + names[: number % 5]
            times = {name: await cpu(sides[name], 4 if name == "four" else 1) for name in names}
            if number >= 2:
                taken.append(times)
    middle = {name: median(times[name] for times in taken) for name in sides}
    lines = [
        f"A job sends {', '.join(f'{count:.1f} {kind}' for kind, count in counts.items())}; {AT_ONCE} jobs at once on every node. CPU per job in µs: "
        + ", ".join(f"{WORDS[name]} {middle[name]:.0f}" for name in sides)
        + ".",
        "",
        "| what | ratio (middle half) | want |",
        "|---|---|---|",
    ]
    for name, want, ratio in (
        ("four nodes over one", "≤ 1.10", lambda t: t["four"] / t["one"]),
        (
            "one node over memory plus twice bare nats-py",
            "≤ 1.00",
            lambda t: t["one"] / (t["memory"] + 2 * t["bare"]),
        ),
        ("a front and three workers over one node", "", lambda t: t["apart"] / t["one"]),
    ):
        ratios = [ratio(times) for times in taken]
        low, _, high = quantiles(ratios, n=4)
        lines.append(f"| {name} | {median(ratios):.2f} ({low:.2f}–{high:.2f}) | {want} |")
    return lines


WORDS = {
    "memory": "in memory",
    "one": "one node on NATS",
    "four": "four nodes on NATS",
    "apart": "a front and three workers on NATS",
    "bare": "bare nats-py",
}


def main(rounds: int = ROUNDS) -> list[str]:
    """The section's lines."""
    return asyncio.run(measured(rounds))


if __name__ == "__main__":
    print("\n".join(main()))
