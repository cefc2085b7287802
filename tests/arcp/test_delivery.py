"""What a session is sent on a store whose commits take time: in order, after its commit, and with no more of either than needed."""

from __future__ import annotations

import asyncio
import sqlite3
import struct
from contextlib import closing
from pathlib import Path

from amends.arcp.transports.memory import pair
from tests.arcp.raw import Raw, connected


class Counted:
    """A connection that keeps what was handed to it in one go."""

    def __init__(self, connection):
        self._connection = connection
        self.posts = []

    def __getattr__(self, name):
        return getattr(self._connection, name)

    def post(self, frames):
        self.posts.append(len(frames))
        return self._connection.post(frames)


async def served(runtime, **options):
    """A client that was welcomed, and the connection the runtime has."""
    ours, theirs = pair(**options)
    counted = Counted(theirs)
    raw = Raw(ours, asyncio.ensure_future(runtime.serve(counted)))
    assert (await raw.hello())["type"] == "session.welcome"
    return raw, counted


def traced(runtime):
    """Every statement the runtime's store runs from now on."""
    access = runtime._node.store.access
    statements = []
    for connection in (access.connection, access._writer._connection):
        connection.set_trace_callback(statements.append)
    return statements


def transactions(statements, about):
    """The transactions that speak of something, each as the first words of its statements."""
    text = "\n".join(" ".join(statement.split()) for statement in statements)
    found = [part.split("COMMIT")[0] for part in text.split("BEGIN IMMEDIATE\n")[1:]]
    return [[line.split()[0] for line in part.splitlines()] for part in found if about in part]


async def test_a_short_job_is_told_in_one_go(sqlite_url, begin):
    """Accepted and ended in one undisturbed step: two frames, handed over once, unless something else kept the store."""
    raw, counted = await served(await begin(sqlite_url))
    ways = set()
    for number in range(1, 41):
        counted.posts.clear()
        end = await raw.run("echo", number)
        assert (end["payload"]["result"], end["event_seq"]) == (number, number)
        ways.add(tuple(counted.posts))
    assert (2,) in ways
    assert [m["type"] for m in raw.seen[1:]] == ["job.accepted", "job.result"] * 40
    await raw.close()


async def test_a_durable_job_is_two_commits(sqlite_url, begin):
    """What a job costs on SQLite, counted, so that it does not grow unnoticed."""
    runtime = await begin(sqlite_url)
    raw = await connected(runtime)
    await raw.run("echo", 1)
    statements = traced(runtime)
    end = await raw.run("echo", 2)
    assert transactions(statements, end["job_id"]) == [
        ["INSERT", "INSERT", "INSERT", "INSERT"],
        ["INSERT", "INSERT", "DELETE", "UPDATE", "INSERT"],
    ]
    await raw.close()


def pages_of_commits(path):
    """How many pages each commit in the write-ahead log wrote, as SQLite's file format has it."""
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
    """The same in what a disk is given; a few more only when a page is full."""
    runtime = await begin(sqlite_url)
    raw = await connected(runtime)
    for number in range(40):
        await raw.run("echo", number)
    path = runtime._node.store.access.real_path
    with closing(sqlite3.connect(path, isolation_level=None)) as reader:
        # Whoever reads keeps the log from beginning anew.
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM amends_logs").fetchone()
        before = len(pages_of_commits(path))
        for number in range(20):
            await raw.run("echo", number)
        counts = pages_of_commits(path)[before:]
    assert sorted(counts)[len(counts) // 2] <= 4
    await raw.close()


async def test_a_client_that_is_slow_is_told_in_order(sqlite_url, begin):
    """A connection that takes one frame at a time: nothing is lost, doubled or overtaken."""
    raw, counted = await served(await begin(sqlite_url), frames=1)
    for number in range(200):
        await raw.send("job.submit", {"agent": "echo", "input": number})
        assert (await raw.receive())["type"] == "job.accepted"
        end = await raw.receive()
        assert (end["payload"]["result"], end["event_seq"]) == (number, number + 1)
    assert max(counted.posts) == 2, "it was never offered more than it takes"
    await raw.close()


async def test_what_comes_while_a_commit_waits_is_sent_behind_it(sqlite_url, begin):
    """Nothing is said before its commit, and what was asked later is answered later."""
    runtime = await begin(sqlite_url)
    raw = await connected(runtime)
    await raw.run("echo", 0)
    with closing(sqlite3.connect(runtime._node.store.access.real_path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        await raw.send("job.submit", {"agent": "echo", "input": 1})
        await raw.send("session.ping", {"nonce": "n"})
        node = runtime._node
        while not node.placing:
            await asyncio.sleep(0)
        (session,) = node.sessions.attached.values()
        while not session._queue:
            await asyncio.sleep(0)
        assert len(raw.seen) == 3, "nothing was said while nothing was committed"
        assert not raw.connection._incoming.frames
        other.execute("ROLLBACK")
    assert [(await raw.receive())["type"] for _ in range(3)] == ["job.accepted", "session.pong", "job.result"]
    assert raw.seen[-1]["event_seq"] == 2
    await raw.close()


async def test_an_end_that_is_being_written_holds_up_what_was_said_before_it_for_nobody(sqlite_url, begin):
    """The acceptance goes out while the end still waits for its commit."""
    runtime = await begin(sqlite_url)

    async def locking(input, ctx):
        other.execute("BEGIN IMMEDIATE")
        return input

    runtime.register_agent("locking", locking)
    raw = await connected(runtime)
    with closing(sqlite3.connect(runtime._node.store.access.real_path, isolation_level=None)) as other:
        await raw.send("job.submit", {"agent": "locking", "input": 1})
        assert (await raw.receive())["type"] == "job.accepted"
        other.execute("ROLLBACK")
    assert (await raw.receive())["payload"]["result"] == 1
    await raw.close()
