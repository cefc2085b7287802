"""The journal of a job's durable steps: entries of the job's own log, which the fence of the log protects."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from typing import Protocol

import msgspec

from amends.arcp.runtime.entries import CONTINUED, JobEntry, JobSpec, encode
from amends.arcp.runtime.ledger import Ledger
from amends.effects.steps import StepKind, StepRecord, in_doubt
from amends.proof import Claim, Proof, rests_on
from amends.stores import StoreUnavailableError
from amends.stores.deadlines import Deadlines

__all__ = [
    "KINDS",
    "JobSteps",
    "answer_kind",
    "begins_run",
    "is_decided_elsewhere",
    "load_entries",
    "read_step",
]

KINDS: dict[str, StepKind] = {
    "step.begin": "begin",
    "step.end": "end",
    "step.freed": "freed",
    "step.waiting": "waiting",
}
"""The kinds of log entries; sessions do not get them."""
_KIND_OF = {kind: name for name, kind in KINDS.items()}
read_step = msgspec.json.Decoder(StepRecord).decode
_STARTS = frozenset({"queued", "started"})
_RESTORES = 100
_PAUSE = 0.05


def begins_run(entry: JobEntry, run: int) -> bool:
    """Whether an entry begins a run after the one with this number, which does not continue its steps."""
    return entry.kind in _STARTS and entry.run > run and entry.label != CONTINUED


def is_decided_elsewhere(record: StepRecord) -> bool:
    """Whether the ledger of effects, or a delegated job, says what happened in a step, and not the answer to a question."""
    return record.effect is not None or record.step.startswith('["delegate ')


def answer_kind(record: StepRecord) -> StepKind:
    """Return what the answer to a question means for its step, which is in the entry that continues the run."""
    return "freed" if record.result is None and record.failed is None else "end"


class _Job(Protocol):
    """What the steps use of their job."""

    spec: JobSpec
    run: int
    last: int

    @property
    def loop(self) -> asyncio.AbstractEventLoop: ...

    def entry(self, kind: str, payload: bytes, label: str = "") -> JobEntry: ...

    async def write_step(self, *entries: JobEntry) -> None: ...

    def note_step(self, entry: JobEntry) -> None: ...


class JobSteps:
    """The steps of one run of a job."""

    def __init__(self, job: _Job, ledger: Ledger) -> None:
        self._job, self._ledger = job, ledger
        self._found: dict[str, tuple[StepKind, StepRecord]] = {}
        self._asked: set[str] = set()
        self._stored = 0
        self._base = job.run
        self._starts = 1
        self.children: set[str] = set()
        """The jobs that earlier starts of this run delegated."""
        self._deadlines: Deadlines | None = None

    @property
    def id(self) -> str:
        """The job and its run, or the run that this one continues."""
        return f"{self._job.spec.job_id}/{self._base}"

    @property
    def attempt(self) -> int:
        """How often this run, with those that it continues, was started."""
        return self._starts

    @property
    def restarted(self) -> bool:
        """Whether this is not the first start."""
        return self._starts > 1

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

    @property
    @rests_on(Claim.MAY_REPEAT, Proof.RECORD)
    def safe_to_repeat(self) -> bool:
        """Whether the run began steps, and the outcome of every one is known: a repeat calls none of them again."""
        return bool(self._found) and "begin" not in {kind for kind, _ in self._found.values()}

    def begin_again(self) -> None:
        """Start the run again on this node: what has ended is not called."""
        self._starts += 1
        self._asked.clear()
        self._stored = sum(kind == "end" for kind, _ in self._found.values())

    def load(self, entries: Iterable[JobEntry]) -> None:
        """Take the whole log."""
        self._base, run = 1, 1
        for entry in entries:
            if begins_run(entry, run):
                self._found.clear()
                self.children.clear()
                self._base, self._starts = entry.run, 1
            run = max(run, entry.run)
            self._load(entry)
        self._stored = sum(found == "end" for found, _ in self._found.values())

    def _load(self, entry: JobEntry) -> None:
        kind = KINDS.get(entry.kind)
        if kind is not None:
            record = read_step(entry.payload)
            self._found[record.step] = (kind, record)
        elif entry.label == CONTINUED:
            self._starts += 1
            with suppress(msgspec.MsgspecError):
                answered = read_step(entry.payload)
                if not is_decided_elsewhere(answered):
                    self._found[answered.step] = (answer_kind(answered), answered)
        elif entry.requeued:
            self._starts += 1
        elif entry.kind == "child":
            child = msgspec.json.decode(entry.payload).get("job_id")
            if isinstance(child, str):
                self.children.add(child)

    def ends(self) -> Iterable[StepRecord]:
        """Return the records of the steps that have ended."""
        return [record for kind, record in self._found.values() if kind == "end"]

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

    def note(self, kind: StepKind, record: StepRecord) -> None:
        """Store an entry with the next write. May be called from any thread."""
        self._found[record.step] = (kind, record)
        entry, loop = self._job.entry(_KIND_OF[kind], encode(record)), self._job.loop
        try:
            here = asyncio.get_running_loop() is loop
        except RuntimeError:
            here = False
        if here:
            self._job.note_step(entry)
        else:
            loop.call_soon_threadsafe(self._job.note_step, entry)

    async def doubt(self, record: StepRecord) -> BaseException:
        """Return the error with which the job ends in doubt, unless its agent handles it."""
        return in_doubt(record.step)


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
