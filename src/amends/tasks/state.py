"""
The state of a task and of its steps after the records of its log, and what follows from it: the response and the row.

Workers use the state to see what is left to do, callers to get the response. `fold` has the rules by which records change it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import msgspec

import amends.tasks.entries as log_entries
from amends.core.fault import Fault
from amends.core.text import truncate
from amends.durable.index import IndexRow
from amends.effects.steps import StepKind, StepRecord, step_text
from amends.recovery.stepper import Stepper
from amends.tasks.documents import ENDED, Metadata, Response, Status
from amends.tasks.plan import Step

__all__ = ["StepState", "StepStatus", "TaskRow", "TaskState"]

StepStatus = Literal["ready", "done", "failed", "asking", "doubt"]
"""`asking`: the step waits for an answer; `doubt`: it is unknown whether the step happened, which has to be verified."""

NOT_SUBMITTED = log_entries.Submitted(at=0.0, id="", type="", steps=())
NOT_RELEASED = log_entries.Released(at=0.0)
_NEW = Stepper()
_QUESTION_BYTES = 200
_encode = msgspec.json.Encoder().encode


@dataclass(slots=True)
class StepState:
    """The state of a step, or of undoing one: its attempts, the decisions about them, and its outcome."""

    plan: Step
    state: StepStatus = "ready"
    stepper: Stepper = _NEW
    due: float = 0.0
    """When the next attempt may start."""
    open: bool = False
    """Whether an attempt was started whose end is unknown. Recorded only for steps that must not happen twice."""
    doubtful: bool = False
    """Whether the step failed in a way that leaves open whether it happened, and must not happen twice."""
    promises: str | None = None
    """What the code declared about repeating the call when its start was recorded; see `entries.Started`."""
    contested: float | None = None
    """When a worker was lost that may have been running the step: its call may still be under way."""
    result: object = None
    degraded: str | None = None
    question: str | None = None
    schema: dict[str, object] | None = None
    answers: list[object] = field(default_factory=list)
    effects: dict[str, object] = field(default_factory=dict)
    inner: dict[str, tuple[StepKind, StepRecord]] = field(default_factory=dict)
    """The durable steps inside it, by identity, each with its newest record."""
    doubt_of: str | None = None
    """The one of them of which it is unknown whether it happened."""
    delegations: dict[str, object] = field(default_factory=dict)
    """The results of its delegations, by the delegation's name."""
    redone: dict[str, int] = field(default_factory=dict)
    """How often each delegation was undone and has to be done again."""
    began: float | None = None
    ended: float | None = None
    round: int = 1
    """Grows when the step is done again after it was undone. Each round has its own idempotency key."""
    undo: StepState | None = None

    @property
    def settled(self) -> bool:
        """Whether the steps that wait for this one can start: it is done, or it failed and is optional."""
        return self.state == "done" or (self.state == "failed" and self.plan.optional)

    @property
    def in_doubt(self) -> bool:
        """Whether it is unknown whether the step happened."""
        return self.state == "doubt" or ((self.open or self.doubtful) and self.state != "done")

    @property
    def fault(self) -> Fault | None:
        """The last failure, if the step has failed."""
        return self.stepper.fault if self.state == "failed" else None


class TaskRow(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A task's row: a summary of its log up to the entry `seq`."""

    id: str
    status: str
    type: str
    seq: int
    created: float
    updated: float
    agent: str | None = None
    code: str | None = None
    due: float | None = None
    question: str | None = None
    """The question, or what has to be verified, if the task waits for input."""
    in_doubt: bool = False
    """Whether it is unknown whether a step happened."""


@dataclass(slots=True)
class TaskState:
    """The state of a task after the records of its log. A value: `fold` returns another one."""

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
    takes: int = 0
    """How often a worker took the task."""
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

    @property
    def over(self) -> bool:
        """Whether the task has ended."""
        return self.status in ENDED

    @property
    def results(self) -> dict[str, object]:
        """The results of the plan's finished steps."""
        steps = ((step.name, self.steps[step.name]) for step in self.head.steps)
        return {name: step.result for name, step in steps if step.state == "done"}

    @property
    def in_doubt(self) -> list[str]:
        """The steps and delegations of which it is unknown whether they happened."""
        return [name for name, step in self.steps.items() if step.in_doubt]

    @property
    def waits(self) -> bool:
        """Whether a step waits for an answer or a verification."""
        return any(step.state in {"asking", "doubt"} for step in self.steps.values())

    @property
    def has_work(self) -> bool:
        """Whether a worker can do anything for the task, now or at its deadline."""
        waits = self.status is Status.INPUT_REQUIRED and not self.command_pending
        return not self.over and (not waits or self.release.until is not None)

    def pending_input(self) -> dict[str, object] | None:
        """The first question or verification that the task waits for."""
        for name, step in self.steps.items():
            if step.state == "asking":
                found: dict[str, object] = {"step": name, "kind": "answer", "question": step.question}
                return {**found, "schema": step.schema} if step.schema else found
            if step.state == "doubt":
                what = f"“{step.plan.type}”"
                if step.doubt_of is not None:
                    what = f"“{step_text(step.inner[step.doubt_of][1].step)}” of {what}"
                return {"step": name, "kind": "verify", "question": f"Did {what} happen?"}
        return None

    def response(self) -> Response:
        """The current response."""
        single, completed = self.head.single, self.status is Status.COMPLETED
        results, failures = self.results, None
        result: object = None
        if completed:
            result = next(iter(results.values()), None) if single else results
        if completed and not single:
            failed = {step.name: self.steps[step.name].fault for step in self.head.steps}
            failures = {name: fault for name, fault in failed.items() if fault is not None}
        return Response(
            id=self.head.id,
            status=self.status,
            result=result,
            error=self.fault if self.over and not completed else None,
            input=self.pending_input() if self.status is Status.INPUT_REQUIRED else None,
            failures=failures or None,
            metadata=Metadata(
                started=self.began,
                completed=self.ended,
                agent=self.agent,
                degraded=completed and any(step.degraded is not None for step in self.steps.values()),
            ),
        )

    def row(self, space: str, seq: int) -> IndexRow:
        """The row, in the table of the set of tasks `space`, of a task whose log ends with the entry `seq`."""
        wanted = self.pending_input() if self.status is Status.INPUT_REQUIRED else None
        # A step that is running has no known outcome either; it is not in doubt.
        doubted = any(step.state == "doubt" for step in self.steps.values())
        row = TaskRow(
            id=self.head.id,
            status=self.status,
            type=self.head.type,
            seq=seq,
            created=self.created,
            updated=self.updated,
            agent=self.agent,
            code=self.fault.code if self.fault is not None else None,
            question=None if wanted is None else truncate(str(wanted.get("question", "")), _QUESTION_BYTES),
            in_doubt=doubted or (self.over and bool(self.in_doubt)),
            due=None if self.held or self.over else self.release.until,
        )
        return IndexRow(space, row.id, _encode(row), seq)
