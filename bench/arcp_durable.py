"""
Durable jobs on SQLite, client and runtime over WebSocket, against plain SQLite transactions of the same number.

A job takes at most four commits: the job before it is accepted, the session's subscription, the outcome, and the number of
its event before it is sent; the store commits together what waits together. The floor is two INSERTs, each in a transaction of
its own with the same durability, in a blocking loop on one connection: no event loop, no thread, no socket. Rates are
wall-clock, because with `synchronous=full`, the default, most of it is waiting for the disk; with `normal` nothing waits, and
it is Python against C. Both take turns.

What a job costs where nothing is durable, in the memory store, is measured against the same pairs: no store can make a
durable one cheaper. Once over WebSocket, and once over the transport in memory, which leaves sockets out too.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import tempfile
import time
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from statistics import median, quantiles

from bench.arcp import INPUT, echo

JOBS = 200
ROUNDS = 15
ROW = b"x" * 300


@asynccontextmanager
async def ours(store: str | None, *, socket: bool = True):
    import amends.arcp

    runtime = amends.arcp.Runtime(store, tokens={"secret": "bench"})
    runtime.register_agent("echo", echo)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(runtime)
        where = runtime
        if socket:
            where = (await stack.enter_async_context(runtime.listen("127.0.0.1", 0))).url
        client = await stack.enter_async_context(amends.arcp.connect(where, token="secret"))

        async def some(count: int) -> None:
            for _ in range(count):
                assert await (await client.submit("echo", INPUT)).done == INPUT

        async def rate(jobs: int, at_once: int) -> float:
            begin = time.perf_counter()
            await asyncio.gather(*(some(jobs // at_once) for _ in range(at_once)))
            return jobs / (time.perf_counter() - begin)

        yield rate


def plain(path: Path, synchronous: str):
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute(f"PRAGMA synchronous = {synchronous}")
    connection.execute("CREATE TABLE jobs (id INTEGER PRIMARY KEY, value BLOB)")

    def rate(jobs: int) -> float:
        begin = time.perf_counter()
        for _ in range(2 * jobs):
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("INSERT INTO jobs (value) VALUES (?)", (ROW,))
            connection.execute("COMMIT")
        return jobs / (time.perf_counter() - begin)

    return rate


async def compared(
    name: str, synchronous: str, at_once: int, rounds: int, jobs: int, *, want: str = "", **options
) -> str:
    """Return a row: jobs on a file (or with the given `options`) against pairs of transactions."""
    with tempfile.TemporaryDirectory() as directory:
        floor = plain(Path(directory) / "plain.db", synchronous)
        options = options or {"store": f"sqlite:///{directory}/ours.db?synchronous={synchronous}"}
        async with ours(**options) as rate:
            taken = []
            for number in range(rounds + 2):
                a, b = await rate(jobs, at_once), floor(jobs)
                if number >= 2:
                    taken.append((a, b))
    ratios = [a / b for a, b in taken]
    low, _, high = quantiles(ratios, n=4)
    return (
        f"| {name}, {at_once} at a time | {median(a for a, _ in taken):.0f} | "
        f"{median(b for _, b in taken):.0f} | {median(ratios):.2f} ({low:.2f}–{high:.2f}) | {want} |"
    )


def main(rounds: int = ROUNDS, jobs: int = JOBS) -> list[str]:
    logging.disable(logging.CRITICAL)
    lines = [
        "Durable echo jobs per second over WebSocket, compared with pairs of plain SQLite transactions per second.",
        "",
    ]
    lines += ["| | jobs/s | pairs/s | ratio (middle half) | want |", "|---|---|---|---|---|"]
    for synchronous, want in (("full", "≥ 0.15"), ("normal", "")):
        for at_once in (1, 50):
            name = f"synchronous={synchronous}"
            lines.append(asyncio.run(compared(name, synchronous, at_once, rounds, jobs, want=want)))
    lines += [
        "",
        "The same jobs without durability, compared with the pairs of `synchronous=normal`: the cost of the protocol alone, with both",
        "sides in one Python process. Durable jobs cannot exceed this ratio, so there is no target for `normal`.",
        "",
    ]
    lines += ["| | jobs/s | pairs/s | ratio (middle half) |", "|---|---|---|---|"]
    for name, socket in (("the memory store, over WebSocket", True), ("the same, no socket", False)):
        for at_once in (1, 50):
            row = asyncio.run(compared(name, "normal", at_once, rounds, jobs, store=None, socket=socket))
            lines.append(row.removesuffix("  |"))
    return lines


if __name__ == "__main__":
    print("\n".join(main()))
