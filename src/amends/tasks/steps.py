"""The state of one step, derived from its task's log: its attempts, the decisions about them, and its outcome. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from functools import cache
from typing import Any, Literal, TypeVar, cast

from msgspec.structs import replace

import amends.tasks.entries as log_entries
from amends.core.enums import Action, Executed, Recovery
from amends.core.fault import Fault
from amends.recovery.history import Attempt
from amends.recovery.stepper import Stepper
from amends.tasks.plan import Step

__all__ = ["StepState", "StepStatus", "copy_fields"]

StepStatus = Literal["ready", "done", "failed", "asking", "doubt"]
"""`asking`: the step waits for an answer; `doubt`: it is unknown whether the step happened, which has to be verified."""

T = TypeVar("T")

_NEW = Stepper()


def copy_fields(one: T) -> T:
    """A shallow copy of a dataclass with slots, in a third of the time of `copy.copy`: states are copied for every record."""
    made = object.__new__(type(one))
    for name in _field_names(cast("Any", type(one))):
        setattr(made, name, getattr(one, name))
    return made


@cache
def _field_names(kind: Any) -> tuple[str, ...]:
    return tuple(each.name for each in fields(kind))


@dataclass(slots=True)
class StepState:
    """The state of a step, or of undoing one."""

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
    result: Any = None
    degraded: str | None = None
    question: str | None = None
    schema: dict[str, Any] | None = None
    answers: list[Any] = field(default_factory=list)
    effects: dict[str, Any] = field(default_factory=dict)
    delegations: dict[str, Any] = field(default_factory=dict)
    """The results of its delegations, by the delegation's name."""
    redone: dict[str, int] = field(default_factory=dict)
    """How often each delegation was undone and has to be done again."""
    began: float | None = None
    ended: float | None = None
    round: int = 1
    """Grows when the step is done again after it was undone. Each round has its own idempotency key."""
    undo: StepState | None = None

    def copy(self) -> StepState:
        """A copy that can be changed without changing this one."""
        made = copy_fields(self)
        made.answers, made.effects = list(self.answers), dict(self.effects)
        made.delegations, made.redone = dict(self.delegations), dict(self.redone)
        made.undo = None if self.undo is None else self.undo.copy()
        return made

    def apply_failed(self, record: log_entries.Failed) -> None:
        """Apply a failed attempt and the decision about it."""
        before, fault, decision = self.stepper, record.fault, record.decision
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
        remedies = before.remedies | {record.remedy} if record.remedy else before.remedies
        self.stepper = replace(
            before,
            state=state,
            history=(*before.history, attempt),
            fault=fault,
            verdict=decision,
            remedies=remedies,
        )
        self.doubtful = not retried and self.open and fault.executed is not Executed.NO
        self.open = False
        self.ended = record.at
        self.state = "ready" if retried else "failed"
        self.due = record.at + wait

    def apply_finished(self, record: log_entries.Finished) -> None:
        """Apply the end of the step, by the call itself or by a fallback."""
        if record.degraded is None:
            self.stepper = self.stepper.succeeded(started=record.began, ended=record.at)
        self.state, self.open, self.doubtful = "done", False, False
        self.result, self.degraded, self.ended = record.result, record.degraded, record.at

    def delegation_round(self, delegation: str) -> int:
        """The round of a delegation of this step; it grows with the step's own round."""
        return self.round + self.redone.get(delegation, 0)

    def reset(self) -> None:
        """Forget the attempts. Answers and committed effects are kept, unless the step was undone."""
        if self.undo is not None and self.undo.state == "done":
            self.round += 1
            self.effects.clear()
            self.delegations.clear()
            self.answers.clear()
        # What may have happened has to be verified before it is done again.
        self.open, self.doubtful = self.in_doubt, False
        self.state, self.stepper, self.due, self.undo = "ready", _NEW, 0.0, None
        self.result = self.degraded = self.ended = None

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
