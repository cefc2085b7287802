"""
The rules by which the records of a log change the state of a task. Pure: no clock, no store, no agents.

Workers use the state to see what is left to do, callers to get the response. Decisions are part of the records, so the state does
not depend on the policies or agents of the process that reads the log.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import amends.tasks.entries as log_entries
from amends.durable.journal import ImpossibleRecord
from amends.tasks.documents import ENDED, Status
from amends.tasks.entries import Record
from amends.tasks.plan import Step
from amends.tasks.steps import StepState, copy_fields
from amends.tasks.task_facts import NOT_SUBMITTED, TaskFacts

__all__ = ["TaskState"]


@dataclass(slots=True)
class TaskState(TaskFacts):
    """The state of a task after the records of its log. A value: `after` returns another one."""

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
