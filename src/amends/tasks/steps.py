"""One step as its task's log tells it: how often it was tried, what was decided, what came of it. Pure, like the task's state."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from msgspec.structs import replace

from amends.core.enums import Action, Recovery
from amends.core.fault import Fault
from amends.recovery.history import Attempt
from amends.recovery.stepper import Stepper
from amends.tasks import entries
from amends.tasks.plan import Step

__all__ = ["Standing", "StepState"]

Standing = Literal["ready", "done", "failed", "asking", "doubt"]
"""`asking`: somebody has to answer; `doubt`: somebody has to look whether it happened."""

_NEW = Stepper()


@dataclass(slots=True)
class StepState:
    """One step, or the undoing of one."""

    plan: Step
    state: Standing = "ready"
    stepper: Stepper = _NEW
    due: float = 0.0
    """When it may be tried (again)."""
    open: bool = False
    """Whether a try was begun whose end is not known: only of steps that must not happen twice."""
    result: Any = None
    degraded: str | None = None
    question: str | None = None
    schema: dict[str, Any] | None = None
    answers: list[Any] = field(default_factory=list)
    effects: dict[str, Any] = field(default_factory=dict)
    delegations: dict[str, Any] = field(default_factory=dict)
    """What those it delegated to gave, by the delegation's name."""
    redone: dict[str, int] = field(default_factory=dict)
    """How often each delegation was undone and is done anew."""
    began: float | None = None
    ended: float | None = None
    round: int = 1
    """Counts how often it was done anew after being undone: a new round is a new deed, with a new key."""
    undo: StepState | None = None

    def failed(self, record: entries.Failed) -> None:
        """A try that failed, with the decision that was made about it then."""
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
        self.open = False
        self.ended = record.at
        self.state = "ready" if retried else "failed"
        self.due = record.at + wait

    def finished(self, record: entries.Finished) -> None:
        """Done, by the call itself or by a fallback after it failed."""
        if record.degraded is None:
            self.stepper = self.stepper.succeeded(started=record.began, ended=record.at)
        self.state, self.open = "done", False
        self.result, self.degraded, self.ended = record.result, record.degraded, record.at

    def round_of(self, delegation: str) -> int:
        """Which round a delegation of this step is in; it grows with the step's own."""
        return self.round + self.redone.get(delegation, 0)

    def again(self) -> None:
        """As if never tried; what somebody answered or what was committed stays."""
        if self.undo is not None and self.undo.state == "done":
            self.round += 1
            self.effects.clear()
            self.delegations.clear()
            self.answers.clear()
        self.state, self.stepper, self.due, self.open, self.undo = "ready", _NEW, 0.0, False, None
        self.result = self.degraded = self.ended = None

    @property
    def fault(self) -> Fault | None:
        """The last failure, of a step that failed for good."""
        return self.stepper.fault if self.state == "failed" else None
