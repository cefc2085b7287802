"""One run: an agent, a presentation and a scenario, with virtual time."""

from __future__ import annotations

import logging
from math import sqrt
from statistics import mean, stdev
from typing import NamedTuple

from amends.testing import FakeClock
from bench.agents.presentations import PRESENTATIONS
from bench.agents.scenarios import scenarios

TURNS = 40


class Outcome(NamedTuple):
    finished: bool
    """The goal was reached and the agent says so, or the agent stopped where nothing can help."""
    duplicates: int
    wrong: bool
    """The agent ended with a wrong belief: it says done and it is not, or it stopped and it is done."""
    wasted: int
    bytes_read: int


def play(make_agent, presentation, service, seed: int = 0) -> Outcome:
    """Let an agent work on a scenario until it finishes or stops."""
    with FakeClock() as clock:
        service.begin = clock.now()
        tools, agent = presentation(service, clock), make_agent(dict(service.arguments), seed)
        text, read, says_done = None, 0, False
        for _ in range(TURNS):
            action = agent.next(text)
            if action.tool in {"finish", "stop"}:
                says_done = action.tool == "finish"
                break
            text = _use(tools, clock, action)
            read += len(text.encode())
            clock.advance(0.05)
    done = service.commits > 0
    finished = (done and says_done) if service.possible else not says_done
    wrong = done != says_done
    return Outcome(
        finished, max(0, service.commits - 1) if service.effect else 0, wrong, service.wasted, read
    )


def _use(tools, clock, action) -> str:
    if action.tool == "wait":
        asked = action.arguments.get("seconds")
        seconds = min(max(float(asked), 0.0), 3600.0) if isinstance(asked, int | float) else 0.0
        clock.advance(seconds)
        return f"waited {seconds:g} seconds"
    if action.tool == "check":
        return tools.check()
    if action.tool == "refresh":
        tools.service.refreshed = True
        return "signed in again"
    if action.tool == "act":
        return tools.act(action.arguments)
    return "there is no such tool"


def table(agents, seeds: int) -> list[str]:
    """The results of all agents, as a table."""
    lines = [
        "| agent | it reads | finished, % (95 %) | duplicates of 60 | wrong belief of 60 | wasted calls (95 %) | bytes read |",
        "|---|---|---|---|---|---|---|",
    ]
    logging.disable(logging.WARNING)
    try:
        for make_agent in agents:
            for presentation in PRESENTATIONS:
                found = [
                    [play(make_agent, presentation, service, seed) for service in scenarios(seed)]
                    for seed in range(seeds)
                ]
                lines.append(_row(make_agent.name, presentation.name, found))
    finally:
        logging.disable(logging.NOTSET)
    return lines


def _row(agent, presentation, found) -> str:
    """One line. Seeds repeat much of a scenario, so the intervals count each scenario once, with the mean of its seeds."""

    def per_scenario(value):
        return [mean(value(each) for each in one) for one in zip(*found, strict=True)]

    finished, wasted = per_scenario(lambda each: each.finished), per_scenario(lambda each: each.wasted)
    low, high = wilson(sum(finished), len(finished))
    margin = 1.96 * stdev(wasted) / sqrt(len(wasted))
    return (
        f"| {agent} | {presentation} | {100 * mean(finished):.0f} ({low:.0f}–{high:.0f}) "
        f"| {sum(per_scenario(lambda each: each.duplicates)):.1f} | {sum(per_scenario(lambda each: each.wrong)):.1f} "
        f"| {mean(wasted):.2f} (±{margin:.2f}) | {mean(per_scenario(lambda each: each.bytes_read)):.0f} |"
    )


def wilson(good: float, total: int) -> tuple[float, float]:
    """The 95 % interval of a share, in percent."""
    z, share = 1.96, good / total
    centre = (share + z * z / (2 * total)) / (1 + z * z / total)
    half = z * sqrt(share * (1 - share) / total + z * z / (4 * total * total)) / (1 + z * z / total)
    return 100 * max(0.0, centre - half), 100 * min(1.0, centre + half)
