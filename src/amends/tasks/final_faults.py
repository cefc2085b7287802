"""The faults that failed tasks, delegations and interrupted attempts end with."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from amends.core.crosswalk import transfer
from amends.core.decision import Decision
from amends.core.enums import Action, Executed, Recovery
from amends.core.fault import Fault
from amends.core.vocabulary import row_for
from amends.dialects import task as dialect
from amends.errors.base import FaultError
from amends.tasks.entries import Failed
from amends.tasks.state import TaskState

__all__ = [
    "DEADLINE",
    "STOPPED",
    "cancelled_fault",
    "delegation_failed",
    "final_fault",
    "interrupted_attempt",
    "workers_lost",
]

STOPPED = Decision(action=Action.ESCALATE, delay=None, reason="terminal")
"""The decision about an attempt that was stopped."""
DEADLINE = Fault(
    code="TIMEOUT",
    vocabulary="task",
    message="The deadline of the task is over",
    recovery=Recovery.TERMINAL,
    executed=Executed.NO,
)
"""Why an attempt does not start, or why a task ends that waits for an answer, after its deadline."""


def final_fault(state: TaskState, cause: Fault | None) -> Fault:
    """
    The fault of a failed task.

    A task of a single step fails with the step's own fault, a plan with COORDINATION_FAILED and the step's fault as its cause.
    `completed` has the results of the steps that were not undone, `undone` and `notUndone` the steps that were undone or could
    not be, `inDoubt` those of which it is unknown whether they happened.
    """
    cause = cause or Fault(code="INTERNAL_ERROR", vocabulary="task")
    kept = _left_behind(state)
    undone = kept.get("undone", [])
    if state.head.single:
        tries = max(1, next(iter(state.steps.values())).stepper.tries)
        cause = replace(cause, attempt=tries if tries > 1 else cause.attempt)
        return replace(cause, details={**(cause.details or {}), **kept}) if kept else cause
    faults = {name: step.fault for name, step in state.steps.items() if step.fault and not step.plan.optional}
    failed = next((name for name, fault in faults.items() if fault == cause), next(iter(faults), None))
    return Fault(
        code="COORDINATION_FAILED",
        vocabulary="task",
        message=row_for("task", "COORDINATION_FAILED").message,
        recovery=cause.recovery,
        executed=cause.executed if not state.done else Executed.MAYBE,
        details={
            **({"step": failed} if failed is not None else {}),
            "cause": dialect.encode(cause),
            "completed": {name: result for name, result in state.results.items() if name not in undone},
            **kept,
        },
        errors=(cause,),
        user_message=cause.user_message,
        retry_after=cause.retry_after,
    )


def _left_behind(state: TaskState) -> dict[str, list[str]]:
    """The steps that were undone, that could not be undone, and of which it is unknown whether they happened."""
    undos = {name: state.steps[name].undo for name in state.done}
    found = {
        "undone": [name for name, undo in undos.items() if undo is not None and undo.state == "done"],
        "notUndone": [name for name, undo in undos.items() if undo is not None and undo.state != "done"],
        "inDoubt": state.in_doubt,
    }
    return {name: steps for name, steps in found.items() if steps}


def cancelled_fault(state: TaskState) -> Fault | None:
    """What a cancelled task leaves behind: None if everything that happened was undone."""
    kept = _left_behind(state)
    if "inDoubt" not in kept and "notUndone" not in kept:
        return None
    doubt = "inDoubt" in kept
    return Fault(
        code="INTERNAL_ERROR",
        vocabulary="task",
        message="The task was cancelled while a step may have happened"
        if doubt
        else "The task was cancelled, and a step could not be undone",
        recovery=Recovery.UNCERTAIN,
        executed=Executed.MAYBE if doubt else Executed.YES,
        details=dict(kept),
    )


def delegation_failed(cause: Fault, agent: str | None, capability: str) -> FaultError:
    """DELEGATION_FAILED with the cause, its recovery, its `retry_after`, and the attempts that the delegation made."""
    details: dict[str, Any] = {"agent": agent, "capability": capability, "cause": dialect.encode(cause)}
    return FaultError.from_fault(
        Fault(
            code="DELEGATION_FAILED",
            vocabulary="task",
            message=row_for("task", "DELEGATION_FAILED").message,
            recovery=cause.recovery,
            executed=cause.executed,
            details={name: value for name, value in details.items() if value is not None},
            errors=(cause,),
            retry_after=cause.retry_after,
            attempt=cause.attempt,
            user_message=cause.user_message,
        )
    )


def interrupted_attempt(step: str, began: float, now: float) -> Failed:
    """The record of an attempt that was stopped before it could have an effect."""
    fault = replace(transfer(Fault(code="CANCELLED"), "task"), executed=Executed.NO)
    return Failed(at=now, step=step, began=began, fault=fault, decision=STOPPED)


def workers_lost(count: int) -> Fault:
    """The fault of a task that was given up because too many workers were lost while they ran it."""
    return Fault(
        code="INTERNAL_ERROR",
        vocabulary="task",
        message="The task was given up because too many workers were lost while running it",
        recovery=Recovery.TERMINAL,
        details={"workersLost": count},
    )
