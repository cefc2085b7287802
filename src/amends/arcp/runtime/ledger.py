"""
The writes of a job's life: accept, start, append events, end, run again, take over.

Only the owner of a run appends to a job's log, and every append states the number of the newest entry. A takeover
appends first, so the next append of the previous owner fails with `ConflictError` on every backend: the owner is fenced,
and its run stops without an end. So every run has exactly one terminal entry.

The tables are derived from the log. On a store without transactions they are written in an order that `maintenance` can
repair: the active row is written before the log's first entry, and removed last. The idempotency key is written before
everything else: the node that creates it may start the job's log, and a node that releases the key first appends an
"annulled" entry to that log, so that the job can no longer be started.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Sequence

import msgspec

from amends.arcp.runtime.entries import (
    ACTIVE,
    CANCELS,
    CONTINUED,
    JOBS,
    KEYS,
    JobEntry,
    JobSpec,
    Summary,
    digest,
    encode,
    job_log,
    queue_of,
)
from amends.arcp.runtime.limits import Limits
from amends.durable.batch import Batch
from amends.durable.keys import Owner, Owners
from amends.durable.retention import delete_subject
from amends.errors.arcp import DuplicateKeyError, InternalError
from amends.logs import logger
from amends.proof import Claim, Proof, rests_on
from amends.stores import ConflictError, Entry, Store, TrimmedError

__all__ = ["Ledger", "ended_key", "key_conflict", "may_rerun", "position_of", "read_entry", "summary_of"]

_decode_entry = msgspec.json.Decoder(JobEntry).decode
_read_spec = msgspec.json.Decoder(JobSpec).decode
_read_summary = msgspec.json.Decoder(Summary).decode
_PAGE = 512
_LATEST = 0xFFFFFFFFFFFFFF
"""Microseconds: a time after that of every job. Its difference from a time has 14 hexadecimal digits."""

_log = logger("amends.arcp")
_UNREADABLE = JobEntry("unreadable", 0, 0, "", 0.0)
_UNKNOWN_NODE = "?"
"""The node of a job whose newest entries cannot be read. No node has this id, so the job is taken over or ends in doubt."""


def read_entry(value: bytes) -> JobEntry:
    """Decode an entry of a job's log. One that is none has the kind `unreadable`, which is not sent to clients."""
    try:
        return _decode_entry(value)
    except msgspec.MsgspecError:
        return _UNREADABLE


def summary_of(spec: JobSpec, status: str, run: int, *, ended: float = 0.0, last: int = 0) -> Summary:
    """Return the row that shows a job in listings."""
    return Summary(
        job_id=spec.job_id,
        principal=spec.principal,
        session=spec.session,
        agent=spec.agent,
        status=status,
        created=spec.created,
        trace=spec.trace,
        grants=spec.grants,
        expires_at=spec.expires_at,
        parent=spec.parent,
        key=spec.key,
        run=run,
        ended=ended,
        last=last,
    )


class Ledger:
    """Reads and writes the jobs in a store on behalf of one node."""

    def __init__(self, store: Store, node: str, limits: Limits) -> None:
        self.store = store
        self.node = node
        self._limits = limits
        self.keys = Owners(store, KEYS)

    # -- reading

    async def spec(self, job_id: str) -> JobSpec | None:
        """Return what a job was submitted with, or None if there is no such job."""
        try:
            first = await self.store.log(job_log(job_id)).read(1, limit=1)
        except TrimmedError:
            return None
        entry = read_entry(first[0].value) if first else None
        return _read_spec(entry.payload) if entry is not None and entry.kind == "accepted" else None

    async def tail(self, job_id: str) -> tuple[int, JobEntry] | None:
        """
        Return the newest entry and its number, or None if there is no such job.

        If the newest entries cannot be read, the one before them counts. The job may have changed its node after it.
        """
        newest = await self.store.log(job_log(job_id)).tail()
        if newest is None:
            return None
        entry = read_entry(newest.value)
        if entry is _UNREADABLE:
            _log.error("entry %d of the log of job %s cannot be read", newest.seq, job_id)
            async for _, found in self.history(job_id):
                entry = found
            if not entry.ended:
                entry = msgspec.structs.replace(entry, node=_UNKNOWN_NODE)
        return newest.seq, entry

    async def spec_and_tail(self, job_id: str) -> tuple[JobSpec | None, tuple[int, JobEntry] | None]:
        """Return `spec` and `tail`, with a single read if the log has only one entry."""
        tail = await self.tail(job_id)
        if tail is None:
            return None, None
        if tail[0] == 1 and tail[1].kind == "accepted":
            return _read_spec(tail[1].payload), tail
        return await self.spec(job_id), tail

    async def is_deleted(self, job_id: str) -> bool:
        """Whether a job's log is no longer in the store."""
        return await self.store.log(job_log(job_id)).tail() is None

    async def entries(self, job_id: str, start: int) -> list[Entry]:
        """Return a page of a job's log; empty at its end, and if there is no log."""
        try:
            return await self.store.log(job_log(job_id)).read(start, limit=_PAGE)
        except TrimmedError:
            return []

    async def history(self, job_id: str) -> AsyncIterator[tuple[int, JobEntry]]:
        """Yield every entry of a job's log that can be read, with its number."""
        start = 1
        while page := await self.entries(job_id, start):
            for stored in page:
                if (entry := read_entry(stored.value)) is not _UNREADABLE:
                    yield stored.seq, entry
            start = page[-1].seq + 1

    async def active(self, node: str | None = None) -> AsyncIterator[tuple[str, Summary]]:
        """Yield the jobs that have not ended with their node, of one node ("" for queued jobs) or of all nodes."""
        async for row in self.store.table(ACTIVE).scan("" if node is None else f"{node or '-'}/"):
            if row.value:
                owner = row.key.partition("/")[0]
                yield "" if owner == "-" else owner, _read_summary(row.value)

    async def ended(self, principal: str | None = None) -> AsyncIterator[Summary]:
        """Yield the ended jobs that are still stored, of one principal or of all."""
        prefix = "" if principal is None else f"{digest(principal)}/"
        async for row in self.store.table(JOBS).scan(prefix):
            yield _read_summary(row.value)

    async def newest(self, principal: str | None, after: str) -> AsyncIterator[tuple[str, Summary]]:
        """
        Yield the ended jobs of one principal or of all with their positions, the newest first.

        With a principal, a store that scans in order reads only the rows that are taken. Other stores read all.

        Args:
            principal: whose jobs.
            after: only jobs behind this position; "" for all.

        """
        table = self.store.table(JOBS)
        prefix = "" if principal is None else f"{digest(principal)}/"
        if principal is not None and self.store.traits.ordered:
            async for row in table.scan(prefix, after=prefix + after):
                yield row.key.removeprefix(prefix), _read_summary(row.value)
            return
        found = {row.key.partition("/")[2]: row.value async for row in table.scan(prefix)}
        for position in sorted(found):
            if position > after:
                yield position, _read_summary(found[position])

    async def is_cancelled(self, job_id: str) -> bool:
        """Whether the job's cancellation was requested while its node could not be reached."""
        return await self.store.table(CANCELS).get(job_id) is not None

    # -- writing

    async def accept(self, spec: JobSpec, *, here: bool) -> JobEntry:
        """
        Write a new job. Returns the first entry of its log.

        Args:
            spec: what was submitted.
            here: whether this node runs the job at once; otherwise the job is put into its queue.

        Raises:
            ConflictError: another job has its key.
            InternalError: another submission released the key before this one was written; the job does not exist.

        """
        node, epoch = (self.node, 1) if here else ("", 0)
        entry = JobEntry("accepted", 1, epoch, node, spec.created, msgspec.Raw(encode(spec)))
        active, log = _active_row(spec, entry), job_log(spec.job_id)
        steps = Batch()
        if spec.key is not None:
            self.keys.create(steps, spec.key, Owner(spec.job_id, spec.fingerprint))
        steps.put(*active)
        steps.append(log, encode(entry), last=0)
        if not here:
            steps.enqueue(queue_of(spec.agent), spec.job_id.encode(), spec.job_id)
        try:
            await steps.commit(self.store)
        except ConflictError:
            if not self.store.traits.transactions and await self.tail(spec.job_id) is not None:
                await self.store.table(ACTIVE).delete(active[1])
                raise InternalError(
                    "Another submission with the same key is in progress: submit again"
                ) from None
            raise
        return entry

    async def release_key(self, key: str) -> str | None:
        """
        Free a key whose job was deleted or never written. Returns the job's id, or None if the job exists by now.

        The "annulled" entry stops a slow submission: it can no longer write the first entry of the job's log.
        """
        owner = await self.keys.get(key)
        if owner is None:
            return None
        job_id = owner.id
        try:
            await self.store.log(job_log(job_id)).append(
                encode(JobEntry("annulled", 0, 0, "", time.time())), last=0
            )
        except ConflictError:
            if await self.spec(job_id) is not None:
                return None
        await self.keys.release(key, job_id)
        return job_id

    async def rerun(
        self, spec: JobSpec, tail: tuple[int, JobEntry], *, here: bool, answered: bytes | None = None
    ) -> JobEntry:
        """
        Write the start of another run of an ended job behind `tail`. Returns the new entry.

        Args:
            spec: what was submitted.
            tail: the newest entry and its number.
            here: whether this node runs it.
            answered: the record of a step whose question was answered: the run continues the steps of the one before.

        Raises:
            ConflictError: another node did so first.

        """
        kind, node = ("started", self.node) if here else ("queued", "")
        return await self._assign(spec, tail, kind, node, answered)

    async def start(self, spec: JobSpec, tail: tuple[int, JobEntry]) -> JobEntry:
        """
        Write behind `tail` that this node runs a queued job. Returns the new entry.

        Raises:
            ConflictError: another node did so first, or the job was cancelled.

        """
        return await self._assign(spec, tail, "started", self.node)

    async def requeue(self, spec: JobSpec, tail: tuple[int, JobEntry]) -> None:
        """
        Put the run of a dead or stopping node back into the queue. The node can no longer write to the job's log.

        Raises:
            ConflictError: the node was still alive and wrote, or another node took the job over first.

        """
        await self._assign(spec, tail, "requeued", "")

    async def _assign(
        self,
        spec: JobSpec,
        tail: tuple[int, JobEntry],
        kind: str,
        node: str,
        answered: bytes | None = None,
    ) -> JobEntry:
        """Write behind `tail` that a node or the queue ("") has the job: in the same run, or in the next if that ended."""
        last, before = tail
        entry = JobEntry(kind, before.run + before.ended, before.epoch + 1, node, time.time())
        if answered is not None:
            entry = msgspec.structs.replace(entry, payload=msgspec.Raw(answered), label=CONTINUED)
        steps = Batch()
        steps.append(job_log(spec.job_id), encode(entry), last=last)
        steps.put(*_active_row(spec, entry))
        if before.ended:
            if spec.key is not None:
                # The key must not expire while the job runs.
                self.keys.put(steps, spec.key, Owner(spec.job_id, spec.fingerprint))
            steps.delete(JOBS, ended_key(spec))
        if not node:
            steps.enqueue(queue_of(spec.agent), spec.job_id.encode(), spec.job_id)
        if not before.ended:
            steps.retire(ACTIVE, _active_key(spec.job_id, before.node))
        await steps.commit(self.store)
        return entry

    async def put_in_queue(self, spec: JobSpec) -> None:
        """Put a waiting job into its queue; without transactions, a crash may have prevented that."""
        await self.store.queue(queue_of(spec.agent)).put(spec.job_id.encode(), key=spec.job_id)

    async def write_owner(self, spec: JobSpec, entry: JobEntry) -> None:
        """Write the active row of a job that has not ended, for the node in its newest entry or for the queue."""
        await self.store.table(ACTIVE).put(*_active_row(spec, entry)[1:])

    async def write(self, spec: JobSpec, entries: Sequence[JobEntry], last: int) -> None:
        """
        Append events behind entry `last`.

        Raises:
            ConflictError: another node has taken the job over.

        """
        log, steps = job_log(spec.job_id), Batch()
        for number, entry in enumerate(entries, last):
            steps.append(log, encode(entry), last=number)
        await steps.commit(self.store)

    def end(
        self, spec: JobSpec, entries: Sequence[JobEntry], last: int, status: str, owner: str
    ) -> Awaitable[None]:
        """
        Append the remaining events and the terminal entry behind entry `last`, and update the tables.

        Raises:
            ConflictError: another node has taken the job over.

        """
        return self._record_end(spec, entries[-1], last + len(entries), status, owner, entries)

    async def repair(self, spec: JobSpec, tail: tuple[int, JobEntry], status: str, owner: str) -> None:
        """Update the tables of a job whose log has a terminal entry, after its node died between the two."""
        await self._record_end(spec, tail[1], tail[0], status, owner, ())

    async def _record_end(
        self,
        spec: JobSpec,
        entry: JobEntry,
        last: int,
        status: str,
        owner: str,
        new: Sequence[JobEntry],
    ) -> None:
        """Write the `new` entries at the end of the log, of which `last` is the number of the last one, and the tables."""
        row = encode(summary_of(spec, status, entry.run, ended=entry.at, last=last))
        ended, active, log = ended_key(spec), _active_key(spec.job_id, owner), job_log(spec.job_id)
        steps = Batch()
        for number, one in enumerate(new, last - len(new)):
            steps.append(log, encode(one), last=number)
        steps.put(JOBS, ended, row)
        if spec.key is not None:
            held_by = Owner(spec.job_id, spec.fingerprint)
            self.keys.put(steps, spec.key, held_by, expires_in=self._limits.key_window)
        steps.retire(ACTIVE, active)
        await steps.commit(self.store)

    async def delete(self, job_id: str, row: str, key: str | None) -> None:
        """Delete an ended job: its key, its log and its row, of which `row` is the key."""
        await delete_subject(
            self.store, job_id, log=job_log(job_id), row=(JOBS, row), keys=self.keys, key=key
        )


def _active_row(spec: JobSpec, entry: JobEntry) -> tuple[str, str, bytes]:
    """Return table, key and value of the row of a job that has not ended."""
    status = "running" if entry.node else "pending"
    return ACTIVE, _active_key(spec.job_id, entry.node), encode(summary_of(spec, status, entry.run))


def _active_key(job_id: str, node: str) -> str:
    return f"{node or '-'}/{job_id}"


def position_of(job: JobSpec | Summary) -> str:
    """Return the place of a job among others, as text: newer jobs come first."""
    return f"{max(0, _LATEST - int(job.created * 1e6)):014x}/{job.job_id}"


def ended_key(job: JobSpec | Summary) -> str:
    """Return the key of the row of an ended job, by which the newest job of a principal comes first."""
    return f"{digest(job.principal)}/{position_of(job)}"


def key_conflict(owner: Owner) -> DuplicateKeyError:
    """Return the error for a key that was used with a different request."""
    return DuplicateKeyError("The idempotency key was used for another request", details={"job_id": owner.id})


@rests_on(Claim.MAY_REPEAT, Proof.RECORD)
def may_rerun(entry: JobEntry) -> bool:
    """Whether a job may run again after this entry: it failed with a retryable error, and its effect is not in doubt."""
    if entry.kind != "error":
        return False
    error = msgspec.json.decode(entry.payload)
    return error.get("retryable") is True and not (error.get("details") or {}).get("in_doubt")
