"""
The agent of `tests.arcp.stepping` as capabilities of a task: twenty steps, ten of them delegated payments.

    python -m tests.tasks.stepping URL FOLDER AT [kill|stop] [verify|key] [SECONDS]
"""

import asyncio
import json
import sys

from amends.durable.journal import Journal
from amends.tasks import Agent, Orchestrator
from tests.arcp.stepping import PAYMENTS, Points, World


def agent_of(world):
    agent, points = Agent("shop"), world.points

    @agent.capability(idempotent=True)
    async def pay(input, ctx):
        points.point()
        receipt = await ctx.step(
            "charge",
            world.charge,
            input["order"],
            key=input["order"],
            verify=world.find,
            timeout=world.seconds,
        )
        points.point()
        return receipt

    @agent.capability(idempotent=True)
    async def plan(input, ctx):
        receipts = []
        for number in range(input):
            points.point()
            order = await ctx.step("think", world.think, number, repeat=True)
            points.point()
            receipts.append(await ctx.delegate("pay", order))
        points.point()
        return {"receipts": receipts, "token": await ctx.uuid()}

    return agent


def count_writes(points):
    """Make each write to the task's log two points."""
    inner = Journal.write

    async def pointed(self, *args, **options):
        points.point()
        result = await inner(self, *args, **options)
        points.point()
        return result

    Journal.write = pointed


async def run(url, world):
    async with Orchestrator([agent_of(world)], store=url, lease=0.5, grace=0) as orchestrator:
        handle = await orchestrator.submit("plan", PAYMENTS, id="t")
        return await handle.result(timeout=100)


def main(url, folder, at, how="kill", *world):
    points = Points(int(at), how)
    count_writes(points)
    result = asyncio.run(run(url, World(folder, points, *world)))
    print(points.seen, json.dumps(result))


if __name__ == "__main__":
    main(*sys.argv[1:])
