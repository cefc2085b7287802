"""The demo's job: a dinner for eight. Six steps with five services, and the planned failure of each step."""

from __future__ import annotations

import random

import msgspec

__all__ = [
    "STEPS",
    "InvalidChoice",
    "LostResponse",
    "PlannedFailure",
    "RateLimit",
    "Scenario",
    "Step",
    "make_scenario",
]


class RateLimit(msgspec.Struct, frozen=True, tag=True):
    """Calls are rejected for some seconds. A call within that time is wasted."""

    seconds: float


class InvalidChoice(msgspec.Struct, frozen=True, tag=True):
    """A request is rejected unless it asks for one of `allowed`. Repeating the same request is wasted."""

    allowed: tuple[str, ...]


class LostResponse(msgspec.Struct, frozen=True, tag=True):
    """The call takes effect, and the connection breaks before the response arrives."""


PlannedFailure = RateLimit | InvalidChoice | LostResponse


class Step(msgspec.Struct, frozen=True):
    """One step of the job."""

    name: str
    service: str
    title: str
    effect: bool
    """Whether the step must not happen twice."""


STEPS = (
    Step("prices", "HTTP API", "get today's prices", effect=False),
    Step("order", "HTTP API", "order the groceries", effect=True),
    Step("wine", "command", "reserve the wine", effect=True),
    Step("table", "MCP server", "find a table for eight", effect=False),
    Step("menu", "A2A agent", "ask the chef for a menu", effect=False),
    Step("charge", "ARCP runtime", "pay the deposit", effect=True),
)


class Scenario(msgspec.Struct, frozen=True):
    """The planned failures of each step, in order."""

    seed: int
    failures: dict[str, tuple[PlannedFailure, ...]]
    requested_time: str
    """The time that the agent asks for first; no table is free then."""


def make_scenario(seed: int) -> Scenario:
    """Return the scenario of a seed; the same seed always gives the same scenario."""
    dice = random.Random(seed)  # noqa: S311 - reproducible, not secret
    times = dice.sample(("18:00", "18:30", "19:00", "20:30", "21:00"), 3)

    def rate_limit() -> RateLimit:
        return RateLimit(float(dice.choice((1, 3))))

    return Scenario(
        seed=seed,
        requested_time=times[0],
        failures={
            "prices": (rate_limit(),),
            "order": (LostResponse(),),
            "wine": (rate_limit(),),
            "table": (InvalidChoice(tuple(times[1:])), rate_limit()),
            "menu": (rate_limit(),),
            "charge": (LostResponse(),),
        },
    )
