"""
A task as its log tells it: records folded one after the other. Pure: no clock, no store, no agents.

The same fold gives a worker what is left to do, a caller the response, and a person the timeline. What was decided stands in the
records, so a fold with other policies, or with none of the agents at hand, comes to the same state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

from amends.core.fault import Fault
from amends.stores.errors import DamagedStoreError
from amends.tasks import entries
from amends.tasks.documents import ENDED, Metadata, Response, Status
from amends.tasks.entries import Record
from amends.tasks.plan import Step
from amends.tasks.steps import StepState

__all__ = ["TaskState"]


_NOTHING = entries.Submitted(at=0.0, id="", type="", steps=())
_NEVER = entries.Released(at=0.0)


@dataclass(slots=True, eq=False)
class TaskState:
    """Everything a task's log says about it."""

    head: entries.Submitted = _NOTHING
    """What was asked for."""
    agent: str | None = None
    """Whose task it is: the one agent's, where there is one."""
    status: Status = Status.PENDING
    created: float = 0.0
    updated: float = 0.0
    began: float | None = None
    ended: float | None = None
    fault: Fault | None = None
    """Why it failed, or why it is being undone."""
    steps: dict[str, StepState] = field(default_factory=dict)
    done: list[str] = field(default_factory=list)
    """Steps and delegations in the order they were finished: undone in reverse."""
    cancelled: bool = False
    undoing: bool = False
    held: bool = False
    """Whether a worker has said that it has it, and has not let go since."""
    takeovers: int = 0
    """Workers that were lost with it since something was last finished."""
    release: entries.Released = _NEVER
    """When it was last let go of, and until when."""
    heard: bool = False
    """Whether somebody outside has said something since it was last let go."""

    def apply(self, records: Iterable[Record]) -> None:
        """
        Fold records in.

        Raises:
            DamagedStoreError: they do not belong together.
        """
        for record in records:
            try:
                self._FOLD[type(record)](self, record)
            except (KeyError, ValueError) as error:
                raise DamagedStoreError(
                    f"the log of task {self.head.id!r} says something that cannot have happened to it: run `amends store check`"
                ) from error
            self.updated = record.at

    # Each record ------------------------------------------------------------------------------------------------

    def _submitted(self, record: entries.Submitted) -> None:
        self.head, self.created = record, record.at
        self.steps = {step.name: StepState(step) for step in record.steps}
        agents = {step.agent for step in record.steps}
        self.agent = record.agent or (agents.pop() if len(agents) == 1 else None)

    def _taken(self, record: entries.Taken) -> None:
        self.takeovers += record.takeover
        self._going(record.at)

    def _going(self, at: float) -> None:
        self.held, self.heard = True, False
        if self.status not in ENDED:
            self.status = Status.IN_PROGRESS
        if self.began is None:
            self.began = at

    def _of(self, step: str, undo: bool) -> StepState:
        found = self.steps[step]
        if not undo:
            return found
        if found.undo is None:
            found.undo = StepState(found.plan)
        return found.undo

    def _started(self, record: entries.Started) -> None:
        step = self._of(record.step, record.undo)
        step.open, step.began = True, record.at if step.began is None else step.began
        self._going(record.at)

    def _failed(self, record: entries.Failed) -> None:
        step = self._of(record.step, record.undo)
        step.began = record.began if step.began is None else step.began
        step.failed(record)
        self._going(record.began)

    def _finished(self, record: entries.Finished) -> None:
        step = self._of(record.step, record.undo)
        step.began = record.began if step.began is None else step.began
        step.finished(record)
        if not record.undo:
            self.done.append(record.step)
        self.takeovers = 0
        self._going(record.began)

    def _effect(self, record: entries.Effect) -> None:
        self._of(record.step, record.undo).effects[record.name] = record.result
        self._going(record.at)

    def _delegated(self, record: entries.Delegated) -> None:
        plan = Step(name=record.step, type=record.type, payload=record.payload, agent=record.agent)
        parent = self.steps[record.step.partition(">")[0]]
        parent.delegations[record.step] = record.result
        self.steps[record.step] = StepState(
            plan,
            "done",
            result=record.result,
            began=record.began,
            ended=record.at,
            round=parent.round_of(record.step),
        )
        self.done.append(record.step)
        self.takeovers = 0
        self._going(record.began)

    def _parked(self, record: entries.Parked) -> None:
        step = self.steps[record.step]
        step.due = record.until
        step.stepper = step.stepper.waited(record.until - record.at)
        self._going(record.at)

    def _asked(self, record: entries.Asked) -> None:
        step = self.steps[record.step]
        step.state, step.question, step.schema, step.open = "asking", record.question, record.schema, False
        self._going(record.at)

    def _answered(self, record: entries.Answered) -> None:
        step = self.steps[record.step]
        step.answers.append(record.answer)
        step.state, step.question, step.schema = "ready", None, None
        self.heard = True

    def _doubted(self, record: entries.Doubted) -> None:
        step = self.steps[record.step]
        step.state, step.open = "doubt", False
        self._going(record.at)

    def _verified(self, record: entries.Verified) -> None:
        step = self.steps[record.step]
        step.open = False
        if record.happened:
            step.state, step.result, step.ended = "done", record.result, record.at
            self.done.append(record.step)
        else:
            step.state, step.due = "ready", record.at
        self.heard = True

    def _released(self, record: entries.Released) -> None:
        self.held, self.release, self.heard = False, record, False
        if self.status not in ENDED:
            waits = any(step.state in {"asking", "doubt"} for step in self.steps.values())
            nothing_else = record.until is None and waits
            self.status = Status.INPUT_REQUIRED if nothing_else else Status.IN_PROGRESS

    def _cancelled(self, record: entries.Cancelled) -> None:
        self.cancelled = self.heard = True

    def _retried(self, record: entries.Retried) -> None:
        undone = {name for name, step in self.steps.items() if step.undo and step.undo.state == "done"}
        # Whoever had something done that was taken back has to have it done again.
        wanting = undone | {above for name in undone for above in _above(name)}
        for name, step in list(self.steps.items()):
            if ">" in name:
                if name in wanting:
                    parent = self.steps[name.partition(">")[0]]
                    parent.delegations.pop(name, None)
                    parent.redone[name] = parent.redone.get(name, 0) + (name in undone)
                    del self.steps[name]
            elif name in wanting or step.state != "done":
                step.again()
            else:
                step.undo = None
        self.done = [name for name in self.done if name in self.steps and self.steps[name].state == "done"]
        self.status, self.ended, self.fault = Status.PENDING, None, None
        self.cancelled = self.undoing = self.held = False
        self.release, self.takeovers, self.heard = entries.Released(at=record.at), 0, True

    def _undoing(self, record: entries.Undoing) -> None:
        self.undoing, self.fault = True, record.fault
        self._going(record.at)

    def _ended(self, record: entries.Ended) -> None:
        self.status, self.fault, self.ended = Status(record.status), record.fault, record.at
        self.held = self.heard = False
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
        entries.Undoing: _undoing,
        entries.Ended: _ended,
    }

    # What it comes to -------------------------------------------------------------------------------------------

    @property
    def over(self) -> bool:
        """Whether nothing more will happen by itself."""
        return self.status in ENDED

    @property
    def results(self) -> dict[str, Any]:
        """What the plan's finished steps gave."""
        return {
            step.name: self.steps[step.name].result
            for step in self.head.steps
            if self.steps[step.name].state == "done"
        }

    def wanted(self) -> dict[str, Any] | None:
        """The first thing somebody has to say before it can go on."""
        for name, step in self.steps.items():
            if step.state == "asking":
                found: dict[str, Any] = {"step": name, "kind": "answer", "question": step.question}
                return {**found, "schema": step.schema} if step.schema else found
            if step.state == "doubt":
                return {"step": name, "kind": "verify", "question": f"Did “{step.plan.type}” happen?"}
        return None

    def response(self) -> Response:
        """S3's response, as of now."""
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
            input=self.wanted() if self.status is Status.INPUT_REQUIRED else None,
            failures=failures or None,
            metadata=Metadata(
                started=self.began,
                completed=self.ended,
                agent=self.agent,
                degraded=self.status is Status.COMPLETED
                and any(step.degraded is not None for step in self.steps.values()),
            ),
        )


def _above(name: str) -> Iterator[str]:
    """The step, and the delegations, that had a delegation done."""
    while ">" in name:
        name = name.rpartition(">")[0]
        yield name
