"""
An agent of twenty steps, ten of them delegated payments, in a process that kills itself at any point.

    python -m tests.arcp.stepping URL FOLDER AT [kill|stop] [verify|key] [SECONDS]

A point is before and after each write to the store, and before and after each line of the agents. At point AT the process
kills or stops itself; 0: never, and the number of points is printed. Payments are rows of a file of their own: the service honours keys,
or the agent verifies and has SECONDS for a payment.
"""

import asyncio
import json
import os
import signal
import sqlite3
import sys
from contextlib import closing

from amends.arcp import Limits, Runtime, connect
from amends.arcp.runtime.ledger import Ledger
from amends.effects import current_key

PAYMENTS = 10
LEASE = {"agent.delegate": ["*"], "cost.budget": ["USD:100"]}


class Points:
    def __init__(self, at=0, how="kill"):
        self.at, self.seen = at, 0
        self.signal = {"kill": signal.SIGKILL, "stop": signal.SIGSTOP}[how]

    def point(self):
        self.seen += 1
        if self.seen == self.at:
            os.kill(os.getpid(), self.signal)


def execute(folder, statement, *values):
    with closing(sqlite3.connect(f"{folder}/world.db", timeout=20)) as file, file:
        file.execute("CREATE TABLE IF NOT EXISTS calls (what TEXT, number INTEGER, key TEXT UNIQUE)")
        return file.execute(statement, values).fetchall()


def calls(folder, what):
    return [n for (n,) in execute(folder, "SELECT number FROM calls WHERE what = ? ORDER BY number", what)]


class World:
    """What the agents call."""

    def __init__(self, folder, points, honours="verify", seconds="0.2"):
        self.folder, self.points = folder, points
        self.keyed, self.seconds = honours == "key", float(seconds)

    async def think(self, number):
        self.points.point()
        execute(self.folder, "INSERT INTO calls VALUES ('think', ?, NULL)", number)
        self.points.point()
        return {"order": number}

    async def charge(self, order):
        self.points.point()
        key = current_key() if self.keyed else None
        execute(self.folder, "INSERT OR IGNORE INTO calls VALUES ('charge', ?, ?)", order, key)
        self.points.point()
        return f"receipt {order}"

    async def find(self, order):
        return f"receipt {order}" if order in calls(self.folder, "charge") else False


def register(runtime, world):
    points = world.points

    @runtime.register_agent("pay", repeatable=True)
    async def pay(input, ctx):
        async def charge_and_report(order):
            receipt = await world.charge(order)
            # Inside the step, because it is not reported again when the step is replayed.
            await ctx.metric("cost.payment", 1, "USD")
            return receipt

        points.point()
        order = input["order"]
        receipt = await ctx.step(
            "charge", charge_and_report, order, key=order, verify=world.find, timeout=world.seconds
        )
        points.point()
        return receipt

    @runtime.register_agent("plan", repeatable=True)
    async def plan(input, ctx):
        receipts = []
        for number in range(input):
            points.point()
            order = await ctx.step("think", world.think, number, repeat=True)
            points.point()
            receipts.append(
                await ctx.delegate("pay", order, key=str(number), lease={"cost.budget": ["USD:5"]})
            )
        points.point()
        return {"receipts": receipts, "budget": ctx.budget, "token": await ctx.uuid()}


def count_writes(points):
    """Make each write to the store two points."""
    for name in ("accept", "write", "end"):
        found = getattr(Ledger, name)

        async def pointed(self, *args, _found=found, **options):
            points.point()
            result = await _found(self, *args, **options)
            points.point()
            return result

        setattr(Ledger, name, pointed)


async def run(url, world, payments=PAYMENTS):
    limits = Limits(node_lease=0.5, drain=0.0, cancel_grace=0.2)
    runtime = Runtime(url, tokens={"secret": "alice"}, limits=limits)
    register(runtime, world)
    async with runtime, connect(runtime, token="secret") as client:
        handle = await client.submit("plan", payments, idempotency_key="k", lease=LEASE)
        return await handle.done


def main(url, folder, at, how="kill", *world):
    points = Points(int(at), how)
    count_writes(points)
    result = asyncio.run(run(url, World(folder, points, *world)))
    print(points.seen, json.dumps(result))


if __name__ == "__main__":
    main(*sys.argv[1:])
