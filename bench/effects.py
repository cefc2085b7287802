"""
What a call through the ledger costs, beyond the call itself.

On a memory store: CPU time of an empty coroutine and of an empty function, each with a new key. On SQLite: wall time of a call,
against a bare pair of transactions that write and update one row of the same size on the same disk, in turn, with the same
durability. The bare pair runs in a worker thread, because code in an event loop must not wait for a disk. The last table has the
parts of which the time consists.
"""

from __future__ import annotations

import asyncio
import sqlite3
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median, quantiles

from amends.effects import Effects
from amends.stores.clock import SystemClock
from amends.stores.sqlite.commit import in_transaction
from amends.stores.sqlite.file import File
from amends.stores.sqlite.schema import prepare
from amends.stores.sqlite.table import TableRows

ROUNDS, CALLS = 41, 400
FAR, SOON = 3e9, 172800.0
"""Seconds after which the rows of a claim and of an outcome expire."""
CLAIM, OUTCOME = b"c" * 240, b"o" * 240
"""The bare rows. They differ, because SQLite writes nothing for an update that changes nothing."""


def main() -> list[str]:
    lines = [
        "| call with a new key, memory store | CPU µs, median of rounds (quartiles) | target |",
        "|---|---|---|",
    ]
    for name, figures in (("coroutine", asyncio.run(_coroutine())), ("function", _function())):
        low, _, high = quantiles(figures, n=4)
        lines.append(f"| {name} | {median(figures):.1f} ({low:.1f}–{high:.1f}) | ≤ 50 |")
    lines += [
        "",
        "| call with a new key, SQLite | ledger, wall µs | bare pair of transactions, µs | ratio (quartiles) | target |",
        "|---|---|---|---|---|",
    ]
    for synchronous in ("full", "normal"):
        pairs = asyncio.run(_sqlite(synchronous))
        ratios = [ours / bare for ours, bare in pairs]
        low, _, high = quantiles(ratios, n=4)
        ours, bare = median(each[0] for each in pairs), median(each[1] for each in pairs)
        lines.append(
            f"| synchronous={synchronous} | {ours:.0f} | {bare:.0f} | {median(ratios):.2f} ({low:.2f}–{high:.2f}) | ≤ 1.5 |"
        )
    lines += [
        "",
        "| parts of it, wall µs, median | synchronous=full | synchronous=normal |",
        "|---|---|---|",
    ]
    parts = [asyncio.run(_parts(synchronous)) for synchronous in ("full", "normal")]
    lines += [f"| {name} | {parts[0][name]:.0f} | {parts[1][name]:.0f} |" for name in parts[0]]
    return lines


async def _parts(synchronous: str) -> dict[str, float]:
    """The floor of a call: what remains if each part were the only one."""
    keys = iter(range(10**9))
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(1) as pool:
        loop = asyncio.get_running_loop()
        file = File(f"{folder}/rows.db", synchronous)
        bare, rows = _open_bare(Path(folder, "bare.db"), synchronous), file.connect()
        prepare(rows, SystemClock())
        table = TableRows(rows, SystemClock(), "amends.effects")

        async def hand_over() -> None:
            await loop.run_in_executor(pool, int)
            await loop.run_in_executor(pool, int)

        async def bare_pair() -> None:
            number = next(keys)
            _claim(bare, number)
            _finish(bare, number)

        async def ledger_pair() -> None:
            key = f"pay:{next(keys)}"
            revision = in_transaction(rows, lambda _: table.create(key, CLAIM, expires_in=FAR), None)
            in_transaction(rows, lambda _: table.put(key, OUTCOME, revision=revision, expires_in=SOON), None)

        work = {
            "two hand-overs to a thread and back": hand_over,
            "bare pair of transactions, in one thread": bare_pair,
            "the ledger's pair of transactions, in one thread": ledger_pair,
        }
        times: dict[str, list[float]] = {name: [] for name in work}
        for number in range(2 * CALLS):
            # In another order each time: an fsync is faster after some of them.
            for name in sorted(work, key=lambda name: hash((name, number))):
                begin = time.perf_counter()
                await work[name]()
                times[name].append((time.perf_counter() - begin) * 1e6)
        bare.close()
        rows.close()
    return {name: median(figures[CALLS:]) for name, figures in times.items()}


async def _coroutine() -> list[float]:
    effects, keys = Effects("memory:"), iter(range(10**9))

    @effects.once(key="order")
    async def pay(order):
        return order

    figures = []
    for _ in range(ROUNDS + 3):
        begin = time.process_time_ns()
        for _ in range(CALLS):
            await pay(next(keys))
        figures.append((time.process_time_ns() - begin) / CALLS / 1000)
    return figures[3:]


def _function() -> list[float]:
    effects, keys = Effects("memory:"), iter(range(10**9))

    @effects.once(key="order")
    def pay(order):
        return order

    figures = []
    for _ in range(ROUNDS + 3):
        begin = time.process_time_ns()
        for _ in range(CALLS):
            pay(next(keys))
        figures.append((time.process_time_ns() - begin) / CALLS / 1000)
    return figures[3:]


async def _sqlite(synchronous: str) -> list[tuple[float, float]]:
    keys = iter(range(10**9))
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(1) as pool:
        loop = asyncio.get_running_loop()
        bare = await loop.run_in_executor(pool, _open_bare, Path(folder, "bare.db"), synchronous)
        async with Effects(f"sqlite:///{folder}/effects.db?synchronous={synchronous}") as effects:

            @effects.once(key="order")
            async def pay(order):
                return order

            async def ours() -> None:
                await pay(next(keys))

            async def other() -> None:
                number = next(keys)
                await loop.run_in_executor(pool, _claim, bare, number)
                await loop.run_in_executor(pool, _finish, bare, number)

            # Call by call in turn, because the time of an fsync changes from second to second.
            pairs = []
            for number in range(ROUNDS + 3):
                times: dict[object, list[float]] = {ours: [], other: []}
                for turn in range(2 * (CALLS // 8)):
                    call = (ours, other)[(turn + number) % 2]
                    begin = time.perf_counter()
                    await call()
                    times[call].append((time.perf_counter() - begin) * 1e6)
                pairs.append((median(times[ours]), median(times[other])))
        await loop.run_in_executor(pool, bare.close)
    return pairs[3:]


def _open_bare(path: Path, synchronous: str) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = wal")
    connection.execute(f"PRAGMA synchronous = {synchronous}")
    connection.execute("CREATE TABLE effects (key TEXT PRIMARY KEY, value BLOB) WITHOUT ROWID")
    return connection


def _claim(connection: sqlite3.Connection, number: int) -> None:
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("INSERT INTO effects VALUES (?, ?)", (f"pay:{number}", CLAIM))
    connection.execute("COMMIT")


def _finish(connection: sqlite3.Connection, number: int) -> None:
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("UPDATE effects SET value = ? WHERE key = ?", (OUTCOME, f"pay:{number}"))
    connection.execute("COMMIT")
