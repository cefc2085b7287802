"""
The state of a task, derived from its log by applying the records in order. Pure: no clock, no store, no agents.

Workers use the state to see what is left to do, callers to get the response. Decisions are part of the records, so the state does
not depend on the policies or agents of the process that reads the log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

from amends.core.fault import Fault
from amends.durable.journal import ImpossibleRecord
from amends.tasks import entries
from amends.tasks.documents import ENDED, Metadata, Response, Status
from amends.tasks.entries import Record
from amends.tasks.plan import Step
from amends.tasks.steps import StepState, copy_fields

__all__ = ["TaskState"]


_NOT_SUBMITTED = entries.Submitted(at=0.0, id="", type="", steps=())
_NOT_RELEASED = entries.Released(at=0.0)


@dataclass(slots=True)
class TaskState:
    """The state of a task after the records of its log. A value: `after` returns another one."""

    head: entries.Submitted = _NOT_SUBMITTED
    """The request."""
    agent: str | None = None
    """The agent of the task, if all steps have the same one."""
    status: Status = Status.PENDING
    created: float = 0.0
    updated: float = 0.0
    began: float | None = None
    ended: float | None = None
    fault: Fault | None = None
    """Why the task failed, or why it is being undone."""
    steps: dict[str, StepState] = field(default_factory=dict)
    done: list[str] = field(default_factory=list)
    """Steps and delegations in the order in which they finished. They are undone in reverse."""
    cancelled: bool = False
    undoing: bool = False
    held: bool = False
    """Whether a worker has recorded that it runs the task, and has not released it since."""
    takeovers: int = 0
    """The number of workers that were lost since a step last finished."""
    release: entries.Released = _NOT_RELEASED
    """The last release of the task."""
    command_pending: bool = False
    """Whether a command was appended since the task was last released or taken."""
    copied: set[str] = field(default_factory=set, compare=False, repr=False)
    """The steps that this state does not share with the one it was made from."""

    def after(self, records: Iterable[Record]) -> TaskState:
        """
        Return the state after these records.

        Raises:
            ImpossibleRecord: a record does not fit the state.
        """
        made = copy_fields(self)
        made.steps, made.done, made.copied = dict(self.steps), list(self.done), set()
        for record in records:
            made._apply(record)  # noqa: SLF001 - of this class
        return made

    def _apply(self, record: Record) -> None:
        if self.head is _NOT_SUBMITTED and not isinstance(record, entries.Submitted):
            raise ImpossibleRecord
        try:
            self._FOLD[type(record)](self, record)
        except (KeyError, ValueError) as error:
            raise ImpossibleRecord from error
        self.updated = record.at

    # Records ----------------------------------------------------------------------------------------------------

    def _submitted(self, record: entries.Submitted) -> None:
        self.head, self.created = record, record.at
        self.steps = {step.name: StepState(step) for step in record.steps}
        agents = {step.agent for step in record.steps}
        self.agent = record.agent or (agents.pop() if len(agents) == 1 else None)

    def _taken(self, record: entries.Taken) -> None:
        self.takeovers += record.takeover
        self._mark_running(record.at)

    def _mark_running(self, at: float) -> None:
        self.held, self.command_pending = True, False
        if self.status not in ENDED:
            self.status = Status.IN_PROGRESS
        if self.began is None:
            self.began = at

    def _step(self, step: str, undo: bool = False) -> StepState:
        """The step, copied before its first change."""
        found = self.steps[step]
        if step not in self.copied:
            self.copied.add(step)
            self.steps[step] = found = found.copy()
        if not undo:
            return found
        if found.undo is None:
            found.undo = StepState(found.plan)
        return found.undo

    def _started(self, record: entries.Started) -> None:
        step = self._step(record.step, record.undo)
        step.open, step.began = True, record.at if step.began is None else step.began
        self._mark_running(record.at)

    def _failed(self, record: entries.Failed) -> None:
        step = self._step(record.step, record.undo)
        step.began = record.began if step.began is None else step.began
        step.apply_failed(record)
        self._mark_running(record.began)

    def _finished(self, record: entries.Finished) -> None:
        step = self._step(record.step, record.undo)
        step.began = record.began if step.began is None else step.began
        step.apply_finished(record)
        if not record.undo:
            self.done.append(record.step)
        self.takeovers = 0
        self._mark_running(record.began)

    def _effect(self, record: entries.Effect) -> None:
        self._step(record.step, record.undo).effects[record.name] = record.result
        self._mark_running(record.at)

    def _delegated(self, record: entries.Delegated) -> None:
        plan = Step(name=record.step, type=record.type, payload=record.payload, agent=record.agent)
        parent = self._step(record.step.partition(">")[0])
        parent.delegations[record.step] = record.result
        self.steps[record.step] = StepState(
            plan,
            "done",
            result=record.result,
            began=record.began,
            ended=record.at,
            round=parent.delegation_round(record.step),
        )
        self.done.append(record.step)
        self.takeovers = 0
        self._mark_running(record.began)

    def _parked(self, record: entries.Parked) -> None:
        step = self._step(record.step)
        step.due = record.until
        step.stepper = step.stepper.waited(record.until - record.at)
        self._mark_running(record.at)

    def _asked(self, record: entries.Asked) -> None:
        step = self._step(record.step)
        step.state, step.question, step.schema, step.open = "asking", record.question, record.schema, False
        self._mark_running(record.at)

    def _answered(self, record: entries.Answered) -> None:
        step = self._step(record.step)
        step.answers.append(record.answer)
        step.state, step.question, step.schema = "ready", None, None
        self.command_pending = True

    def _doubted(self, record: entries.Doubted) -> None:
        step = self._step(record.step)
        step.state, step.open = "doubt", False
        self._mark_running(record.at)

    def _verified(self, record: entries.Verified) -> None:
        step = self._step(record.step)
        step.open = False
        if record.happened:
            step.state, step.result, step.ended = "done", record.result, record.at
            self.done.append(record.step)
        else:
            step.state, step.due = "ready", record.at
        self.command_pending = True

    def _released(self, record: entries.Released) -> None:
        self.held, self.release, self.command_pending = False, record, False
        if self.status not in ENDED:
            waits = any(step.state in {"asking", "doubt"} for step in self.steps.values())
            nothing_else = record.until is None and waits
            self.status = Status.INPUT_REQUIRED if nothing_else else Status.IN_PROGRESS

    def _cancelled(self, record: entries.Cancelled) -> None:
        self.cancelled = self.command_pending = True

    def _retried(self, record: entries.Retried) -> None:
        undone = {name for name, step in self.steps.items() if step.undo and step.undo.state == "done"}
        # A step whose delegation was undone has to run again.
        to_repeat = undone | {ancestor for name in undone for ancestor in _ancestors(name)}
        for name in list(self.steps):
            step = self._step(name)
            if ">" in name:
                if name in to_repeat:
                    parent = self._step(name.partition(">")[0])
                    parent.delegations.pop(name, None)
                    parent.redone[name] = parent.redone.get(name, 0) + (name in undone)
                    del self.steps[name]
            elif name in to_repeat or step.state != "done":
                step.reset()
            else:
                step.undo = None
        self.done = [name for name in self.done if name in self.steps and self.steps[name].state == "done"]
        self.status, self.ended, self.fault = Status.PENDING, None, None
        self.cancelled = self.undoing = self.held = False
        self.release, self.takeovers, self.command_pending = entries.Released(at=record.at), 0, True

    def _repaired(self, record: entries.Repaired) -> None:
        # The entries that could not be read may have started any step that is not settled.
        for name, step in list(self.steps.items()):
            if step.state == "ready":
                self._step(name).open = True

    def _undoing(self, record: entries.Undoing) -> None:
        self.undoing, self.fault = True, record.fault
        self._mark_running(record.at)

    def _ended(self, record: entries.Ended) -> None:
        self.status, self.fault, self.ended = Status(record.status), record.fault, record.at
        self.held = self.command_pending = False
        if self.began is None:
            self.began = record.at

    _FOLD: ClassVar[dict[type[Record], Callable[[TaskState, Any], None]]] = {
        entries.Submitted: _submitted,
        entries.Taken: _taken,
        entries.Started: _started,
        entries.Failed: _failed,
        entries.Finished: _finished,
        entries.Effect: _effect,
        entries.Delegated: _delegated,
        entries.Parked: _parked,
        entries.Asked: _asked,
        entries.Answered: _answered,
        entries.Doubted: _doubted,
        entries.Verified: _verified,
        entries.Released: _released,
        entries.Cancelled: _cancelled,
        entries.Retried: _retried,
        entries.Repaired: _repaired,
        entries.Undoing: _undoing,
        entries.Ended: _ended,
    }

    # Derived values ---------------------------------------------------------------------------------------------

    @property
    def over(self) -> bool:
        """Whether the task has ended."""
        return self.status in ENDED

    @property
    def results(self) -> dict[str, Any]:
        """The results of the plan's finished steps."""
        return {
            step.name: self.steps[step.name].result
            for step in self.head.steps
            if self.steps[step.name].state == "done"
        }

    def pending_input(self) -> dict[str, Any] | None:
        """The first question or verification that the task waits for."""
        for name, step in self.steps.items():
            if step.state == "asking":
                found: dict[str, Any] = {"step": name, "kind": "answer", "question": step.question}
                return {**found, "schema": step.schema} if step.schema else found
            if step.state == "doubt":
                return {"step": name, "kind": "verify", "question": f"Did “{step.plan.type}” happen?"}
        return None

    def response(self) -> Response:
        """The current response."""
        single = self.head.single
        results = self.results
        result: Any = None
        if self.status is Status.COMPLETED:
            result = next(iter(results.values()), None) if single else results
        failures = None
        if not single and self.status is Status.COMPLETED:
            failures = {name: step.fault for name, step in self.steps.items() if step.fault is not None}
        return Response(
            id=self.head.id,
            status=self.status,
            result=result,
            error=self.fault if self.status is Status.FAILED else None,
            input=self.pending_input() if self.status is Status.INPUT_REQUIRED else None,
            failures=failures or None,
            metadata=Metadata(
                started=self.began,
                completed=self.ended,
                agent=self.agent,
                degraded=self.status is Status.COMPLETED
                and any(step.degraded is not None for step in self.steps.values()),
            ),
        )


def _ancestors(name: str) -> Iterator[str]:
    """The delegations and the step that a delegation was made for."""
    while ">" in name:
        name = name.rpartition(">")[0]
        yield name
