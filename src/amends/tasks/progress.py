"""
The steps of a plan whose dependencies are settled, updated as steps settle.

Checking all steps after each step would make the cost of a plan grow with the square of its length.
"""

from __future__ import annotations

from collections.abc import Iterator

from amends.tasks.state import TaskState
from amends.tasks.steps import StepState

__all__ = ["Progress"]


class Progress:
    """The steps of one task that are unblocked and not settled."""

    def __init__(self, state: TaskState) -> None:
        self._blocked = {step.name: len(step.after) for step in state.head.steps}
        self._dependents: dict[str, list[str]] = {}
        for step in state.head.steps:
            for earlier in step.after:
                self._dependents.setdefault(earlier, []).append(step.name)
        self._open = dict.fromkeys(name for name, count in self._blocked.items() if count == 0)

    def steps(self, state: TaskState) -> Iterator[tuple[str, StepState]]:
        """The unblocked steps that are not settled, after an update from the task's current state."""
        steps = state.steps
        found = list(self._open)
        while found:
            following = []
            for name in found:
                if steps[name].settled:
                    del self._open[name]
                    following += self._unblock(name)
            self._open.update(dict.fromkeys(following))
            found = following
        return ((name, steps[name]) for name in list(self._open))

    def _unblock(self, settled_one: str) -> list[str]:
        free = []
        for name in self._dependents.get(settled_one, ()):
            self._blocked[name] -= 1
            if self._blocked[name] == 0:
                free.append(name)
        return free
