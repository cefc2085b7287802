"""The journal of the durable steps inside one step of a task: records of the task's own log."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from amends.durable.batch import in_background
from amends.effects.steps import StepKind, StepRecord
from amends.stores.deadlines import Deadlines
from amends.tasks.context import Context, Suspended
from amends.tasks.entries import Doubted, Stepped
from amends.tasks.journal import Journal
from amends.tasks.state import StepState

__all__ = ["TaskSteps"]


class TaskSteps:
    """What an attempt of a step, or of undoing one, did before, and where it records what it does."""

    def __init__(self, journal: Journal, ctx: Context, clock: Callable[[], float]) -> None:
        self._journal, self._undo, self._clock = journal, ctx.undo, clock
        self._attempt, self._answers = ctx.attempt, len(ctx.answers)
        self._where, self._prefix = ctx.step_name, ""
        if ">" in ctx.step_name and not ctx.undo:
            # A delegation is recorded when it is done. Until then its steps are recorded with the delegating step.
            self._where, self._prefix = ctx.step_name.partition(">")[0], f"{ctx.key}:"
        self.id = ctx.key
        self.deadlines = Deadlines.of(journal.store)
        self._loop = asyncio.get_running_loop()

    @property
    def _step(self) -> StepState:
        step = self._journal.state.steps[self._where]
        return (step.undo or StepState(step.plan)) if self._undo else step

    @property
    def restarted(self) -> bool:
        """Whether this may not be the first attempt."""
        return self._attempt > 1 or self._answers > 0 or self._journal.state.takes > 1

    def find(self, step: str) -> tuple[StepKind, StepRecord] | None:
        """Return the newest record of a step."""
        return self._step.inner.get(self._prefix + step)

    def ends(self) -> Iterable[StepRecord]:
        """Return the records of the steps that have ended."""
        return [record for kind, record in self._step.inner.values() if kind == "end"]

    def _record(self, kind: StepKind, record: StepRecord) -> Stepped:
        return Stepped(
            at=self._clock(),
            step=self._where,
            identity=self._prefix + record.step,
            kind=kind,
            record=record,
            undo=self._undo,
        )

    async def write(self, kind: StepKind, record: StepRecord) -> None:
        """Store a record. Raises Fenced if another worker has the task."""
        await self._journal.write([self._record(kind, record)])

    def note(self, kind: StepKind, record: StepRecord) -> None:
        """Store a record soon. May be called from any thread."""
        noted = self._record(kind, record)
        try:
            here = asyncio.get_running_loop() is self._loop
        except RuntimeError:
            here = False
        if here:
            in_background(self._journal.write([noted], if_open=True))
        else:
            self._loop.call_soon_threadsafe(self._note, noted)

    def _note(self, noted: Stepped) -> None:
        in_background(self._journal.write([noted], if_open=True))

    async def doubt(self, record: StepRecord) -> BaseException:
        """Let the task wait for the answer whether a step happened."""
        await self._journal.write(
            [Doubted(at=self._clock(), step=self._where, inner=self._prefix + record.step)]
        )
        return Suspended()
