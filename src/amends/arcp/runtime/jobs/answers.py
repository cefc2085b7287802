"""
Answers to the question whether a step happened: the job that ended in doubt about it continues in another run.

The answer is part of the entry that begins this run, so that it is given once, by whoever is first. The run has the steps of the one
before, and its keys; of the answered step the outcome is known.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
from msgspec.structs import replace

from amends.arcp.runtime.entries import CONTINUED, JobEntry, JobSpec
from amends.arcp.runtime.jobs.running import RunningJobs
from amends.arcp.runtime.jobs.steps import (
    KINDS,
    answer_kind,
    begins_run,
    is_decided_elsewhere,
    read_step,
)
from amends.arcp.runtime.ledger import Ledger
from amends.effects.outcomes import encode_result
from amends.effects.steps import StepKind, StepRecord, step_text
from amends.errors.arcp import InvalidRequestError, JobNotFoundError
from amends.stores import ConflictError

__all__ = ["Answers", "StepStatus", "read_steps"]


class StepStatus(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """
    What is known about one step of a job.

        status = await client.steps("job_1")
        doubt = [step.question for step in status if step.state == "doubt"]
    """

    step: str
    """The name with the key or the count, as `amends runtime answer` takes it."""
    state: str
    """running, waiting, done, failed, freed, or doubt."""
    attempts: int = 0
    """How often its call was begun; a step that may be repeated records only its end."""
    since: float = 0.0
    """When its newest entry was written, in seconds since 1970."""
    until: float | None = None
    """Until when it waits."""
    question: str | None = None
    """What has to be found out, if it is in doubt."""
    author: str | None = None
    """Who answered."""


class _Step:
    def __init__(self) -> None:
        self.kind: StepKind = "begin"
        self.record = StepRecord("", "")
        self.attempts = 0
        self.at = 0.0


async def read_steps(ledger: Ledger, job_id: str) -> list[StepStatus]:
    """Return the steps of a job's newest run, with those that it continues, in the order in which they began."""
    steps, last = await _read(ledger, job_id)
    return [_status(step, last) for step in steps.values()]


async def _read(ledger: Ledger, job_id: str) -> tuple[dict[str, _Step], JobEntry | None]:
    steps: dict[str, _Step] = {}
    run, last = 1, None
    async for _, entry in ledger.history(job_id):
        last = entry
        if begins_run(entry, run):
            steps.clear()
        run = max(run, entry.run)
        kind = KINDS.get(entry.kind)
        record = None
        if kind is not None:
            record = read_step(entry.payload)
        elif entry.label == CONTINUED:
            answered = read_step(entry.payload)
            if not is_decided_elsewhere(answered):
                record, kind = answered, answer_kind(answered)
        if record is not None and kind is not None:
            step = steps.setdefault(record.step, _Step())
            step.attempts += kind == "begin"
            step.kind, step.record, step.at = kind, record, entry.at
    return steps, last


def _status(step: _Step, last: JobEntry | None) -> StepStatus:
    record, ended = step.record, last is not None and last.ended
    text, question, state = step_text(record.step), None, "running"
    if step.kind == "end":
        state = "failed" if record.failed is not None else "done"
    elif step.kind == "waiting":
        state = "waiting"
    elif step.kind == "freed":
        state = "freed"
    elif ended:
        state = "doubt"
        question = _question(record, text)
    return StepStatus(
        step=text,
        state=state,
        attempts=step.attempts,
        since=step.at,
        until=record.due if step.kind == "waiting" else None,
        question=question,
        author=record.author,
    )


def _question(record: StepRecord, text: str) -> str:
    if record.effect is not None:
        return (
            f"The ledger has the effect {record.effect}: amends effects verify {record.effect} --happened or "
            f"--not-happened; then answer here in the same way, and the job continues."
        )
    if record.step.startswith('["delegate '):
        return "The delegated job is in doubt: answer its question, then answer here, and this job continues."
    return (
        f"Did {text} happen? Look it up where it would show, then answer: "
        f"amends runtime answer URL JOB {text} --happened or --not-happened"
    )


@dataclass(eq=False)
class Answers:
    """Continues jobs of which a step was in doubt, on behalf of one node."""

    _jobs: RunningJobs

    async def answer(self, spec: JobSpec, step: str, happened: bool, value: object, author: str) -> None:
        """
        Say whether a step happened, and let the job continue.

        Raises:
            InvalidRequestError: the job has not ended, its agent is not repeatable, or the step is not in doubt.

        """
        ledger = self._jobs.ledger
        while True:
            tail = await ledger.tail(spec.job_id)
            if tail is None:
                raise JobNotFoundError
            steps, _ = await _read(ledger, spec.job_id)
            doubts = {step_text(name): found.record for name, found in steps.items() if found.kind == "begin"}
            if not tail[1].ended:
                raise InvalidRequestError("The job has not ended: it may find the answer itself")
            if not spec.repeatable:
                raise InvalidRequestError(
                    "The agent of this job is not started again: register it with repeatable=True"
                )
            if step not in doubts:
                in_doubt = ", ".join(sorted(doubts)) or "none"
                raise InvalidRequestError(
                    f"This step of the job is not in doubt; those that are: {in_doubt}",
                    details={"field": "step"},
                )
            encoded = encode_result(value) if happened else None
            if happened and encoded is None:
                raise InvalidRequestError("The result is too large", details={"field": "value"})
            record = replace(doubts[step], result=encoded, author=author)
            try:
                await self._jobs.continue_run(spec, tail, record)
            except ConflictError:
                continue
            return
