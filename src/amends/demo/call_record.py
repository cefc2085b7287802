"""What really happened: every call, every effect, kept by the services and believed by the score."""

from __future__ import annotations

import time
from collections.abc import Callable

import msgspec

from amends.demo.scenario import STEPS, Hurdle, Late, Lost, Story, Wrong

__all__ = ["Call", "Scene", "Tally", "World"]


class Tally(msgspec.Struct):
    """The truth about one step."""

    calls: int = 0
    wasted: int = 0
    """Calls that could not succeed, and whose caller had been told so."""
    effects: int = 0


class Call(msgspec.Struct, frozen=True):
    """One call as the service saw it."""

    step: str
    number: int
    hurdle: Hurdle | None
    wasted: bool = False


class World:
    """The services' memory of one agent's attempt at the job."""

    def __init__(self, story: Story, watch: Callable[[Call], None] = lambda call: None) -> None:
        self._watch = watch
        self.tallies = {step.name: Tally() for step in STEPS}
        self._left: dict[str, list[Hurdle]] = {name: list(each) for name, each in story.hurdles.items()}
        self._open_at: dict[str, float] = {}
        self._refused: set[tuple[str, str]] = set()
        self._cut: set[str] = set()

    def call(self, step: str, wish: str = "") -> Hurdle | None:
        """
        A call arrives: what stands in its way, or None.

        A wait is over when its time is; a wrong wish has to be another one; a lost answer is lost once.
        """
        tally = self.tallies[step]
        tally.calls += 1
        hurdle, wasted = self._met(step, wish)
        tally.wasted += wasted
        self._watch(Call(step, tally.calls, hurdle, wasted))
        return hurdle

    def _met(self, step: str, wish: str) -> tuple[Hurdle | None, bool]:
        """What the call meets, and whether its caller had been told that it would."""
        left = self._left[step]
        while left:
            hurdle = left[0]
            if isinstance(hurdle, Lost):
                left.pop(0)
                self._cut.add(step)
                return hurdle, False
            if isinstance(hurdle, Wrong) and wish not in hurdle.allowed:
                told = (step, wish) in self._refused
                self._refused.add((step, wish))
                return hurdle, told
            if isinstance(hurdle, Late):
                wait, told = self._waits(step, hurdle)
                if wait is not None:
                    return wait, told
            left.pop(0)
        return None, False

    def _waits(self, step: str, hurdle: Late) -> tuple[Late | None, bool]:
        now = time.monotonic()
        if step not in self._open_at:
            self._open_at[step] = now + hurdle.seconds
            return hurdle, False
        left = self._open_at[step] - now
        return (Late(round(left, 3)), True) if left > 0 else (None, False)

    def effect(self, step: str) -> None:
        """The step's effect takes place, once more."""
        self.tallies[step].effects += 1

    def cuts(self, step: str) -> bool:
        """Whether this step's answer is to be lost; asked once."""
        if step in self._cut:
            self._cut.discard(step)
            return True
        return False


class Scene:
    """Where the services find the world of the agent that is trying now."""

    def __init__(self, story: Story, watch: Callable[[Call], None] = lambda call: None) -> None:
        self.story = story
        self._watch = watch
        self.reset()

    def reset(self) -> None:
        """The next agent begins with everything as it was."""
        self.world = World(self.story, self._watch)
