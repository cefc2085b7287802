"""
Kill a process with -9 before a random SQL statement, many times, and check the file afterwards.

`python -m tests.stores.crashing DIRECTORY COUNT SEED` forks one child per crash. The child works on the store and reports
to the parent, through a pipe, what was acknowledged. SQLite's trace callback kills it when the chosen statement begins, so
crashes happen between any two statements, including before and after COMMIT. The parent then opens the file and compares
it with everything that was ever acknowledged.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sqlite3
import sys
import threading
from collections import Counter
from contextlib import closing
from pathlib import Path

from amends import stores
from amends.stores import LeaseLostError

STATEMENTS = 160


class History:
    """Everything the children reported: intended (lower case) and acknowledged (upper case)."""

    def __init__(self):
        self.appended = {}
        self.counter = (0, 0)
        self.effects = set()
        self.put = set()
        self.finishing = set()
        self.finished = set()
        self.results = set()
        self.trimmed = 1
        self.own = set()
        self.dropping = set()
        self.epochs = {}
        self.acks = Counter()
        self.killed = Counter()

    def record(self, line):
        kind, *rest = line.split(" ")
        self.acks[kind] += 1
        if kind == "A":
            self.appended[int(rest[0])] = rest[1]
        elif kind == "P":
            self.counter = max(self.counter, (int(rest[0]), int(rest[1])))
        elif kind == "X":
            self.effects.add(rest[0])
        elif kind == "Q":
            self.put.add(rest[0])
        elif kind == "T":
            number, epoch = rest[0], int(rest[1])
            assert epoch > self.epochs.get(number, 0), (
                f"message {number}: epoch {epoch} after {self.epochs[number]}"
            )
            self.epochs[number] = epoch
        elif kind == "d":
            self.finishing.add(rest[0])
        elif kind == "D":
            self.finished.add(rest[0])
        elif kind == "R":
            self.results.add(rest[0])
        elif kind == "K":
            self.killed[rest[0]] += 1
        elif kind == "O":
            self.own.add(rest[0])
        elif kind == "o":
            self.dropping.add(rest[0])
        elif kind == "t":
            self.trimmed = max(self.trimmed, int(rest[0]))


async def work(url, rng, report):
    """Use every operation of the store, with four workers at once or with one."""
    store = await stores.open(url)
    name = f"{os.getpid()}-{rng.random()}"

    async def worker(i, steps):
        log, table, queue = store.log("l"), store.table("t"), store.queue("q", lease=0.05)
        for step in range(steps):
            id = f"{name}-{i}-{step}"
            what = rng.randrange(6)
            if what == 0:
                report(f"A {await log.append(id.encode(), dedupe=id if rng.random() < 0.5 else None)} {id}")
            elif what == 1:
                row = await table.get("n")
                value = int(row.value) + 1 if row else 1
                try:
                    revision = await table.put("n", b"%d" % value, revision=row.revision if row else 0)
                except stores.ConflictError:
                    continue
                report(f"P {value} {revision}")
            elif what == 2:

                def effect(tx, id=id):
                    tx.sql("INSERT INTO effects VALUES (?)", (id,))
                    tx.table("keys").create(id, b"done")
                    tx.queue("after").put(id.encode(), key=id)

                await store.transaction(effect)
                report(f"X {id}")
            elif what == 3:
                await queue.put(id.encode())
                report(f"Q {id}")
            elif what == 4:
                lease = await queue.take()
                if lease is not None:
                    report(f"T {lease.id} {lease.epoch}")
                    if rng.random() < 0.7:
                        message = lease.value.decode()

                        def finish(tx, lease=lease, message=message):
                            tx.done(lease)
                            tx.table("results").create(message, b"")

                        report(f"d {message}")
                        try:
                            if rng.random() < 0.5:
                                await lease.done()
                            else:
                                await store.transaction(finish)
                                report(f"R {message}")
                        except LeaseLostError:
                            continue
                        report(f"D {message}")
            elif rng.random() < 0.2:
                bounds = await log.bounds()
                report(f"t {bounds.last - 20}")
                await log.trim(bounds.last - 20)
            else:
                # A short-lived log: another one may get its id.
                own = store.log(f"own/{id}")
                await own.append(id.encode(), last=rng.choice((0, None)))
                report(f"O {id}")
                if rng.random() < 0.5:
                    report(f"o {id}")
                    await (own.drop() if rng.random() < 0.5 else own.trim(2))

    # Four workers share commits in the writer thread; the event loop serves a single one.
    workers = rng.choice((1, 4))
    await asyncio.gather(*(worker(i, 48 // workers) for i in range(workers)))
    await store.close()


def child(url, seed, pipe):
    def report(line):
        os.write(pipe, f"{line}\n".encode())

    rng = random.Random(seed)
    left = [rng.randrange(1, STATEMENTS)]
    connect = sqlite3.connect

    def traced(*args, **kwargs):
        connection = connect(*args, **kwargs)

        def before(statement):
            if not statement.startswith("PRAGMA"):
                left[0] -= 1
                if left[0] == 0:
                    report(f"K {threading.current_thread().name}")
                    os.kill(os.getpid(), signal.SIGKILL)

        connection.set_trace_callback(before)
        return connection

    sqlite3.connect = traced
    asyncio.run(work(url, rng, report))


async def verify(url, path, history):
    """Check that nothing acknowledged is lost, no transaction happened in part, and the log has no gaps."""
    async with await stores.open(url) as store:
        assert await store.check() == []
        bounds = await store.log("l").bounds()
        entries = {e.seq: e.value.decode() for e in await store.log("l").read(limit=100_000)}
        assert sorted(entries) == list(range(bounds.first, bounds.last + 1))
        assert bounds.first <= history.trimmed
        for seq, id in history.appended.items():
            assert seq < bounds.first or entries[seq] == id
        for name in (await store.names())["logs"]:
            if name.startswith("own/"):
                found = [entry.value.decode() for entry in await store.log(name).read()]
                assert found in ([name.removeprefix("own/")], []), f"{name} contains {found}"
        for id in history.own - history.dropping:
            assert [entry.value.decode() for entry in await store.log(f"own/{id}").read()] == [id]
        row = await store.table("t").get("n")
        assert history.counter == (0, 0) or (int(row.value), row.revision) >= history.counter
        with closing(sqlite3.connect(path)) as connection:
            effects = {row[0] for row in connection.execute("SELECT id FROM effects")}
        keys = {row.key async for row in store.table("keys").scan()}
        after = {message.key async for message in store.queue("after").messages()}
        assert effects == keys == after
        assert history.effects <= effects
        messages = [message.value.decode() async for message in store.queue("q").messages()]
        assert len(messages) == len(set(messages))
        assert history.put - history.finishing <= set(messages)
        assert not history.finished & set(messages)
        results = {row.key async for row in store.table("results").scan()}
        assert history.results <= results <= history.finishing
        assert not results & set(messages)


def main(directory, count, seed):
    rng = random.Random(seed)
    crashed, killed, history, path = 0, Counter(), History(), None
    while crashed < count:
        if path is None or rng.random() < 0.02:
            # Start a new file from time to time, so that its creation is interrupted too.
            path, history = Path(directory) / f"{crashed}.db", History()
            connection = sqlite3.connect(path)
            connection.execute("CREATE TABLE effects (id TEXT PRIMARY KEY)")
            connection.close()
        url = f"sqlite:///{path}?synchronous={rng.choice(('normal', 'normal', 'normal', 'full'))}"
        out, inn = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(out)
            child(url, rng.random(), inn)
            os._exit(0)
        os.close(inn)
        with os.fdopen(out) as lines:
            for line in lines:
                if line.endswith("\n"):
                    history.record(line.strip())
        _, status = os.waitpid(pid, 0)
        assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
        crashed += os.WIFSIGNALED(status)
        rng.random()
        killed += history.killed
        history.killed.clear()
        asyncio.run(verify(url, path, history))
    print(json.dumps({"crashes": crashed, "killed": killed, "acknowledged": dict(history.acks)}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
