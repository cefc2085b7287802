"""What a task's records mean to those who watch: each as the event it is."""

from __future__ import annotations

from typing import Any

from amends.core.enums import Action
from amends.tasks import telemetry
from amends.tasks.entries import Asked, Ended, Failed, Finished, Record
from amends.tasks.state import TaskState
from amends.tasks.telemetry import Kind

__all__ = ["tell", "told"]


def told(state: TaskState, record: Record, *, now: float) -> None:
    """Tell what a record says, once it is written and folded into the state."""
    if isinstance(record, Finished):
        kind: Kind = "undone" if record.undo else "finished"
        tell(state, kind, now=now, step=record.step, began=record.began)
    elif isinstance(record, Failed):
        tell(
            state,
            _kind_of_failure(state, record),
            now=now,
            step=record.step,
            began=record.began,
            fault=record.fault,
            delay=record.decision.delay,
            reason=record.decision.reason,
        )
    elif isinstance(record, Asked):
        tell(state, "asked", now=now, step=record.step)
    elif isinstance(record, Ended):
        tell(state, "ended", now=now, status=record.status, fault=record.fault, began=state.began)


def _kind_of_failure(state: TaskState, record: Failed) -> Kind:
    action = record.decision.action
    if action is Action.RETRY:
        return "retry"
    if action is Action.FALLBACK and state.steps[record.step].state != "failed":
        return "fallback"
    return "undo-failed" if record.undo else "failed"


def tell(
    state: TaskState,
    kind: Kind,
    *,
    now: float,
    step: str | None = None,
    agent: str | None = None,
    **facts: Any,
) -> None:
    """Tell that something happened to a task, or to one of its steps."""
    known = state.steps.get(step) if step is not None else None
    if known is not None:
        facts.setdefault("capability", known.plan.type)
        facts.setdefault("attempt", known.stepper.state.attempt)
        agent = agent or known.plan.agent
    telemetry.tell(kind, at=now, task=state.head.id, step=step, agent=agent or state.agent, **facts)
