"""
The rules by which the records of a task's log change its state. Pure: no clock, no store, no agents.

Decisions are part of the records, so the state does not depend on the policies or agents of the process that reads the log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from copy import copy
from typing import Any

import msgspec
from msgspec.structs import replace

import amends.tasks.entries as log_entries
from amends.core.enums import Action, Executed, Recovery
from amends.durable.journal import ImpossibleRecord
from amends.recovery.history import Attempt
from amends.recovery.stepper import Stepper
from amends.tasks.context import is_made_by_undo
from amends.tasks.documents import ENDED, Status
from amends.tasks.entries import Record
from amends.tasks.plan import Step
from amends.tasks.state import NOT_SUBMITTED, StepState, TaskState

__all__ = ["delegation", "fold"]


def fold(state: TaskState, records: Iterable[Record]) -> TaskState:
    """
    Return the state after these records. The given state does not change.

    Raises:
        ImpossibleRecord: a record does not fit the state.
    """
    made = copy(state)
    made.steps, made.done, made.copied = dict(state.steps), list(state.done), set()
    for record in records:
        if made.head is NOT_SUBMITTED and not isinstance(record, log_entries.Submitted):
            raise ImpossibleRecord
        try:
            _RULES[type(record)](made, record)
        except (KeyError, ValueError) as error:
            raise ImpossibleRecord from error
        made.updated = record.at
    return made


def _mark_running(task: TaskState, at: float) -> None:
    task.held, task.command_pending = True, False
    if task.status not in ENDED:
        task.status = Status.IN_PROGRESS
    if task.began is None:
        task.began = at


def _step(task: TaskState, name: str, undo: bool = False) -> StepState:
    """The step, or the attempts to undo it; copied before its first change."""
    step = task.steps[name]
    if name not in task.copied:
        task.copied.add(name)
        step = task.steps[name] = copy(step)
        step.answers, step.effects, step.inner = list(step.answers), dict(step.effects), dict(step.inner)
        step.delegations, step.redone = dict(step.delegations), dict(step.redone)
        if step.undo is not None:
            step.undo = copy(step.undo)
            step.undo.effects, step.undo.inner = dict(step.undo.effects), dict(step.undo.inner)
    if not undo:
        return step
    if step.undo is None:
        step.undo = StepState(step.plan)
    return step.undo


# The life of a task ---------------------------------------------------------------------------------------------


def _submitted(task: TaskState, record: log_entries.Submitted) -> None:
    task.head, task.created, task.message = record, record.at, record.id
    task.promises = record.promises or {}
    task.steps = {step.name: StepState(step) for step in record.steps}
    agents = {step.agent for step in record.steps}
    task.agent = record.agent or (agents.pop() if len(agents) == 1 else None)


def _taken(task: TaskState, record: log_entries.Taken) -> None:
    task.promises = task.promises if record.promises is None else record.promises
    task.message = task.head.id if record.message is None else record.message
    task.takes += 1
    if record.takeover:
        task.takeovers += 1
        task.alone = record.alone
        for name, step in list(task.steps.items()):
            if step.state == "ready" and all(task.steps[earlier].settled for earlier in step.plan.after):
                _step(task, name).contested = record.at
    _mark_running(task, record.at)


def _released(task: TaskState, record: log_entries.Released) -> None:
    task.held, task.release, task.command_pending = False, record, False
    if task.status not in ENDED:
        nothing_else = (record.until is None or record.waits) and task.waits
        task.status = Status.INPUT_REQUIRED if nothing_else else Status.IN_PROGRESS


def _cancelled(task: TaskState, record: log_entries.Cancelled) -> None:
    task.stop_undo = task.undoing
    task.cancelled = task.command_pending = True


def _repaired(task: TaskState, record: log_entries.Repaired) -> None:
    # The entries that could not be read may have started any step that is not settled.
    for name, step in list(task.steps.items()):
        if step.state == "ready":
            _step(task, name).open = True


def _undoing(task: TaskState, record: log_entries.Undoing) -> None:
    task.undoing, task.fault = True, record.fault
    _mark_running(task, record.at)


def _ended(task: TaskState, record: log_entries.Ended) -> None:
    task.status, task.fault, task.ended = Status(record.status), record.fault, record.at
    task.held = task.command_pending = False
    if task.began is None:
        task.began = record.at


def _retried(task: TaskState, record: log_entries.Retried) -> None:
    undone = {name for name, step in task.steps.items() if step.undo and step.undo.state == "done"}
    # A step whose delegation was undone has to run again.
    to_repeat = undone | {ancestor for name in undone for ancestor in _ancestors(name)}
    for name in list(task.steps):
        step = _step(task, name)
        undone_by_caller = name.partition(">")[0] in undone and not step.in_doubt
        if ">" in name and (name in to_repeat or undone_by_caller):
            parent = _step(task, name.partition(">")[0])
            parent.delegations.pop(name, None)
            parent.redone[name] = parent.redone.get(name, 0) + (name in undone)
            del task.steps[name]
        elif name in to_repeat or step.state != "done":
            _reset(step)
        elif ">" not in name:
            step.undo = None
    task.done = [name for name in task.done if name in task.steps and task.steps[name].state == "done"]
    task.status, task.ended, task.fault = Status.PENDING, None, None
    task.cancelled = task.undoing = task.stop_undo = task.held = task.alone = False
    task.release, task.takeovers, task.command_pending = log_entries.Released(at=record.at), 0, True


def _ancestors(name: str) -> Iterator[str]:
    """The delegations and the step that a delegation was made for."""
    while ">" in name:
        name = name.rpartition(">")[0]
        yield name


def _reset(step: StepState) -> None:
    """Forget the attempts. Answers and committed effects are kept, unless the step was undone."""
    if step.undo is not None and step.undo.state == "done":
        step.round += 1
        step.effects.clear()
        step.inner.clear()
        step.delegations.clear()
        step.answers.clear()
    # What may have happened has to be verified before it is done again.
    step.open, step.doubtful = step.in_doubt, False
    step.state, step.stepper, step.due, step.undo = "ready", Stepper(), 0.0, None
    step.result = step.degraded = step.ended = step.doubt_of = None


# Steps ----------------------------------------------------------------------------------------------------------


def _started(task: TaskState, record: log_entries.Started) -> None:
    if ">" in record.step and record.step not in task.steps:
        _add_delegation(task, record.step, record.agent, record.type or "", record.payload)
    step = _step(task, record.step, record.undo)
    step.open, step.began = True, record.at if step.began is None else step.began
    step.promises = record.promises
    if not record.undo and step.state != "done":
        step.state = "ready"
    _mark_running(task, record.at)


def _failed(task: TaskState, record: log_entries.Failed) -> None:
    step = _step(task, record.step, record.undo)
    step.began = record.began if step.began is None else step.began
    before, fault, decision = step.stepper, record.fault, record.decision
    retried = decision.action is Action.RETRY
    wait = (decision.delay or 0.0) if retried else 0.0
    state = replace(
        before.state,
        attempt=before.state.attempt + 1,
        started=record.began if before.state.started is None else before.state.started,
        waited=before.state.waited + wait,
        below=before.state.below + max(0, (fault.attempt or 1) - 1),
        uncertain=before.state.uncertain + (retried and fault.recovery is Recovery.UNCERTAIN),
    )
    attempt = Attempt(
        number=state.attempt,
        started=record.began,
        duration=record.at - record.began,
        fault=fault,
        decision=decision,
        wait=wait,
    )
    step.stepper = replace(
        before,
        state=state,
        history=(*before.history, attempt),
        fault=fault,
        verdict=decision,
        remedies=before.remedies | {record.remedy} if record.remedy else before.remedies,
    )
    step.doubtful = not retried and step.open and fault.executed is not Executed.NO
    step.open, step.ended = False, record.at
    step.state, step.due = "ready" if retried else "failed", record.at + wait
    task.stop_undo = task.stop_undo and not record.undo
    _mark_running(task, record.began)


def _finished(task: TaskState, record: log_entries.Finished) -> None:
    """The end of a step, by the call itself or by a fallback."""
    step = _step(task, record.step, record.undo)
    step.began = record.began if step.began is None else step.began
    if record.degraded is None:
        step.stepper = step.stepper.succeeded(started=record.began, ended=record.at)
    step.degraded = record.degraded
    _done(step, record.result, record.at)
    if not record.undo:
        task.done.append(record.step)
    task.takeovers, task.alone = 0, False
    task.stop_undo = task.stop_undo and not record.undo
    _mark_running(task, record.began)


def _done(step: StepState, result: object, at: float) -> None:
    step.state, step.result, step.ended = "done", result, at
    step.open = step.doubtful = False


def _effect(task: TaskState, record: log_entries.Effect) -> None:
    _step(task, record.step, record.undo).effects[record.name] = record.result
    _mark_running(task, record.at)


def _stepped(task: TaskState, record: log_entries.Stepped) -> None:
    _step(task, record.step, record.undo).inner[record.identity] = record.kind, record.record
    _mark_running(task, record.at)


def _parked(task: TaskState, record: log_entries.Parked) -> None:
    step = _step(task, record.step)
    step.due, step.open = record.until, False  # it was not called
    step.stepper = step.stepper.waited(record.until - record.at)
    _mark_running(task, record.at)


def _asked(task: TaskState, record: log_entries.Asked) -> None:
    if ">" in record.step and record.step not in task.steps:
        _add_delegation(task, record.step, record.agent, record.type or "", record.payload)
    for caller in _ancestors(record.step):
        if caller in task.steps:
            _step(task, caller).open = False  # it starts again when the answer has come
    step = _step(task, record.step)
    step.state, step.question, step.schema, step.open = "asking", record.question, record.schema, False
    _mark_running(task, record.at)


def _answered(task: TaskState, record: log_entries.Answered) -> None:
    step = _step(task, record.step)
    step.answers.append(record.answer)
    step.state, step.question, step.schema = "ready", None, None
    task.command_pending = True


def _doubted(task: TaskState, record: log_entries.Doubted) -> None:
    step = _step(task, record.step)
    if record.inner is not None and record.inner not in step.inner:
        raise ImpossibleRecord
    step.state, step.open, step.doubt_of = "doubt", False, record.inner
    _mark_running(task, record.at)


def _verified(task: TaskState, record: log_entries.Verified) -> None:
    step = _step(task, record.step)
    step.open = step.doubtful = False
    if step.doubt_of is not None:
        begun = step.inner[step.doubt_of][1]
        result = msgspec.json.encode(record.result).decode() if record.happened else None
        answered = replace(begun, result=result, author="")
        step.inner[step.doubt_of] = "end" if record.happened else "freed", answered
        step.state, step.due, step.doubt_of = "ready", record.at, None
    elif not record.happened:
        step.state, step.due = "ready", record.at
    elif ">" in record.step:
        _delegation_done(task, record.step, step, record.result, record.at)
    else:
        _done(step, record.result, record.at)
        task.done.append(record.step)
    task.command_pending = not task.over  # an ended task goes on only if it is retried


# Delegations, which are not part of the plan --------------------------------------------------------------------


def delegation(name: str, agent: str | None, type: str, payload: object, parent: StepState) -> StepState:
    """The state of a delegation that has not been made. Its round grows with that of the delegating step."""
    plan = Step(name=name, type=type, payload=payload, agent=agent)
    return StepState(plan, round=parent.round + parent.redone.get(name, 0))


def _add_delegation(task: TaskState, name: str, agent: str | None, type: str, payload: object) -> StepState:
    parent = _step(task, name.partition(">")[0])
    made = task.steps[name] = delegation(name, agent, type, payload, parent)
    task.copied.add(name)
    return made


def _delegated(task: TaskState, record: log_entries.Delegated) -> None:
    step = _add_delegation(task, record.step, record.agent, record.type, record.payload)
    step.began = record.began
    _delegation_done(task, record.step, step, record.result, record.at)
    task.takeovers, task.alone = 0, False
    _mark_running(task, record.at)


def _delegation_done(task: TaskState, name: str, step: StepState, result: object, at: float) -> None:
    _step(task, name.partition(">")[0]).delegations[name] = result
    _done(step, result, at)
    if not is_made_by_undo(name):
        task.done.append(name)


_RULES: dict[type[Record], Callable[[TaskState, Any], None]] = {
    log_entries.Submitted: _submitted,
    log_entries.Taken: _taken,
    log_entries.Started: _started,
    log_entries.Failed: _failed,
    log_entries.Finished: _finished,
    log_entries.Effect: _effect,
    log_entries.Stepped: _stepped,
    log_entries.Delegated: _delegated,
    log_entries.Parked: _parked,
    log_entries.Asked: _asked,
    log_entries.Answered: _answered,
    log_entries.Doubted: _doubted,
    log_entries.Verified: _verified,
    log_entries.Released: _released,
    log_entries.Cancelled: _cancelled,
    log_entries.Retried: _retried,
    log_entries.Repaired: _repaired,
    log_entries.Undoing: _undoing,
    log_entries.Ended: _ended,
}
