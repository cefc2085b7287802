"""Publish the records of a task as telemetry events."""

from __future__ import annotations

from typing import Any

import amends.tasks.telemetry as task_hooks
from amends.core.enums import Action
from amends.tasks.entries import Asked, Ended, Failed, Finished, Record
from amends.tasks.state import TaskState
from amends.tasks.telemetry import Kind

__all__ = ["publish", "publish_record"]


def publish_record(state: TaskState, record: Record, *, now: float) -> None:
    """Publish the event of a record, after the record was written and applied to the state."""
    if isinstance(record, Finished):
        kind: Kind = "undone" if record.undo else "finished"
        publish(state, kind, now=now, step=record.step, began=record.began)
    elif isinstance(record, Failed):
        publish(
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
        publish(state, "asked", now=now, step=record.step)
    elif isinstance(record, Ended):
        publish(state, "ended", now=now, status=record.status, fault=record.fault, began=state.began)


def _kind_of_failure(state: TaskState, record: Failed) -> Kind:
    action = record.decision.action
    if action is Action.RETRY:
        return "retry"
    if action is Action.FALLBACK and state.steps[record.step].state != "failed":
        return "fallback"
    return "undo-failed" if record.undo else "failed"


def publish(
    state: TaskState,
    kind: Kind,
    *,
    now: float,
    step: str | None = None,
    agent: str | None = None,
    **facts: Any,
) -> None:
    """Publish an event of a task or of one of its steps. The step's capability, attempt and agent are added."""
    step_state = state.steps.get(step) if step is not None else None
    if step_state is not None:
        facts.setdefault("capability", step_state.plan.type)
        facts.setdefault("attempt", step_state.stepper.state.attempt)
        agent = agent or step_state.plan.agent
    facts.setdefault("trace", state.head.trace)
    task_hooks.publish(kind, at=now, task=state.head.id, step=step, agent=agent or state.agent, **facts)
