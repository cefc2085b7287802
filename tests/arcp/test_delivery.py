"""Delivery on a store whose commits take time: messages are sent in order, after their commit, with few commits."""

from __future__ import annotations

import asyncio
import sqlite3
import struct
from contextlib import closing
from pathlib import Path

from amends.arcp.transports.memory import pair
from tests.arcp.raw import Raw, connected


class Counted:
    """A connection that records the size of each batch it was given."""

    def __init__(self, connection):
        self._connection = connection
        self.posts = []

    def __getattr__(self, name):
        return getattr(self._connection, name)

    def post(self, frames):
        self.posts.append(len(frames))
        return self._connection.post(frames)


async def served(runtime, **options):
    """Connect a client; returns it with the runtime's side of the connection."""
    ours, theirs = pair(**options)
    counted = Counted(theirs)
    raw = Raw(ours, asyncio.ensure_future(runtime.serve(counted)))
    assert (await raw.hello())["type"] == "session.welcome"
    return raw, counted


def traced(runtime):
    """Record every statement that the runtime's store executes from now on."""
    writer = runtime._node.store.connections._writer._connection
    statements = []
    writer.set_trace_callback(statements.append)
    return statements


def transactions(statements, about):
    """Return the transactions that mention `about`, each as the first tokens of its statements."""
    text = "\n".join(" ".join(statement.split()) for statement in statements)
    found = [part.split("COMMIT")[0] for part in text.split("BEGIN IMMEDIATE\n")[1:]]
    return [[line.split()[0] for line in part.splitlines()] for part in found if about in part]


async def test_a_durable_job_is_at_most_four_commits(sqlite_url, begin):
    """Job, subscription, end, and the number of its event; the store commits together what waits together."""
    runtime = await begin(sqlite_url)
    raw = await connected(runtime)
    await raw.run("echo", 1)
    statements = traced(runtime)
    end = await raw.run("echo", 2)
    first, *others = transactions(statements, end["job_id"])
    assert first == ["INSERT", "INSERT", "INSERT"]
    assert others
    assert statements.count("COMMIT") <= 4
    await raw.close()


def pages_of_commits(path):
    """Return how many pages each commit in the write-ahead log has written, read from SQLite's file format."""
    data = Path(f"{path}-wal").read_bytes()
    size, salt = int.from_bytes(data[8:12], "big"), data[16:24]
    counts, pages = [], 0
    for begin in range(32, len(data), 24 + size):
        _, committed = struct.unpack_from(">II", data, begin)
        if data[begin + 8 : begin + 16] != salt:
            break
        pages += 1
        if committed:
            counts.append(pages)
            pages = 0
    return counts


async def test_a_durable_job_writes_eight_pages(sqlite_url, begin):
    """The number of pages written per job does not grow unnoticed; a few more are written when a page is full."""
    runtime = await begin(sqlite_url)
    raw = await connected(runtime)
    for number in range(40):
        await raw.run("echo", number)
    path = runtime._node.store.connections.place
    with closing(sqlite3.connect(path, isolation_level=None)) as reader:
        # An open read transaction keeps SQLite from restarting the write-ahead log.
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM amends_logs").fetchone()
        before = len(pages_of_commits(path))
        for number in range(20):
            await raw.run("echo", number)
        counts = pages_of_commits(path)[before:]
    assert sorted(counts)[len(counts) // 2] <= 4
    await raw.close()


async def test_a_slow_client_gets_messages_in_order(sqlite_url, begin):
    """If a connection accepts one frame at a time, no message is lost, doubled or reordered."""
    raw, _ = await served(await begin(sqlite_url), frames=1)
    for number in range(200):
        await raw.send("job.submit", {"agent": "echo", "input": number})
        assert (await raw.receive())["type"] == "job.accepted"
        end = await raw.receive()
        assert (end["payload"]["result"], end["event_seq"]) == (number, number + 1)
    await raw.close()


async def test_messages_during_a_commit_are_sent_after_it(sqlite_url, begin):
    """No message is sent before its commit; a message without one is not delayed."""
    runtime = await begin(sqlite_url)
    raw = await connected(runtime)
    await raw.run("echo", 0)
    with closing(sqlite3.connect(runtime._node.store.connections.place, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        await raw.send("job.submit", {"agent": "echo", "input": 1})
        await raw.send("session.ping", {"nonce": "n"})
        node = runtime._node
        while not node.capacity.being_written:
            await asyncio.sleep(0)
        assert (await raw.receive())["type"] == "session.pong"
        assert node.capacity.being_written
        assert not raw.connection._incoming.frames, "no message was sent before its commit"
        other.execute("ROLLBACK")
    assert [(await raw.receive())["type"] for _ in range(2)] == ["job.accepted", "job.result"]
    assert raw.seen[-1]["event_seq"] == 2
    await raw.close()


async def test_writing_an_end_does_not_delay_earlier_messages(sqlite_url, begin):
    """`job.accepted` is sent while the job runs, and its end waits for the commit of another process."""
    runtime = await begin(sqlite_url)
    accepted = asyncio.Event()

    async def locking(input, ctx):
        await accepted.wait()
        other.execute("BEGIN IMMEDIATE")
        return input

    runtime.register_agent("locking", locking)
    raw = await connected(runtime)
    with closing(sqlite3.connect(runtime._node.store.connections.place, isolation_level=None)) as other:
        await raw.send("job.submit", {"agent": "locking", "input": 1})
        assert (await raw.receive())["type"] == "job.accepted"
        accepted.set()
        while not other.in_transaction:
            await asyncio.sleep(0)
        other.execute("ROLLBACK")
    assert (await raw.receive())["payload"]["result"] == 1
    await raw.close()
