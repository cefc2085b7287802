"""The state of a task, and what is derived from it: the response, and what the task waits for. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import amends.tasks.entries as log_entries
from amends.core.fault import Fault
from amends.tasks.documents import ENDED, Metadata, Response, Status
from amends.tasks.steps import StepState

__all__ = ["NOT_RELEASED", "NOT_SUBMITTED", "TaskFacts"]

NOT_SUBMITTED = log_entries.Submitted(at=0.0, id="", type="", steps=())
NOT_RELEASED = log_entries.Released(at=0.0)


@dataclass(slots=True)
class TaskFacts:
    """The state of a task, without the rules by which records change it."""

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
    def results(self) -> dict[str, Any]:
        """The results of the plan's finished steps."""
        return {
            step.name: self.steps[step.name].result
            for step in self.head.steps
            if self.steps[step.name].state == "done"
        }

    @property
    def in_doubt(self) -> list[str]:
        """The steps and delegations of which it is unknown whether they happened."""
        return [name for name, step in self.steps.items() if step.in_doubt]

    @property
    def waits(self) -> bool:
        """Whether a step waits for an answer or a verification."""
        return any(step.state in {"asking", "doubt"} for step in self.steps.values())

    def pending_input(self) -> dict[str, Any] | None:
        """The first question or verification that the task waits for."""
        for name, step in self.steps.items():
            if step.state == "asking":
                found: dict[str, Any] = {"step": name, "kind": "answer", "question": step.question}
                return {**found, "schema": step.schema} if step.schema else found
            if step.state == "doubt":
                return {"step": name, "kind": "verify", "question": f"Did “{step.plan.type}” happen?"}
        return None

    def response(self) -> Response:
        """The current response."""
        single = self.head.single
        results = self.results
        result: Any = None
        if self.status is Status.COMPLETED:
            result = next(iter(results.values()), None) if single else results
        failures = None
        if not single and self.status is Status.COMPLETED:
            failed = {step.name: self.steps[step.name].fault for step in self.head.steps}
            failures = {name: fault for name, fault in failed.items() if fault is not None}
        return Response(
            id=self.head.id,
            status=self.status,
            result=result,
            error=self.fault if self.over and self.status is not Status.COMPLETED else None,
            input=self.pending_input() if self.status is Status.INPUT_REQUIRED else None,
            failures=failures or None,
            metadata=Metadata(
                started=self.began,
                completed=self.ended,
                agent=self.agent,
                degraded=self.status is Status.COMPLETED
                and any(step.degraded is not None for step in self.steps.values()),
            ),
        )
