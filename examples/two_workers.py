"""
An orchestrator whose tasks are run by two workers.

    python examples/two_workers.py

It needs `pip install amends`. The workers share a SQLite file; with a nats: store they can be on different machines.
"""

import asyncio
import logging
import tempfile
from pathlib import Path

import msgspec

from amends.errors import ServiceUnavailableError
from amends.tasks import Agent, Context, Orchestrator

logging.disable()
tries: list[int] = []


class Report(msgspec.Struct):
    """The request to the agent."""

    month: int


def make_agent() -> Agent:
    agent = Agent("reports")

    @agent.capability(read_only=True)
    async def write_report(report: Report, ctx: Context) -> dict[str, str]:
        tries.append(report.month)
        if len(tries) == 1:
            raise ServiceUnavailableError("The warehouse restarts", retry_after=0.1)
        return {"report": f"month {report.month}"}

    return agent


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = f"sqlite:///{Path(folder) / 'tasks.db'}"
        first, second = (Orchestrator([make_agent()], store=store) for _ in range(2))
        async with first, second:
            done = [await first.run("write_report", Report(month), timeout=60) for month in (1, 2, 3)]
        print([each.result["report"] for each in done])
        print(len(tries), "calls for 3 tasks")


asyncio.run(main())
# > ['month 1', 'month 2', 'month 3']
# > 4 calls for 3 tasks
