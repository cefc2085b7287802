"""The journal of a job's durable steps: entries of the job's own log, which the fence of the log protects."""

from __future__ import annotations

import asyncio
from typing import Protocol

import msgspec

from amends.arcp.runtime.entries import JobEntry, JobSpec, encode
from amends.arcp.runtime.ledger import Ledger
from amends.durable.deadlines import Deadlines
from amends.effects.steps import StepKind, StepRecord
from amends.stores import StoreUnavailableError

__all__ = ["KINDS", "JobSteps", "load_entries"]

KINDS: dict[str, StepKind] = {"step.begin": "begin", "step.end": "end", "step.freed": "freed"}
"""The kinds of log entries; sessions do not get them."""
_KIND_OF = {kind: name for name, kind in KINDS.items()}
_read = msgspec.json.Decoder(StepRecord).decode
_RESTORES = 100
_PAUSE = 0.05


class _Job(Protocol):
    """What the steps use of their job."""

    spec: JobSpec
    run: int
    last: int

    def entry(self, kind: str, payload: bytes, label: str = "") -> JobEntry: ...

    async def write_step(self, *entries: JobEntry) -> None: ...


class JobSteps:
    """The steps of one run of a job."""

    def __init__(self, job: _Job, ledger: Ledger) -> None:
        self._job, self._ledger = job, ledger
        self._found: dict[str, tuple[StepKind, StepRecord]] = {}
        self._asked: set[str] = set()
        self._stored = 0
        self.children: set[str] = set()
        """The jobs that earlier starts of this run delegated."""
        self._deadlines: Deadlines | None = None

    @property
    def id(self) -> str:
        """The job and its run."""
        return f"{self._job.spec.job_id}/{self._job.run}"

    @property
    def deadlines(self) -> Deadlines:
        """Measure the time limits."""
        if self._deadlines is None:
            self._deadlines = Deadlines.of(self._ledger.store)
        return self._deadlines

    @property
    def replaying(self) -> bool:
        """Whether a step that ended before this start was not reached yet."""
        return len(self._asked) < self._stored

    def load(self, entry: JobEntry) -> None:
        """Take an entry of the log that an earlier start of this run wrote."""
        kind = KINDS.get(entry.kind)
        if kind is not None:
            record = _read(entry.payload)
            self._found[record.step] = (kind, record)
            self._stored = sum(found == "end" for found, _ in self._found.values())
        elif entry.kind == "child":
            child = msgspec.json.decode(entry.payload).get("job_id")
            if isinstance(child, str):
                self.children.add(child)

    def find(self, step: str) -> tuple[StepKind, StepRecord] | None:
        """Return the newest entry of a step."""
        found = self._found.get(step)
        if found is not None and found[0] == "end" and len(self._asked) < self._stored:
            self._asked.add(step)
        return found

    async def write(self, kind: StepKind, record: StepRecord, *before: JobEntry) -> None:
        """Store an entry, behind others that belong to it. Raises CancelledError if another node has the job."""
        await self._job.write_step(*before, self._job.entry(_KIND_OF[kind], encode(record)))
        self._found[record.step] = (kind, record)


async def load_entries(ledger: Ledger, job: _Job) -> list[JobEntry]:
    """
    Return all entries of a job's log up to the one with which this node took it.

    Raises:
        StoreUnavailableError: the store does not return all of them. A replica that lags may not have the newest yet.

    """
    for _ in range(_RESTORES):
        entries, last = [], 0
        async for number, entry in ledger.history(job.spec.job_id):
            entries.append(entry)
            last = number
        if last >= job.last:
            return entries
        await asyncio.sleep(_PAUSE)
    raise StoreUnavailableError(f"the log of job {job.spec.job_id} cannot be read to its end")
