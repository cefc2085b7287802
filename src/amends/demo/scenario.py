"""The job: a supper for eight. Six steps over five services, and what goes wrong in each."""

from __future__ import annotations

import random

import msgspec

__all__ = ["STEPS", "Hurdle", "Late", "Lost", "Step", "Story", "Wrong", "tell"]


class Late(msgspec.Struct, frozen=True, tag=True):
    """Too many calls: come back after some seconds. Sooner is a wasted call."""

    seconds: float


class Wrong(msgspec.Struct, frozen=True, tag=True):
    """The request cannot be served as it is; one of `allowed` can. The same again is a wasted call."""

    allowed: tuple[str, ...]


class Lost(msgspec.Struct, frozen=True, tag=True):
    """It happens, and the connection breaks before the answer is there."""


Hurdle = Late | Wrong | Lost


class Step(msgspec.Struct, frozen=True):
    """One thing the agent has to get done."""

    name: str
    service: str
    title: str
    effect: bool
    """Whether doing it twice does harm."""


STEPS = (
    Step("prices", "HTTP API", "ask for today's prices", effect=False),
    Step("order", "HTTP API", "order the groceries", effect=True),
    Step("wine", "command", "set wine aside", effect=True),
    Step("table", "MCP server", "find a table for eight", effect=False),
    Step("menu", "A2A agent", "have the chef write a menu", effect=False),
    Step("charge", "ARCP runtime", "pay the deposit", effect=True),
)


class Story(msgspec.Struct, frozen=True):
    """What stands in the way of each step, in order."""

    seed: int
    hurdles: dict[str, tuple[Hurdle, ...]]
    wished: str
    """The time that is asked for first, and cannot be had."""


def tell(seed: int) -> Story:
    """The story of a seed: the same seed, the same story."""
    dice = random.Random(seed)  # noqa: S311 - a story, not a secret
    times = dice.sample(("18:00", "18:30", "19:00", "20:30", "21:00"), 3)

    def late() -> Late:
        return Late(float(dice.choice((1, 3))))

    return Story(
        seed=seed,
        wished=times[0],
        hurdles={
            "prices": (late(),),
            "order": (Lost(),),
            "wine": (late(),),
            "table": (Wrong(tuple(times[1:])), late()),
            "menu": (late(),),
            "charge": (Lost(),),
        },
    )
