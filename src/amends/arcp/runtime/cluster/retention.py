"""Ended jobs: kept until they are too old or too many, then deleted by the node that ended them or its successor."""

from __future__ import annotations

import msgspec

from amends.arcp.runtime.entries import SESSIONS, session_log
from amends.arcp.runtime.ledger import Ledger, ended_key
from amends.arcp.runtime.limits import Limits
from amends.arcp.runtime.tasks import Tasks
from amends.durable.retention import Retention

__all__ = ["EndedJob", "EndedJobs"]

_SLACK = 128
"""How far the number of ended jobs may exceed its limit before a deletion is started."""


class EndedJob(msgspec.Struct, frozen=True, gc=False):
    """An ended job that is stored until its retention time is over."""

    job_id: str
    row: str
    """The key of its row (`ended_key`); empty if it has none."""
    key: str | None
    at: float


class EndedJobs:
    """The ended jobs that this node deletes."""

    def __init__(self, ledger: Ledger, limits: Limits, tasks: Tasks) -> None:
        self._ledger = ledger
        self._tasks = tasks
        self.plain = self._retention(limits.finished, limits.finished_for)
        """Ended jobs without an idempotency key."""
        self.keyed = self._retention(limits.keyed, limits.key_window)
        """Ended jobs with an idempotency key."""

    def _retention(self, most: int, age: float) -> Retention[EndedJob]:
        together = not self._tasks.immediate
        return Retention(self._delete, ended=lambda one: one.at, most=most, age=age, together=together)

    async def _delete(self, ended: EndedJob) -> None:
        if ended.key is not None:
            # The job may have run again under its key. Then a later end decides when it is deleted.
            tail = await self._ledger.tail(ended.job_id)
            if tail is not None and not (tail[1].ended and tail[1].at <= ended.at):
                return
        await self._ledger.delete(ended.job_id, ended.row, ended.key)

    def add(self, ended: EndedJob) -> None:
        """Add an ended job, and start to delete the oldest ones if there are too many."""
        retention = self.plain if ended.key is None else self.keyed
        retention.add(ended)
        if retention.excess > _SLACK:
            self._tasks.spawn(self.expire())

    async def expire(self) -> None:
        """Delete ended jobs that are older than the limits allow, or too many."""
        await self.plain.expire()
        await self.keyed.expire()

    async def take_over(self) -> None:
        """Add the ended jobs that other nodes left, and delete logs of sessions that no longer exist."""
        rows = [row async for row in self._ledger.ended()]
        for row in sorted(rows, key=lambda row: row.ended):
            self.add(EndedJob(row.job_id, ended_key(row), row.key, row.ended))
        store, prefix = self._ledger.store, session_log("")
        for name in (await store.names())["logs"]:
            if name.startswith(prefix) and await store.table(SESSIONS).get(name.removeprefix(prefix)) is None:
                await store.log(name).drop()
