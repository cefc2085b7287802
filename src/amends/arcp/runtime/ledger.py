"""
What is written about jobs, and when: accepting, starting, events, ending, running again, taking over.

Only the owner of a run appends to a job's log, and only behind what it knows to be the newest entry. A takeover
appends first, so the next append of whoever held the job before fails with `ConflictError`: it is fenced, on every
backend, and its run ends without a word. The first terminal entry of a run is therefore the only one.

The tables are derived. Where a store has no transactions they are written in an order the keeper can mend: an active row
before the log says that there is a job, and last to go. A key comes before everything: whoever has it may begin the job's
log, and whoever takes it over first writes into that log that there is no such job.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress

import msgspec

from amends.arcp.runtime.batch import Steps
from amends.arcp.runtime.entries import (
    ACTIVE,
    CANCELS,
    JOBS,
    KEYS,
    JobEntry,
    JobSpec,
    KeyRow,
    Summary,
    digest,
    encode,
    job_log,
    queue_of,
)
from amends.arcp.runtime.limits import Limits
from amends.errors.arcp import DuplicateKeyError, InternalError
from amends.stores import ConflictError, Entry, Store, TrimmedError

__all__ = ["Ledger", "conflicting", "read_mark", "repeatable", "summary_of"]

_read_mark = msgspec.json.Decoder(JobEntry).decode
_read_order = msgspec.json.Decoder(JobSpec).decode
_read_summary = msgspec.json.Decoder(Summary).decode
_read_key = msgspec.json.Decoder(KeyRow).decode
_PAGE = 512

Also = Callable[[Steps], None] | None
"""Steps of somebody else's in the same transaction."""


def read_mark(value: bytes) -> JobEntry:
    """An entry of a job's log, as written."""
    return _read_mark(value)


def summary_of(order: JobSpec, status: str, run: int, *, ended: float = 0.0, last: int = 0) -> Summary:
    """The row that shows a job in listings."""
    return Summary(
        job_id=order.job_id,
        principal=order.principal,
        session=order.session,
        agent=order.agent,
        status=status,
        created=order.created,
        trace=order.trace,
        grants=order.grants,
        expires_at=order.expires_at,
        parent=order.parent,
        key=order.key,
        run=run,
        ended=ended,
        last=last,
    )


class Ledger:
    """The jobs in one store, as one node sees them."""

    def __init__(self, store: Store, node: str, limits: Limits) -> None:
        self.store = store
        self.node = node
        self._limits = limits

    # -- reading

    async def order(self, job_id: str) -> JobSpec | None:
        """What was asked for, or None where there is no such job."""
        try:
            first = await self.store.log(job_log(job_id)).read(1, limit=1)
        except TrimmedError:
            return None
        mark = _read_mark(first[0].value) if first else None
        return _read_order(mark.payload) if mark is not None and mark.kind == "accepted" else None

    async def tail(self, job_id: str) -> tuple[int, JobEntry] | None:
        """The newest entry and its number, or None where there is no such job."""
        newest = await self.store.log(job_log(job_id)).tail()
        return None if newest is None else (newest.seq, _read_mark(newest.value))

    async def standing(self, job_id: str) -> tuple[JobSpec | None, tuple[int, JobEntry] | None]:
        """What was asked for, and the newest entry; where that is the first too, one look is enough."""
        tail = await self.tail(job_id)
        if tail is None:
            return None, None
        if tail[0] == 1 and tail[1].kind == "accepted":
            return _read_order(tail[1].payload), tail
        return await self.order(job_id), tail

    async def forgotten(self, job_id: str) -> bool:
        """Whether nothing is kept of a job."""
        return await self.store.log(job_log(job_id)).tail() is None

    async def entries(self, job_id: str, start: int) -> list[Entry]:
        """A page of a job's log; empty at its end, and where there is none."""
        try:
            return await self.store.log(job_log(job_id)).read(start, limit=_PAGE)
        except TrimmedError:
            return []

    async def history(self, job_id: str) -> AsyncIterator[tuple[int, JobEntry]]:
        """Every entry of a job's log."""
        start = 1
        while page := await self.entries(job_id, start):
            for entry in page:
                yield entry.seq, _read_mark(entry.value)
            start = page[-1].seq + 1

    async def key(self, name: str) -> KeyRow | None:
        """Which job a key stands for."""
        row = await self.store.table(KEYS).get(name)
        return None if row is None else _read_key(row.value)

    async def active(self, node: str | None = None) -> AsyncIterator[tuple[str, Summary]]:
        """The jobs that have not ended, of one node (empty: those in queues) or of all, each with its node."""
        async for row in self.store.table(ACTIVE).scan("" if node is None else f"{node or '-'}/"):
            if row.value:
                owner = row.key.partition("/")[0]
                yield "" if owner == "-" else owner, _read_summary(row.value)

    async def ended(self, principal: str | None = None) -> AsyncIterator[Summary]:
        """The jobs that have ended and are still kept, of one principal or of all."""
        prefix = "" if principal is None else f"{digest(principal)}/"
        async for row in self.store.table(JOBS).scan(prefix):
            yield _read_summary(row.value)

    async def cancelled(self, job_id: str) -> bool:
        """Whether somebody asked for this job's end while its node could not hear."""
        return await self.store.table(CANCELS).get(job_id) is not None

    # -- writing

    async def accept(self, order: JobSpec, *, here: bool, also: Also = None) -> None:
        """
        Write a new job down; `here`, this node runs it at once, else it waits in its queue.

        Args:
            order: what was asked for.
            here: whether it begins at once.
            also: adds steps to the same transaction.

        Raises:
            ConflictError: its key is taken.
            InternalError: the key was taken over while this was slow; nothing has begun.

        """
        mark = self.accepted(order, here=here)
        steps = Steps()
        if order.key is not None:
            steps.create(KEYS, order.key, encode(KeyRow(order.job_id, order.fingerprint)))
        self._activate(steps, order, mark)
        steps.append(job_log(order.job_id), encode(mark), last=0)
        if not here:
            steps.enqueue(queue_of(order.agent), order.job_id.encode(), order.job_id)
        if also is not None:
            also(steps)
        try:
            await steps.commit(self.store)
        except ConflictError:
            if not self.store.supports_transactions and await self.tail(order.job_id) is not None:
                await self.store.table(ACTIVE).delete(self._active_key(order.job_id, mark.node))
                raise InternalError("The key is contended: submit again") from None
            raise

    async def annul(self, key: str) -> str | None:
        """
        Free a key whose job was never begun, or is forgotten; the id it stood for, unless it stands for a job by now.

        Whoever is slow with beginning that job finds this in its log, and does not.
        """
        row = await self.store.table(KEYS).get(key)
        if row is None:
            return None
        job_id = _read_key(row.value).job_id
        try:
            await self.store.log(job_log(job_id)).append(
                encode(JobEntry("annulled", 0, 0, "", time.time())), last=0
            )
        except ConflictError:
            if await self.order(job_id) is not None:
                return None
        with suppress(ConflictError):
            await self.store.table(KEYS).delete(key, revision=row.revision)
        return job_id

    def accepted(self, order: JobSpec, *, here: bool) -> JobEntry:
        """The first entry of a job's log."""
        node, epoch = (self.node, 1) if here else ("", 0)
        return JobEntry("accepted", 1, epoch, node, order.created, msgspec.Raw(encode(order)))

    async def again(self, order: JobSpec, tail: tuple[int, JobEntry], *, here: bool) -> JobEntry:
        """
        Begin another run of a job that ended, behind the entry that was looked at. Returns what was written.

        Raises:
            ConflictError: somebody else did.

        """
        last, before = tail
        epoch = before.epoch + 1
        mark = JobEntry(
            "started" if here else "queued", before.run + 1, epoch, self.node if here else "", time.time()
        )
        steps = Steps()
        steps.append(job_log(order.job_id), encode(mark), last=last)
        self._activate(steps, order, mark)
        if order.key is not None:
            # While it runs, the key must not come to its end.
            steps.put(KEYS, order.key, encode(KeyRow(order.job_id, order.fingerprint)))
        steps.delete(JOBS, self._ended_key(order))
        if not here:
            steps.enqueue(queue_of(order.agent), order.job_id.encode(), order.job_id)
        await steps.commit(self.store)
        return mark

    async def start(self, order: JobSpec, tail: tuple[int, JobEntry]) -> JobEntry:
        """
        Take a job from the queue, behind the entry that was looked at. Returns what was written.

        Raises:
            ConflictError: somebody else did, or it was cancelled.

        """
        last, before = tail
        mark = JobEntry("started", before.run, before.epoch + 1, self.node, time.time())
        steps = Steps()
        steps.append(job_log(order.job_id), encode(mark), last=last)
        self._activate(steps, order, mark)
        steps.retire(ACTIVE, self._active_key(order.job_id, ""))
        await steps.commit(self.store)
        return mark

    async def requeue(self, order: JobSpec, tail: tuple[int, JobEntry]) -> None:
        """
        Put the run of a dead (or stopping) node back into the queue, fencing that node out.

        Raises:
            ConflictError: it was not dead, or somebody else did.

        """
        last, before = tail
        mark = JobEntry("requeued", before.run, before.epoch + 1, "", time.time())
        steps = Steps()
        steps.append(job_log(order.job_id), encode(mark), last=last)
        self._activate(steps, order, mark)
        steps.enqueue(queue_of(order.agent), order.job_id.encode(), order.job_id)
        steps.retire(ACTIVE, self._active_key(order.job_id, before.node))
        await steps.commit(self.store)

    async def put_in_queue(self, order: JobSpec) -> None:
        """Make sure that a job that waits is in its queue: without transactions, a crash may have come in between."""
        await self.store.queue(queue_of(order.agent)).put(order.job_id.encode(), key=order.job_id)

    async def note_owner(self, order: JobSpec, mark: JobEntry) -> None:
        """Write the row of a job that has not ended, as its log says: of the node that has it, or of the queue."""
        steps = Steps()
        self._activate(steps, order, mark)
        await steps.commit(self.store)

    async def write(self, order: JobSpec, marks: Sequence[JobEntry], last: int) -> None:
        """
        Append events behind entry `last`; also of a job that is written down only now.

        Raises:
            ConflictError: the job is no longer ours.

        """
        steps = Steps()
        for number, mark in enumerate(marks):
            steps.append(job_log(order.job_id), encode(mark), last=last + number)
        if not last:
            self._activate(steps, order, marks[0])
        await steps.commit(self.store)

    async def end(
        self, order: JobSpec, marks: Sequence[JobEntry], last: int, status: str, owner: str, also: Also = None
    ) -> None:
        """
        Append what is left and the terminal entry behind entry `last`, and say so in the tables.

        Raises:
            ConflictError: the job is no longer ours.

        """
        steps = Steps()
        for number, mark in enumerate(marks):
            steps.append(job_log(order.job_id), encode(mark), last=last + number)
        # A job that is written down together with its end has not been among the active ones.
        self._settle(steps, order, marks[-1], last + len(marks), status, owner if last else None)
        if also is not None:
            also(steps)
        await steps.commit(self.store)

    async def mend(self, order: JobSpec, tail: tuple[int, JobEntry], status: str, owner: str) -> None:
        """Write the tables of a job whose log has ended; for nodes that died in between."""
        steps = Steps()
        self._settle(steps, order, tail[1], tail[0], status, owner)
        await steps.commit(self.store)

    async def forget(self, job_id: str, principal: str, key: str | None) -> None:
        """Remove an ended job with all that is kept of it."""
        await self.store.table(JOBS).discard(f"{digest(principal)}/{job_id}")
        if key is not None:
            row = await self.store.table(KEYS).get(key)
            if row is not None and _read_key(row.value).job_id == job_id:
                with suppress(ConflictError):
                    await self.store.table(KEYS).delete(key, revision=row.revision)
        await self.store.log(job_log(job_id)).drop()

    # -- rows

    def _activate(self, steps: Steps, order: JobSpec, mark: JobEntry) -> None:
        status = "running" if mark.node else "pending"
        steps.put(
            ACTIVE, self._active_key(order.job_id, mark.node), encode(summary_of(order, status, mark.run))
        )

    def _settle(
        self, steps: Steps, order: JobSpec, mark: JobEntry, last: int, status: str, owner: str | None
    ) -> None:
        row = summary_of(order, status, mark.run, ended=mark.at, last=last)
        steps.put(JOBS, self._ended_key(order), encode(row))
        if order.key is not None:
            steps.put(
                KEYS,
                order.key,
                encode(KeyRow(order.job_id, order.fingerprint)),
                expires_in=self._limits.key_window,
            )
        if owner is not None:
            steps.retire(ACTIVE, self._active_key(order.job_id, owner))

    @staticmethod
    def _active_key(job_id: str, node: str) -> str:
        return f"{node or '-'}/{job_id}"

    @staticmethod
    def _ended_key(order: JobSpec) -> str:
        return f"{digest(order.principal)}/{order.job_id}"


def conflicting(row: KeyRow) -> DuplicateKeyError:
    """The key was used for another request."""
    return DuplicateKeyError(
        "The idempotency key was used for another request", details={"job_id": row.job_id}
    )


def repeatable(mark: JobEntry) -> bool:
    """Whether an ended run may be followed by another: it failed, says that a retry may help, and is not in doubt."""
    if mark.kind != "error":
        return False
    error = msgspec.json.decode(mark.payload)
    return error.get("retryable") is True and not (error.get("details") or {}).get("in_doubt")
