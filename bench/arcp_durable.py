"""
Durable jobs on SQLite, client and runtime over WebSocket, against plain SQLite transactions of the same number.

A job takes two commits: what was asked for before it is accepted, its end (with what its session is told) before
anybody hears of it. The floor is two INSERTs, each in a transaction of its own with the same durability, in a blocking
loop on one connection: no event loop, no thread, no socket. Rates are wall-clock, because with `synchronous=full`, the
default, most of it is waiting for the disk; with `normal` nothing waits, and it is Python against C. Both take turns.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import tempfile
import time
from contextlib import asynccontextmanager
from pathlib import Path
from statistics import median, quantiles

from bench.arcp import INPUT, echo

JOBS = 200
ROUNDS = 15
ROW = b"x" * 300


@asynccontextmanager
async def ours(path: Path, synchronous: str):
    import amends.arcp

    store = f"sqlite:///{path}?synchronous={synchronous}"
    runtime = amends.arcp.Runtime(store, tokens={"secret": "bench"})
    runtime.register_agent("echo", echo)
    async with (
        runtime,
        runtime.listen("127.0.0.1", 0) as listening,
        amends.arcp.connect(listening.url, token="secret") as client,
    ):

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


async def compared(synchronous: str, at_once: int, rounds: int, jobs: int) -> str:
    want = "≥ 0.25" if synchronous == "full" else ""
    with tempfile.TemporaryDirectory() as directory:
        floor = plain(Path(directory) / "plain.db", synchronous)
        async with ours(Path(directory) / "ours.db", synchronous) as rate:
            taken = []
            for number in range(rounds + 2):
                a, b = await rate(jobs, at_once), floor(jobs)
                if number >= 2:
                    taken.append((a, b))
    ratios = [a / b for a, b in taken]
    low, _, high = quantiles(ratios, n=4)
    return (
        f"| synchronous={synchronous}, {at_once} at a time | {median(a for a, _ in taken):.0f} | "
        f"{median(b for _, b in taken):.0f} | {median(ratios):.2f} ({low:.2f}–{high:.2f}) | {want} |"
    )


def main(rounds: int = ROUNDS, jobs: int = JOBS) -> list[str]:
    logging.disable(logging.CRITICAL)
    lines = ["Durable echo jobs over WebSocket per second, and pairs of plain SQLite transactions.", ""]
    lines += ["| | jobs/s | pairs/s | ratio (middle half) | want |", "|---|---|---|---|---|"]
    for synchronous in ("full", "normal"):
        for at_once in (1, 50):
            lines.append(asyncio.run(compared(synchronous, at_once, rounds, jobs)))
    return lines


if __name__ == "__main__":
    print("\n".join(main()))
