"""
Each primitive against the raw library doing the same work with the same durability, in one run, interleaved.

Raw SQLite is the `sqlite3` module called three ways: in a blocking loop, which code in an event loop must not do and which needs
no thread; in a worker thread, awaited; and by 32 threads taking turns on one connection. Raw NATS is nats-py's own publish,
key-value bucket and pull subscription, awaited. Rates are wall-clock, because most of it is waiting for a disk or a server; the
last column compares processor time, which a busy machine disturbs less.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import statistics
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.stores.servers import NatsServer

from amends import stores

VALUE = b"x" * 200
ROUNDS = 15
WRITERS = 32


class Cost:
    """Operations per second by the wall, and processor seconds per operation, all threads of this process included."""

    def __init__(self, count, wall, cpu):
        self.rate = count / wall
        self.cpu = cpu / count


def blocking(count, step, calls=None):
    """`count` steps in a plain loop."""
    wall, cpu = time.perf_counter(), time.process_time()
    for i in range(count if calls is None else calls):
        step(i)
    return Cost(count, time.perf_counter() - wall, time.process_time() - cpu)


async def spread(writers, count, step):
    """Run `count` steps with `writers` concurrent writers; 0 means one writer."""
    wall, cpu = time.perf_counter(), time.process_time()
    if writers <= 1:
        for i in range(count):
            await step(i)
    else:

        async def writer(w):
            for i in range(w, count, writers):
                await step(i)

        await asyncio.gather(*(writer(w) for w in range(writers)))
    return Cost(count, time.perf_counter() - wall, time.process_time() - cpu)


class RawSqlite:
    """The statements one would write by hand, each in its own transaction."""

    def __init__(self, path, synchronous):
        self.connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        run = self.connection.execute
        run("PRAGMA journal_mode = WAL")
        run(f"PRAGMA synchronous = {synchronous}")
        run("CREATE TABLE log (seq INTEGER PRIMARY KEY AUTOINCREMENT, value BLOB)")
        run("CREATE TABLE kv (key TEXT PRIMARY KEY, value BLOB, revision INTEGER)")
        run(
            "CREATE TABLE tasks (id INTEGER PRIMARY KEY AUTOINCREMENT, due REAL, lease REAL, attempts INT, value BLOB)"
        )
        run("CREATE INDEX due ON tasks (lease, due)")
        self.lock = threading.Lock()

    def append(self, i):
        with self.lock:
            return self.connection.execute("INSERT INTO log (value) VALUES (?)", (VALUE,)).lastrowid

    def put(self, i):
        with self.lock:
            self.connection.execute(
                "INSERT INTO kv VALUES (?, ?, 1) ON CONFLICT (key) DO UPDATE "
                "SET value = excluded.value, revision = revision + 1 RETURNING revision",
                (f"key-{i % 1000}", VALUE),
            ).fetchone()

    def get(self, i):
        with self.lock:
            return self.connection.execute(
                "SELECT value FROM kv WHERE key = ?", (f"key-{i % 1000}",)
            ).fetchone()

    def add(self):
        with self.lock:
            self.connection.execute(
                "INSERT INTO tasks (due, lease, attempts, value) VALUES (?, 0, 0, ?)", (time.time(), VALUE)
            )

    def take(self):
        with self.lock:
            (number,) = self.connection.execute(
                "UPDATE tasks SET lease = ?, attempts = attempts + 1 WHERE id = "
                "(SELECT id FROM tasks WHERE lease <= ? AND due <= ? ORDER BY lease, due LIMIT 1) RETURNING id",
                (time.time() + 30, time.time(), time.time()),
            ).fetchone()
            return number

    def remove(self, number):
        with self.lock:
            self.connection.execute("DELETE FROM tasks WHERE id = ?", (number,))

    def task(self, i):
        self.add()
        self.remove(self.take())

    async def awaited_task(self, i):
        await asyncio.to_thread(self.add)
        await asyncio.to_thread(self.remove, await asyncio.to_thread(self.take))

    def together(self, i):
        with self.lock:
            run = self.connection.execute
            run("BEGIN IMMEDIATE")
            run("INSERT INTO log (value) VALUES (?)", (VALUE,))
            run(
                "INSERT INTO kv VALUES (?, ?, 1) ON CONFLICT (key) DO UPDATE "
                "SET value = excluded.value, revision = revision + 1",
                (f"key-{i % 1000}", VALUE),
            )
            run("INSERT INTO tasks (due, lease, attempts, value) VALUES (?, 0, 0, ?)", (time.time(), VALUE))
            run("COMMIT")

    async def rate(self, what, writers, count):
        step = getattr(self, what)
        if writers == 0:
            return blocking(count, step)
        if writers == 1 and what == "task":
            return await spread(writers, count, self.awaited_task)
        if writers == 1 or what == "get":
            return await spread(writers, count, lambda i: asyncio.to_thread(step, i))
        with ThreadPoolExecutor(writers) as pool:
            return blocking(count, lambda _: list(pool.map(step, range(count))), calls=1)


class RawNats:
    """nats-py as its documentation shows it."""

    @classmethod
    async def open(cls, url):
        import nats

        self = cls()
        self.client = await nats.connect(url)
        self.js = self.client.jetstream()
        await self.js.add_stream(name="rawlog", subjects=["rawlog"])
        await self.js.add_stream(name="rawclaims", subjects=["rawclaims.>"], max_msgs_per_subject=1)
        await self.js.add_stream(name="rawtasks", subjects=["rawtasks"], retention="workqueue")
        self.kv = await self.js.create_key_value(bucket="raw")
        await self.js.pull_subscribe("rawtasks", durable="workers", stream="rawtasks")
        self.workers = asyncio.Queue()
        for _ in range(WRITERS):
            self.workers.put_nowait(await self.js.pull_subscribe_bind(durable="workers", stream="rawtasks"))
        return self

    async def append(self, i):
        await self.js.publish("rawlog", VALUE)

    async def put(self, i):
        await self.kv.put(f"key-{i % 1000}", VALUE)

    async def get(self, i):
        await self.kv.get(f"key-{i % 1000}")

    async def task(self, i):
        await self.js.publish("rawtasks", VALUE)
        worker = await self.workers.get()
        (message,) = await worker.fetch(1)
        self.workers.put_nowait(worker)
        await message.ack_sync()

    async def claimed(self, i):
        """The messages of our queue: put, pull, a conditional claim, a conditional end of the claim, and an acknowledgement."""
        await self.js.publish("rawtasks", VALUE)
        worker = await self.workers.get()
        (message,) = await worker.fetch(1)
        self.workers.put_nowait(worker)
        subject = f"rawclaims.{message.metadata.sequence.stream}"
        last = {"Nats-Expected-Last-Subject-Sequence": "0"}
        claim = await self.js.publish(subject, VALUE[:80], headers=last)
        last = {"Nats-Expected-Last-Subject-Sequence": str(claim.seq)}
        await self.js.publish(subject, VALUE[:80], headers=last)
        await message.ack()

    async def rate(self, what, writers, count):
        return await spread(writers, count, getattr(self, what))


class Ours:
    """The same, by the contract."""

    def __init__(self, store):
        self.store = store
        self.log, self.table, self.queue = store.log("log"), store.table("table"), store.queue("queue")

    async def append(self, i):
        await self.log.append(VALUE)

    async def put(self, i):
        await self.table.put(f"key-{i % 1000}", VALUE)

    async def get(self, i):
        await self.table.get(f"key-{i % 1000}")

    async def task(self, i):
        await self.queue.put(VALUE)
        lease = await self.queue.take(wait=10)
        await lease.done()

    claimed = task

    async def together(self, i):
        def work(tx):
            tx.log("log").append(VALUE)
            tx.table("table").put(f"key-{i % 1000}", VALUE)
            tx.queue("later").put(VALUE)

        await self.store.transaction(work)

    async def rate(self, what, writers, count):
        return await spread(writers, count, getattr(self, what))


WHAT = {
    "append": "log: append",
    "put": "table: put",
    "get": "table: get",
    "task": "queue: put, take, done",
    "claimed": "queue: put, take, done; raw with the same messages",
    "together": "transaction: append, put, put",
}


# How the raw library is called: in a blocking loop, awaited one after the other, by many at once.
BLOCKING, ONE = 0, 1
CALLED = {BLOCKING: "1, raw blocking", ONE: "1", WRITERS: str(WRITERS)}


async def compare(backend, raw, ours, ways=(ONE, WRITERS)):
    """One row per primitive and way of calling it."""
    rows = []
    for what, title in WHAT.items():
        for writers in ways if hasattr(raw, what) else ():
            for side in (raw, ours):
                await side.rate(what, writers, 1000 if what == "put" else 64)
            # Short rounds and many: what else the machine does meanwhile then hits both sides alike.
            probe = min((await raw.rate(what, writers, 128)).rate, (await ours.rate(what, writers, 128)).rate)
            count = max(64, int(probe * 0.12))
            pairs = [
                (await raw.rate(what, writers, count), await ours.rate(what, writers, count))
                for _ in range(ROUNDS)
            ]
            ratios = sorted(our.rate / bare.rate for bare, our in pairs)
            rows.append(
                {
                    "backend": backend,
                    "what": title,
                    "writers": CALLED[writers],
                    "raw": statistics.median(bare.rate for bare, _ in pairs),
                    "ours": statistics.median(our.rate for _, our in pairs),
                    "ratio": statistics.median(ratios),
                    "low": ratios[ROUNDS // 4],
                    "high": ratios[-1 - ROUNDS // 4],
                    "cpu": statistics.median(bare.cpu / our.cpu for bare, our in pairs),
                }
            )
            print(row_line(rows[-1]), file=sys.stderr, flush=True)  # stdout is the page
    return rows


async def follow_latency(url, samples=600):
    """From before the append to the follower's hands, the two on different connections; milliseconds, sorted."""
    waits = []
    async with await stores.open(url) as one, await stores.open(url) as two:
        await one.log("followed").append(b"0")

        async def follow():
            async for entry in two.log("followed").follow(2):
                waits.append((time.perf_counter() - float(entry.value)) * 1000)
                if len(waits) == samples:
                    return

        follower = asyncio.ensure_future(follow())
        await asyncio.sleep(0.3)
        for i in range(samples):
            await one.log("followed").append(repr(time.perf_counter()).encode())
            await asyncio.sleep(0.001 * (i % 13))
        await asyncio.wait_for(follower, 30)
    return sorted(waits)


def row_line(row):
    return (
        f"| {row['backend']} | {row['what']} | {row['writers']} | {row['raw']:,.0f} | {row['ours']:,.0f} "
        f"| {row['ratio']:.2f} ({row['low']:.2f} to {row['high']:.2f}) | {row['cpu']:.2f} |"
    )


async def measure(backends=("SQLite", "NATS")):
    rows, follows = [], []
    with tempfile.TemporaryDirectory() as directory:
        for synchronous in ("full", "normal") if "SQLite" in backends else ():
            backend = f"SQLite, {synchronous.upper()}"
            url = f"sqlite:///{directory}/ours-{synchronous}.db?synchronous={synchronous}"
            async with await stores.open(url) as store:
                raw = RawSqlite(f"{directory}/raw-{synchronous}.db", synchronous)
                rows += await compare(backend, raw, Ours(store), (BLOCKING, ONE, WRITERS))
            follows.append((backend, await follow_latency(url)))
        if "NATS" not in backends:
            return rows, follows
        server = NatsServer(Path(directory) / "nats")
        await asyncio.to_thread(server.start)
        try:
            raw = await RawNats.open(server.url)
            async with await stores.open(f"{server.url}/bench") as store:
                rows += await compare("NATS", raw, Ours(store))
            await raw.client.close()
            follows.append(("NATS", await follow_latency(f"{server.url}/bench")))
        finally:
            await asyncio.to_thread(server.stop)
    return rows, follows


def main(*backends: str) -> list[str]:
    rows, follows = asyncio.run(measure(backends or ("SQLite", "NATS")))
    return [
        f"Wall-clock rates per second, values of {len(VALUE)} bytes, {ROUNDS} interleaved pairs. The ratio is amends over raw: the median and",
        "the interval that contains half of the pairs. The last column is raw CPU time divided by amends' CPU time. Raw SQLite commits each",
        'write separately; amends commits queued writes together. "Raw blocking" is a plain loop that would block an event loop; the row below',
        "it awaits the same statements in a worker thread. Targets: at least 0.50 of that, at least 0.80 of plain nats-py, and less than",
        "20 ms for follow at p99. A queue on NATS does not reach 0.80 of plain nats-py. A JetStream server that is killed can deliver one",
        "message to two workers, so our queue writes a claim before it hands a message out, and the end of the claim: two more acknowledged",
        "writes per message. The last rows compare it with nats-py that writes the same claims.",
        f"Machine load at the start: {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors.",
        "",
        "| backend | primitive | writers | raw | ours | ours / raw | by processor time |",
        "|---|---|---|---|---|---|---|",
        *(row_line(row) for row in rows),
        "",
        "| follow, from append to the follower on another connection | median | p99 |",
        "|---|---|---|",
        *(
            f"| {backend} | {waits[len(waits) // 2]:.1f} ms | {waits[int(len(waits) * 0.99)]:.1f} ms |"
            for backend, waits in follows
        ),
    ]


if __name__ == "__main__":
    print("\n".join(main(*sys.argv[1:])))
