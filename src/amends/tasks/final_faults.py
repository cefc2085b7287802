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

__all__ = ["delegation_failed", "final_fault", "interrupted_attempt", "workers_lost"]

_STOPPED = Decision(action=Action.ESCALATE, delay=None, reason="terminal")


def final_fault(state: TaskState, cause: Fault | None) -> Fault:
    """
    The fault of a failed task.

    A task of a single step fails with the step's own fault, a plan with COORDINATION_FAILED and the step's fault as its cause.
    `completed` has the results of the steps that were not undone, `undone` and `notUndone` the steps that were undone or could
    not be.
    """
    cause = cause or Fault(code="INTERNAL_ERROR", vocabulary="task")
    undone: list[str] = []
    left: list[str] = []
    for name in state.done:
        undo = state.steps[name].undo
        if undo is not None:
            (undone if undo.state == "done" else left).append(name)
    kept: dict[str, Any] = {}
    if undone:
        kept["undone"] = undone
    if left:
        kept["notUndone"] = left
    if state.head.single:
        return replace(cause, details={**(cause.details or {}), **kept}) if kept else cause
    failed = next(
        (name for name, step in state.steps.items() if step.fault is not None and not step.plan.optional),
        None,
    )
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
    """The record of an attempt that was stopped because the task was cancelled."""
    fault = transfer(Fault(code="CANCELLED"), "task")
    return Failed(at=now, step=step, began=began, fault=fault, decision=_STOPPED)


def workers_lost(count: int) -> Fault:
    """The fault of a task that was given up because too many workers were lost while they ran it."""
    return Fault(
        code="INTERNAL_ERROR",
        vocabulary="task",
        message="The task was given up because too many workers were lost while running it",
        recovery=Recovery.TERMINAL,
        details={"workersLost": count},
    )
