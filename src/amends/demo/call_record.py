"""The services' record of every call and effect. The score is computed from it, not from what an agent reports."""

from __future__ import annotations

import time
from collections.abc import Callable

import msgspec

from amends.demo.scenario import STEPS, InvalidChoice, LostResponse, PlannedFailure, RateLimit, Scenario

__all__ = ["Call", "CallRecord", "CurrentRecord", "Tally"]


class Tally(msgspec.Struct):
    """The counts of one step."""

    calls: int = 0
    wasted: int = 0
    """Calls that could not succeed, as the service had announced before."""
    effects: int = 0


class Call(msgspec.Struct, frozen=True):
    """One call that a service received."""

    step: str
    number: int
    failure: PlannedFailure | None
    wasted: bool = False


class CallRecord:
    """The calls and effects of one agent, and the planned failures that are left."""

    def __init__(self, scenario: Scenario, on_call: Callable[[Call], None] = lambda call: None) -> None:
        self._on_call = on_call
        self.tallies = {step.name: Tally() for step in STEPS}
        self._failures: dict[str, list[PlannedFailure]] = {
            name: list(each) for name, each in scenario.failures.items()
        }
        self._ready_at: dict[str, float] = {}
        self._rejected: set[tuple[str, str]] = set()
        self._to_lose: set[str] = set()

    def record_call(self, step: str, choice: str = "") -> PlannedFailure | None:
        """
        Record a call and return the failure it meets, or None.

        A rate limit ends with its time, an invalid choice with an allowed one; a lost response occurs once.
        """
        tally = self.tallies[step]
        tally.calls += 1
        failure, wasted = self._next_failure(step, choice)
        tally.wasted += wasted
        self._on_call(Call(step, tally.calls, failure, wasted))
        return failure

    def _next_failure(self, step: str, choice: str) -> tuple[PlannedFailure | None, bool]:
        """Return the failure that the call meets, and whether the service had announced it to the caller."""
        failures = self._failures[step]
        while failures:
            failure = failures[0]
            if isinstance(failure, LostResponse):
                failures.pop(0)
                self._to_lose.add(step)
                return failure, False
            if isinstance(failure, InvalidChoice) and choice not in failure.allowed:
                announced = (step, choice) in self._rejected
                self._rejected.add((step, choice))
                return failure, announced
            if isinstance(failure, RateLimit):
                remaining, announced = self._remaining_limit(step, failure)
                if remaining is not None:
                    return remaining, announced
            failures.pop(0)
        return None, False

    def _remaining_limit(self, step: str, limit: RateLimit) -> tuple[RateLimit | None, bool]:
        now = time.monotonic()
        if step not in self._ready_at:
            self._ready_at[step] = now + limit.seconds
            return limit, False
        seconds = self._ready_at[step] - now
        return (RateLimit(round(seconds, 3)), True) if seconds > 0 else (None, False)

    def record_effect(self, step: str) -> None:
        """Count one more effect of the step."""
        self.tallies[step].effects += 1

    def take_lost_response(self, step: str) -> bool:
        """Return whether this step's next response must be lost; True only once per lost response."""
        if step in self._to_lose:
            self._to_lose.discard(step)
            return True
        return False


class CurrentRecord:
    """Gives the services the record of the current agent."""

    def __init__(self, scenario: Scenario, on_call: Callable[[Call], None] = lambda call: None) -> None:
        self.scenario = scenario
        self._on_call = on_call
        self.reset()

    def reset(self) -> None:
        """Start a new record for the next agent."""
        self.record = CallRecord(self.scenario, self._on_call)
