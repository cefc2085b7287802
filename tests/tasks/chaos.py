"""
Flaky agents on one SQLite file, for workers that are killed at random.

What the agents do is written to tables of their own in the same file: once inside the store's transaction (`effects`), where
there must be one row each, and once outside (`begins`, `undos`), where a crash may leave several. A step that
begins looks, in the same transaction, whether the task's log has it as finished already: that must never be.

    python -m tests.tasks.chaos FILE                    a worker, until it is killed
    python -m tests.tasks.chaos FILE URL [LEASE]        the same, the tasks on another store than the file's
    python -m tests.tasks.chaos submit URL FROM TO      whoever wants them done, until all are accepted, or it is killed

On another store the log cannot be looked at from here, and there is no transaction to share: then a step is keyed instead, and
the time tells whether it began after it was finished.
"""

from __future__ import annotations

import asyncio
import random
import sqlite3
import sys
import time

from msgspec.structs import replace

from amends.core.backoff import Backoff
from amends.errors import task as errors
from amends.recovery import TASK
from amends.tasks import Agent, Orchestrator, Step, fan_out, sequence, telemetry

LEASE = 1.5
POLICY = replace(TASK, attempts=6, uncertain=5, backoff=Backoff(first=0.02, cap=0.2), rules={})
TABLES = """
    CREATE TABLE IF NOT EXISTS begins (task TEXT, step TEXT, at REAL, again INTEGER);
    CREATE TABLE IF NOT EXISTS undos (task TEXT, step TEXT, key TEXT);
    CREATE TABLE IF NOT EXISTS effects (task TEXT, step TEXT, undo INTEGER);
    CREATE TABLE IF NOT EXISTS deeds (task TEXT, step TEXT, at REAL);
"""
_BEGIN = """
    INSERT INTO begins SELECT :task, :step, :at, EXISTS (
        SELECT 1 FROM amends_logs AS log
        JOIN amends_entries AS entry ON entry.id BETWEEN log.id << 36 AND (log.id << 36) + 1000000
        JOIN json_each(CAST(entry.value AS TEXT)) AS record
        WHERE log.name = 'tasks/' || :task AND record.value ->> 'what' = 'finished' AND record.value ->> 'step' = :step
          AND record.value ->> 'undo' IS NULL
    )
"""


class Ledger:
    """A connection beside the store's."""

    def __init__(self, path: str, *, shared: bool = True) -> None:
        self.shared = shared
        """Whether the tasks are in the same file."""
        self._connection = sqlite3.connect(path, timeout=30, isolation_level=None, check_same_thread=False)
        self._connection.execute("PRAGMA synchronous = normal")
        self._connection.executescript(TABLES)

    def close(self) -> None:
        self._connection.close()

    def begin(self, ctx) -> None:
        statement = _BEGIN if self.shared else "INSERT INTO begins VALUES (:task, :step, :at, 0)"
        self._connection.execute(statement, {"task": ctx.task, "step": ctx.step, "at": time.time()})

    async def effect(self, ctx) -> None:
        """One effect: in the store's transaction, or by a key."""
        row = (ctx.task, ctx.step, int(ctx.undo))
        if self.shared:
            await ctx.once(lambda tx: bool(tx.sql("INSERT INTO effects VALUES (?, ?, ?)", row)))
        else:
            self._connection.execute(
                "INSERT INTO effects SELECT ?, ?, ? WHERE NOT EXISTS "
                "(SELECT 1 FROM effects WHERE task = ? AND step = ? AND undo = ?)",
                (*row, *row),
            )

    def undo(self, ctx) -> None:
        self._connection.execute("INSERT INTO undos VALUES (?, ?, ?)", (ctx.task, ctx.step, ctx.key))

    def deed(self, ctx) -> None:
        self._connection.execute("INSERT INTO deeds VALUES (?, ?, ?)", (ctx.task, ctx.step, time.time()))

    def did(self, task: str, step: str) -> bool:
        query = "SELECT 1 FROM deeds WHERE task = ? AND step = ?"
        return self._connection.execute(query, (task, step)).fetchone() is not None

    def rows(self, query: str) -> list[tuple]:
        return self._connection.execute(query).fetchall()


def flaky_agent(ledger: Ledger) -> Agent:
    agent = Agent("flaky")
    dice = random.Random()

    async def trouble(share: float = 0.3) -> None:
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

    async def take_back(payload, result, ctx):
        ledger.undo(ctx)
        await trouble(0.2)
        await ledger.effect(ctx)
        await trouble(0.1)

    @agent.capability(idempotent=True, undo=take_back)
    async def book(payload, ctx):
        """Its effect shares the store's transaction, so it may be repeated."""
        ledger.begin(ctx)
        await trouble()
        await ledger.effect(ctx)
        await trouble()
        return ctx.step

    @agent.capability(idempotent=True)
    async def doomed(payload, ctx):
        ledger.begin(ctx)
        await trouble()
        raise errors.KnowledgeNotFoundError

    @agent.capability(verify=lambda payload, ctx: ledger.did(ctx.task, ctx.step) and "found")
    async def pay(payload, ctx):
        """Must not happen twice; somebody can look."""
        ledger.begin(ctx)
        await asyncio.sleep(dice.random() * 0.1)
        ledger.deed(ctx)
        await asyncio.sleep(dice.random() * 0.1)
        return "paid"

    @agent.capability
    async def shout(payload, ctx):
        """Must not happen twice, and nobody can look but a person."""
        ledger.begin(ctx)
        await asyncio.sleep(dice.random() * 0.15)
        ledger.deed(ctx)
        return "shouted"

    return agent


def plan(number: int):
    """The tasks of one run: every kind in turn."""
    kind = number % 6
    trip = [Step(name=name, type="book") for name in ("hotel", "flight", "car")]
    return (
        "book",
        sequence(*trip),
        sequence(*trip, Step(name="doomed", type="doomed")),
        fan_out(*trip, Step(name="pay", type="pay")),
        "pay",
        "shout",
    )[kind]


def address(path: str) -> str:
    return f"sqlite:///{path}?synchronous=normal"


async def work(path: str, url: str | None = None, lease: str | float = LEASE) -> None:
    telemetry.set_hooks()
    agent = flaky_agent(Ledger(path, shared=url is None))
    async with Orchestrator(
        [agent], store=url or address(path), policy=POLICY, lease=float(lease), concurrency=8, keep=None
    ):
        await asyncio.sleep(3600)


async def submit(url: str, first: str, last: str) -> None:
    """Every task under its id, some at once: whoever begins again after a crash says the same once more."""
    numbers = iter(range(int(first), int(last)))

    async def some(client: Orchestrator) -> None:
        for number in numbers:
            task = plan(number)
            agent = "flaky" if isinstance(task, str) else None
            await client.submit(task, agent=agent, id=f"task-{number}", key=f"key-{number}")

    async with Orchestrator(store=url, worker=False, policy=POLICY, lease=LEASE, keep=None) as client:
        await asyncio.gather(*(some(client) for _ in range(8)))


if __name__ == "__main__":
    import logging

    logging.getLogger("amends").setLevel(logging.CRITICAL)
    asyncio.run(submit(*sys.argv[2:]) if sys.argv[1] == "submit" else work(*sys.argv[1:]))
