"""
Trivial durable one-step tasks: ours, DBOS and hand-written SQLite, in one process, interleaved, at the same durability.

A task is one call of a function that returns its argument. Ours: submitted, taken by a worker, done, on a SQLite store. DBOS: a workflow
of one step. By hand: insert the task, claim it, write its result, each a commit of its own in a thread. All three in WAL mode, with
`synchronous` FULL (every commit waits for the disk) and NORMAL. Processor time counts all threads of the process.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import statistics
import tempfile
import time

ROUNDS = 12
AT_ONCE = 64


class Ours:
    name = "amends"

    async def open(self, folder, synchronous):
        from amends.tasks import Agent, Orchestrator

        agent = Agent("bench")

        @agent.capability(idempotent=True)
        async def step(payload):
            return payload

        url = f"sqlite:///{folder}/ours-{synchronous}.db?synchronous={synchronous}"
        self.orchestrator = Orchestrator([agent], store=url, concurrency=AT_ONCE)
        await self.orchestrator.start()

    async def task(self, number):
        response = await self.orchestrator.run("step", number)
        assert response.result == number

    async def close(self):
        await self.orchestrator.close()


class Dbos:
    name = "DBOS"

    async def open(self, folder, synchronous):
        import sqlalchemy
        from dbos import DBOS

        path = f"{folder}/dbos-{synchronous}.db"
        with sqlite3.connect(path) as made:
            made.execute("PRAGMA journal_mode = WAL")
        engine = sqlalchemy.create_engine(f"sqlite:///{path}")

        @sqlalchemy.event.listens_for(engine, "connect")
        def prepare(connection, _):
            connection.execute("PRAGMA busy_timeout = 30000")
            connection.execute("PRAGMA foreign_keys = ON")
            connection.execute(f"PRAGMA synchronous = {synchronous}")

        DBOS(
            config={
                "name": "bench",
                "system_database_url": f"sqlite:///{path}",
                "system_database_engine": engine,
                "log_level": "ERROR",
            }
        )

        @DBOS.step()
        async def step(payload):
            return payload

        @DBOS.workflow()
        async def flow(payload):
            return await step(payload)

        DBOS.launch()
        self.flow, self.dbos = flow, DBOS

    async def task(self, number):
        handle = await self.dbos.start_workflow_async(self.flow, number)
        assert await handle.get_result() == number

    async def close(self):
        await asyncio.to_thread(self.dbos.destroy)


class ByHand:
    name = "SQLite by hand"

    async def open(self, folder, synchronous):
        self.connection = sqlite3.connect(
            f"{folder}/hand-{synchronous}.db", isolation_level=None, check_same_thread=False
        )
        run = self.connection.execute
        run("PRAGMA journal_mode = WAL")
        run(f"PRAGMA synchronous = {synchronous}")
        run(
            "CREATE TABLE tasks (id INTEGER PRIMARY KEY, state INTEGER, lease REAL, payload TEXT, result TEXT)"
        )
        run("CREATE INDEX due ON tasks (state, lease)")
        self.lock = asyncio.Lock()

    async def _write(self, statement, parameters):
        async with self.lock:
            return await asyncio.to_thread(lambda: self.connection.execute(statement, parameters).fetchall())

    async def task(self, number):
        await self._write("INSERT INTO tasks (state, lease, payload) VALUES (0, 0, ?)", (str(number),))
        ((id, payload),) = await self._write(
            "UPDATE tasks SET state = 1, lease = ? WHERE id = "
            "(SELECT id FROM tasks WHERE state = 0 ORDER BY lease LIMIT 1) RETURNING id, payload",
            (time.time() + 30,),
        )
        await self._write("UPDATE tasks SET state = 2, result = ? WHERE id = ?", (payload, id))

    async def close(self):
        self.connection.close()


async def cost(side, count, at_once):
    """Tasks per second, and processor microseconds per task."""
    wall, cpu = time.perf_counter(), time.process_time()
    for begin in range(0, count, at_once):
        await asyncio.gather(*(side.task(n) for n in range(begin, min(begin + at_once, count))))
    return count / (time.perf_counter() - wall), (time.process_time() - cpu) / count * 1e6


async def measure(synchronous):
    sides = [Ours(), Dbos(), ByHand()]
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        for side in sides:
            await side.open(folder, synchronous)
        for at_once in (1, AT_ONCE):
            count = 32 if at_once == 1 else 2 * AT_ONCE
            for side in sides:
                await cost(side, count, at_once)
            rounds = [[await cost(side, count, at_once) for side in sides] for _ in range(ROUNDS)]
            ours = [each[0] for each in rounds]
            for number, side in enumerate(sides):
                theirs = [each[number] for each in rounds]
                rate = statistics.median(our[0] / their[0] for our, their in zip(ours, theirs, strict=True))
                ratios = sorted(their[1] / our[1] for our, their in zip(ours, theirs, strict=True))
                lines.append(
                    f"| {synchronous.upper()} | {at_once} | {side.name} | {statistics.median(t[0] for t in theirs):,.0f} "
                    f"| {statistics.median(t[1] for t in theirs):,.0f} | {rate:.1f} "
                    f"| {statistics.median(ratios):.1f} ({ratios[ROUNDS // 4]:.1f} to {ratios[-1 - ROUNDS // 4]:.1f}) |"
                )
        for side in sides:
            await side.close()
    return lines


def main() -> list[str]:
    import logging

    logging.disable(logging.WARNING)
    rows = [line for synchronous in ("full", "normal") for line in asyncio.run(measure(synchronous))]
    return [
        f"One-step tasks, {ROUNDS} interleaved rounds, one at a time and {AT_ONCE} at once; target: at least 2 times DBOS one",
        f"at a time, and 5 times at once. Machine load at the end: {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors.",
        "",
        "| synchronous | at once | | tasks per second | processor µs per task | ours is faster by | and cheaper by (middle half) |",
        "|---|---|---|---|---|---|---|",
        *rows,
    ]


if __name__ == "__main__":
    print("\n".join(main()))
