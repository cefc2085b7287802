"""
The state of a task, and the rules by which the records of its log change it. Pure: no clock, no store, no agents.

Workers use the state to see what is left to do, callers to get the response. Decisions are part of the records, so the state does
not depend on the policies or agents of the process that reads the log.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import amends.tasks.entries as log_entries
from amends.core.fault import Fault
from amends.durable.journal import ImpossibleRecord
from amends.tasks.documents import ENDED, Metadata, Response, Status
from amends.tasks.entries import Record
from amends.tasks.plan import Step
from amends.tasks.steps import StepState, copy_fields

__all__ = ["TaskState"]

NOT_SUBMITTED = log_entries.Submitted(at=0.0, id="", type="", steps=())
NOT_RELEASED = log_entries.Released(at=0.0)


@dataclass(slots=True)
class TaskState:
    """The state of a task after the records of its log. A value: `after` returns another one."""

    head: log_entries.Submitted = NOT_SUBMITTED
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
    message: str = ""
    """The key of the message that the last worker held the task by. Only its delivery means that this worker was lost."""
    takeovers: int = 0
    """The number of workers that were lost since a step last finished."""
    alone: bool = False
    """Whether the last worker that took the task over ran nothing else."""
    stop_undo: bool = False
    """Whether the end of the undo that is under way was requested."""
    promises: dict[str, str] = field(default_factory=dict)
    """What the last worker's code, or the submitter's, declared about repeating each step."""
    release: log_entries.Released = NOT_RELEASED
    """The last release of the task."""
    command_pending: bool = False
    """Whether a command was appended since the task was last released or taken."""
    copied: set[str] = field(default_factory=set, compare=False, repr=False)
    """The steps that this state does not share with the one it was made from."""

    # What follows from the state: the response, and what the task waits for --------------------------------------

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

    @property
    def in_doubt(self) -> list[str]:
        """The steps and delegations of which it is unknown whether they happened."""
        return [name for name, step in self.steps.items() if step.in_doubt]

    @property
    def waits(self) -> bool:
        """Whether a step waits for an answer or a verification."""
        return any(step.state in {"asking", "doubt"} for step in self.steps.values())

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
            failed = {step.name: self.steps[step.name].fault for step in self.head.steps}
            failures = {name: fault for name, fault in failed.items() if fault is not None}
        return Response(
            id=self.head.id,
            status=self.status,
            result=result,
            error=self.fault if self.over and self.status is not Status.COMPLETED else None,
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

    # The rules by which records change it ------------------------------------------------------------------------

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
        if self.head is NOT_SUBMITTED and not isinstance(record, log_entries.Submitted):
            raise ImpossibleRecord
        try:
            getattr(self, f"_{type(record).__name__.lower()}")(record)
        except (KeyError, ValueError) as error:
            raise ImpossibleRecord from error
        self.updated = record.at

    # Records: one method for each, with its name ----------------------------------------------------------------

    def _submitted(self, record: log_entries.Submitted) -> None:
        self.head, self.created, self.message = record, record.at, record.id
        self.promises = record.promises or {}
        self.steps = {step.name: StepState(step) for step in record.steps}
        agents = {step.agent for step in record.steps}
        self.agent = record.agent or (agents.pop() if len(agents) == 1 else None)

    def _taken(self, record: log_entries.Taken) -> None:
        self.promises = self.promises if record.promises is None else record.promises
        self.message = self.head.id if record.message is None else record.message
        if record.takeover:
            self.takeovers += 1
            self.alone = record.alone
            for name, step in list(self.steps.items()):
                if step.state == "ready" and all(self.steps[earlier].settled for earlier in step.plan.after):
                    self._step(name).contested = record.at
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

    def _started(self, record: log_entries.Started) -> None:
        if ">" in record.step and record.step not in self.steps:
            self._add_delegation(record.step, record.agent, record.type or "", record.payload)
        step = self._step(record.step, record.undo)
        step.open, step.began = True, record.at if step.began is None else step.began
        step.promises = record.promises
        if not record.undo and step.state != "done":
            step.state = "ready"
        self._mark_running(record.at)

    def _add_delegation(self, name: str, agent: str | None, type: str, payload: Any) -> StepState:
        parent = self._step(name.partition(">")[0])
        made = self.steps[name] = self.delegation(name, agent, type, payload, parent)
        self.copied.add(name)
        return made

    @staticmethod
    def delegation(name: str, agent: str | None, type: str, payload: Any, parent: StepState) -> StepState:
        """The state of a delegation that has not been made."""
        plan = Step(name=name, type=type, payload=payload, agent=agent)
        return StepState(plan, round=parent.delegation_round(name))

    def _failed(self, record: log_entries.Failed) -> None:
        step = self._step(record.step, record.undo)
        step.began = record.began if step.began is None else step.began
        step.apply_failed(record)
        self.stop_undo = self.stop_undo and not record.undo
        self._mark_running(record.began)

    def _finished(self, record: log_entries.Finished) -> None:
        step = self._step(record.step, record.undo)
        step.began = record.began if step.began is None else step.began
        step.apply_finished(record)
        if not record.undo:
            self.done.append(record.step)
        self.takeovers, self.alone = 0, False
        self.stop_undo = self.stop_undo and not record.undo
        self._mark_running(record.began)

    def _effect(self, record: log_entries.Effect) -> None:
        self._step(record.step, record.undo).effects[record.name] = record.result
        self._mark_running(record.at)

    def _delegated(self, record: log_entries.Delegated) -> None:
        step = self._add_delegation(record.step, record.agent, record.type, record.payload)
        step.began = record.began
        self._delegation_done(record.step, step, record.result, record.at)
        self.takeovers, self.alone = 0, False
        self._mark_running(record.at)

    def _delegation_done(self, name: str, step: StepState, result: Any, at: float) -> None:
        self._step(name.partition(">")[0]).delegations[name] = result
        step.state, step.result, step.ended = "done", result, at
        step.open = step.doubtful = False
        self.done.append(name)

    def _parked(self, record: log_entries.Parked) -> None:
        step = self._step(record.step)
        step.due, step.open = record.until, False  # it was not called
        step.stepper = step.stepper.waited(record.until - record.at)
        self._mark_running(record.at)

    def _asked(self, record: log_entries.Asked) -> None:
        step = self._step(record.step)
        step.state, step.question, step.schema, step.open = "asking", record.question, record.schema, False
        self._mark_running(record.at)

    def _answered(self, record: log_entries.Answered) -> None:
        step = self._step(record.step)
        step.answers.append(record.answer)
        step.state, step.question, step.schema = "ready", None, None
        self.command_pending = True

    def _doubted(self, record: log_entries.Doubted) -> None:
        step = self._step(record.step)
        step.state, step.open = "doubt", False
        self._mark_running(record.at)

    def _verified(self, record: log_entries.Verified) -> None:
        step = self._step(record.step)
        step.open = step.doubtful = False
        if record.happened and ">" in record.step:
            self._delegation_done(record.step, step, record.result, record.at)
        elif record.happened:
            step.state, step.result, step.ended = "done", record.result, record.at
            self.done.append(record.step)
        else:
            step.state, step.due = "ready", record.at
        self.command_pending = True

    def _released(self, record: log_entries.Released) -> None:
        self.held, self.release, self.command_pending = False, record, False
        if self.status not in ENDED:
            nothing_else = (record.until is None or record.waits) and self.waits
            self.status = Status.INPUT_REQUIRED if nothing_else else Status.IN_PROGRESS

    def _cancelled(self, record: log_entries.Cancelled) -> None:
        self.stop_undo = self.undoing
        self.cancelled = self.command_pending = True

    def _retried(self, record: log_entries.Retried) -> None:
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
                elif step.state != "done":
                    step.reset()
            elif name in to_repeat or step.state != "done":
                step.reset()
            else:
                step.undo = None
        self.done = [name for name in self.done if name in self.steps and self.steps[name].state == "done"]
        self.status, self.ended, self.fault = Status.PENDING, None, None
        self.cancelled = self.undoing = self.stop_undo = self.held = self.alone = False
        self.release, self.takeovers, self.command_pending = log_entries.Released(at=record.at), 0, True

    def _repaired(self, record: log_entries.Repaired) -> None:
        # The entries that could not be read may have started any step that is not settled.
        for name, step in list(self.steps.items()):
            if step.state == "ready":
                self._step(name).open = True

    def _undoing(self, record: log_entries.Undoing) -> None:
        self.undoing, self.fault = True, record.fault
        self._mark_running(record.at)

    def _ended(self, record: log_entries.Ended) -> None:
        self.status, self.fault, self.ended = Status(record.status), record.fault, record.at
        self.held = self.command_pending = False
        if self.began is None:
            self.began = record.at


def _ancestors(name: str) -> Iterator[str]:
    """The delegations and the step that a delegation was made for."""
    while ">" in name:
        name = name.rpartition(">")[0]
        yield name
