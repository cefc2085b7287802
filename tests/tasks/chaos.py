"""
Flaky agents that record what they do in one SQLite file, for workers that are killed at random.

The agents write to tables of their own in the file: inside the store's transaction to `effects`, which must have one row per
effect, and outside of it to `starts` and `undos`, where a crash may leave several rows. When a step starts, the same statement checks
whether the task's log has the step as finished, which must never be the case. `tests/tasks/call_evidence.py` has the one exception.

    python -m tests.tasks.chaos FILE                    a worker that runs until it is killed
    python -m tests.tasks.chaos FILE URL [LEASE]        the same, with the tasks on another store than the file
    python -m tests.tasks.chaos submit URL FROM TO      submits tasks until all are accepted, or it is killed

If the tasks are on another store, the file's statements cannot read the log and cannot share its transactions. Then the effects are
keyed, and times show whether a step started after it was finished.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sqlite3
import sys
import threading
import time

from msgspec.structs import replace

from amends.core.backoff import Backoff
from amends.errors import task as errors
from amends.recovery import TASK
from amends.tasks import Agent, Orchestrator, Step, events, fan_out, sequence
from tests.tasks.call_evidence import Call, lease_end, note_checks, row_of, steady

LEASE = 1.5
SECONDS = 3.0
"""The time limit of a step. After a worker was lost, its steps are undone that much later."""
POLICY = replace(TASK, attempts=6, uncertain=5, backoff=Backoff(first=0.02, cap=0.2), rules={})
_CALL = """task TEXT, step TEXT, worker TEXT, message TEXT, epoch INTEGER, checked REAL, awaited INTEGER, asked REAL, at REAL,
    until REAL, wall REAL, again INTEGER"""
TABLES = f"""
    CREATE TABLE IF NOT EXISTS starts ({_CALL});
    CREATE TABLE IF NOT EXISTS undos (task TEXT, step TEXT, key TEXT);
    CREATE TABLE IF NOT EXISTS effects (task TEXT, step TEXT, undo INTEGER);
    CREATE TABLE IF NOT EXISTS actions ({_CALL});
    CREATE INDEX IF NOT EXISTS actions_of ON actions (task, step);
"""
_INSERT = """
    INSERT INTO {table} SELECT :task, :step, :worker, :message, :epoch, :checked, :awaited, :asked, steady(), lease_end(), wall(),
        {again}
"""
_FINISHED = """EXISTS (
    SELECT 1 FROM amends_logs AS log
    JOIN amends_entries AS entry ON entry.id BETWEEN log.id << 36 AND (log.id << 36) + 1000000
    JOIN json_each(CAST(entry.value AS TEXT)) AS record
    WHERE log.name = 'tasks/' || :task AND record.value ->> 'what' = 'finished' AND record.value ->> 'step' = :step
        AND record.value ->> 'undo' IS NULL
)"""


class Ledger:
    """A connection of its own to the SQLite file."""

    def __init__(self, path: str, *, shared: bool = True) -> None:
        self.shared = shared
        """Whether the tasks are in the same file."""
        self.worker = ""
        self._path, self._local = path, threading.local()
        self._connection.executescript(TABLES)

    @property
    def _connection(self) -> sqlite3.Connection:
        """One for each thread: two threads with one connection wait for each other."""
        found = getattr(self._local, "connection", None)
        if found is None:
            found = sqlite3.connect(self._path, timeout=30, isolation_level=None)
            for function in (time.time, steady, lease_end):
                found.create_function("wall" if function is time.time else function.__name__, 0, function)
            found.execute("PRAGMA journal_mode = wal")
            found.execute("PRAGMA synchronous = normal")
            self._local.connection = found
        return found

    def close(self) -> None:
        self._connection.close()

    def record_start(self, ctx) -> None:
        self._record("starts", ctx, _FINISHED if self.shared else "0")

    def _record(self, table: str, ctx, again: str) -> None:
        # The functions in the statement are evaluated when it has the lock of the file, that is when the call is executed.
        self._connection.execute(_INSERT.format(table=table, again=again), row_of(ctx, self.worker))

    async def record_effect(self, ctx) -> None:
        """Record an effect once: in the store's transaction, or by its key."""
        row = (ctx.task, ctx.step_name, int(ctx.undo))
        if self.shared:
            await ctx.once(lambda tx: bool(tx.sql("INSERT INTO effects VALUES (?, ?, ?)", row)))
        else:
            self._connection.execute(
                "INSERT INTO effects SELECT ?, ?, ? WHERE NOT EXISTS "
                "(SELECT 1 FROM effects WHERE task = ? AND step = ? AND undo = ?)",
                (*row, *row),
            )

    def record_undo(self, ctx) -> None:
        self._connection.execute("INSERT INTO undos VALUES (?, ?, ?)", (ctx.task, ctx.step_name, ctx.key))

    def record_action(self, ctx) -> None:
        self._record("actions", ctx, "0")

    def has_action(self, task: str, step: str) -> bool:
        query = "SELECT 1 FROM actions WHERE task = ? AND step = ?"
        return self._connection.execute(query, (task, step)).fetchone() is not None

    def calls(self, table: str) -> list[Call]:
        """The recorded calls, in the order in which they were executed."""
        return [Call._make(row) for row in self.rows(f"SELECT * FROM {table} ORDER BY at")]

    def rows(self, query: str) -> list[tuple]:
        return self._connection.execute(query).fetchall()


def flaky_agent(ledger: Ledger) -> Agent:
    agent = Agent("flaky")
    dice = random.Random()

    async def before_effect() -> None:
        # A worker that is paused here has its effect late, which no orchestrator can prevent (docs/tasks-durable.md).
        if "PAUSES" not in os.environ:
            await asyncio.sleep(dice.random() * 0.1)

    async def fail_randomly(share: float = 0.3) -> None:
        await asyncio.sleep(dice.random() * 0.15)
        if dice.random() < share:
            raise dice.choice(
                [
                    errors.AgentUnavailableError(),
                    errors.RateLimitedError(retry_after=0.01),
                    errors.McpError(),
                    RuntimeError("oops"),
                ]
            )

    async def unbook(payload, result, ctx):
        ledger.record_undo(ctx)
        await fail_randomly(0.2)
        await ledger.record_effect(ctx)
        await fail_randomly(0.1)

    @agent.capability(idempotent=True, undo=unbook, timeout=SECONDS)
    async def book(payload, ctx):
        """May be repeated, because its effect is recorded once."""
        ledger.record_start(ctx)
        await fail_randomly()
        await ledger.record_effect(ctx)
        await fail_randomly()
        return ctx.step_name

    @agent.capability(idempotent=True, timeout=SECONDS)
    async def doomed(payload, ctx):
        ledger.record_start(ctx)
        await fail_randomly()
        raise errors.KnowledgeNotFoundError

    @agent.capability(verify=lambda payload, ctx: ledger.has_action(ctx.task, ctx.step_name) and "found")
    async def pay(payload, ctx):
        """Must not happen twice; has a `verify`."""
        ledger.record_start(ctx)
        await before_effect()
        ledger.record_action(ctx)
        await asyncio.sleep(dice.random() * 0.1)
        return "paid"

    @agent.capability
    async def shout(payload, ctx):
        """Must not happen twice; only the test can verify it."""
        ledger.record_start(ctx)
        await before_effect()
        ledger.record_action(ctx)
        await asyncio.sleep(dice.random() * 0.15)
        return "shouted"

    @agent.capability(idempotent=True, timeout=SECONDS)
    async def order(payload, ctx):
        """Delegates what must not happen twice."""
        ledger.record_start(ctx)
        await asyncio.sleep(dice.random() * 0.05)
        return await ctx.delegate("shout")

    @agent.capability(timeout=SECONDS)
    def block(payload, ctx):
        """Must not happen twice, and runs in a thread."""
        ledger.record_start(ctx)
        ledger.record_action(ctx)
        time.sleep(dice.random() * 0.1)
        return "blocked"

    return agent


def plan(number: int):
    """The plan of a task: each kind in turn."""
    kind = number % 8
    trip = [Step(name=name, type="book") for name in ("hotel", "flight", "car")]
    return (
        "book",
        sequence(*trip),
        sequence(*trip, Step(name="doomed", type="doomed")),
        fan_out(*trip, Step(name="pay", type="pay")),
        "pay",
        "shout",
        "order",
        "block",
    )[kind]


def store_url(path: str) -> str:
    return f"sqlite:///{path}?synchronous=normal"


async def work(path: str, url: str | None = None, lease: str | float = LEASE) -> None:
    events.set_hooks()
    note_checks()
    ledger = Ledger(path, shared=url is None)
    async with Orchestrator(
        [flaky_agent(ledger)],
        store=url or store_url(path),
        policy=POLICY,
        lease=float(lease),
        concurrency=8,
        keep=None,
        grace=0.05,
    ) as orchestrator:
        ledger.worker = orchestrator._registry.worker
        closed = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, closed.set)
        await closed.wait()


async def submit(url: str, first: str, last: str) -> None:
    """Submit each task with its own id, several at once. After a crash, the same requests are submitted again."""
    numbers = iter(range(int(first), int(last)))

    async def submit_some(client: Orchestrator) -> None:
        for number in numbers:
            task = plan(number)
            agent = "flaky" if isinstance(task, str) else None
            await client.submit(task, agent=agent, id=f"task-{number}", key=f"key-{number}")

    async with Orchestrator(store=url, worker=False, policy=POLICY, lease=LEASE, keep=None) as client:
        await asyncio.gather(*(submit_some(client) for _ in range(8)))


if __name__ == "__main__":
    import logging

    logging.getLogger("amends").setLevel(logging.CRITICAL)
    asyncio.run(submit(*sys.argv[2:]) if sys.argv[1] == "submit" else work(*sys.argv[1:]))
