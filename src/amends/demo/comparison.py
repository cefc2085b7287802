"""Rehearses the three agents with the same failures, one after the other, and adds up what was found."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import httpx2
import msgspec

from amends.demo.agents import Agent, job, orders_url, plain, with_amends, with_tenacity
from amends.rehearse.judge import Row
from amends.rehearse.plan import Failure, Plan
from amends.rehearse.rehearsal import Rehearsal

__all__ = ["AGENTS", "FAILURES", "Observer", "Report", "Result", "compare"]

AGENTS = (plain.AGENT, with_tenacity.AGENT, with_amends.AGENT)
FAILURES = tuple(
    Failure(service, kind)
    for service, kinds in {
        "openai": ("refused", "rate", "quota", "server-error", "html", "lost"),
        "orders": ("rate", "overload", "validation", "permission", "lost", "html"),
        "mcp": ("rate", "validation", "lost"),
        "a2a": ("rate", "validation", "lost"),
    }.items()
    for kind in kinds
)
_SERVICES = ("openai", "orders", "mcp", "a2a")


class Result(msgspec.Struct, frozen=True):
    """What one agent did."""

    agent: str
    rows: tuple[Row, ...]
    calls: int
    """Calls that reached a service."""

    @property
    def handled(self) -> int:
        """Failures with the best score."""
        return sum(row.score == 3 for row in self.rows)

    @property
    def score(self) -> int:
        """The lowest score."""
        return min((row.score for row in self.rows if row.score is not None), default=0)

    @property
    def finished(self) -> int:
        """Runs in which the job was done."""
        return sum(row.end is not None and row.end.status == 0 for row in self.rows)

    def count(self, rule: str) -> int:
        """Return how many failures led to a finding."""
        return sum(any(each.rule == rule for each in row.findings) for row in self.rows)


class Report(msgspec.Struct, frozen=True):
    """The results of all agents."""

    seed: int
    results: tuple[Result, ...]


class Observer:
    """Base class of observers of a comparison: its methods do nothing."""

    def agent_started(self, name: str) -> None:
        """The next agent starts."""

    def judged(self, row: Row) -> None:
        """A failure was sent, and what the agent did was judged."""

    def agent_finished(self, result: Result) -> None:
        """An agent met all failures."""


def compare(seed: int, observer: Observer | None = None, failures: Sequence[Failure] = FAILURES) -> Report:
    """Rehearse all agents and return their results. It makes event loops of its own."""
    observer = observer or Observer()
    return Report(seed, tuple(_rehearsed(agent, seed, observer, failures) for agent in AGENTS))


def _rehearsed(agent: Agent, seed: int, observer: Observer, failures: Sequence[Failure]) -> Result:
    observer.agent_started(agent.name)
    plan = Plan(seed=seed, wait=1.0, patience=10.0, failure=list(failures))
    rehearsal = Rehearsal(*_SERVICES, plan=plan, check=_one_order)
    calls = 0
    for stage in rehearsal.acts():
        _run(agent, stage)
        calls += len(stage.record.calls)
        for row in stage.rows:
            observer.judged(row)
    result = Result(agent.name, tuple(rehearsal.rows), calls)
    observer.agent_finished(result)
    return result


def _run(agent: Agent, stage: Rehearsal) -> None:
    with stage:
        stage.ended(0 if asyncio.run(job(agent, stage.output)) else 1)


def _one_order() -> bool:
    """The test of the result: there is one order in the store."""
    return len(httpx2.get(orders_url()).json()["data"]) == 1
