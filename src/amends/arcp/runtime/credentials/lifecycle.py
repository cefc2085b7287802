"""
Issue credentials for jobs and revoke them afterwards (section 9.8.2), also when nodes die in between.

A row in the store records a job's outstanding credentials. It is written before the provider issues anything, so a node
that dies at any moment leaves the row behind, and another node revokes those credentials and repeats that until it
succeeds. A row belongs to one run: the next run revokes the credentials of the previous one before it gets its own.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Container
from dataclasses import dataclass, field

import msgspec

from amends.arcp.runtime.credentials.provider import CredentialProvider, Outstanding, grant_of
from amends.arcp.runtime.credentials.rotation import Rotation
from amends.arcp.runtime.entries import CREDENTIALS, JobSpec, encode
from amends.arcp.runtime.jobs.job import Job
from amends.arcp.runtime.ledger import Ledger
from amends.arcp.runtime.limits import Limits
from amends.arcp.runtime.tasks import Tasks
from amends.errors.arcp import InternalError
from amends.logs import logger
from amends.stores import ConflictError, StoreError, Table

__all__ = ["CredentialLifecycle"]

_log = logger("amends.arcp")
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 60.0
_TRIES = 8
_read = msgspec.json.Decoder(Outstanding).decode


@dataclass(eq=False)
class CredentialLifecycle:
    """Issues, assigns, rotates and revokes the credentials of one provider; without a provider, jobs have none."""

    _provider: CredentialProvider | None
    _ledger: Ledger
    _limits: Limits
    _tasks: Tasks
    _running: Container[str]
    """The ids of the jobs that run on this node."""
    _revoking: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._rotation = Rotation(self._provider, self._ledger.store, self._tasks)

    @property
    def _table(self) -> Table:
        return self._ledger.store.table(CREDENTIALS)

    async def issue(self, spec: JobSpec) -> Outstanding | None:
        """
        Issue credentials for a job, after writing a row to the store that records them as outstanding.

        Raises:
            InternalError: the provider failed. Credentials that it may have issued are revoked in the background.

        """
        if self._provider is None:
            return None
        left = await self._table.get(spec.job_id)
        try:
            if left is not None:
                # Credentials of the previous run must be revoked before this run gets its own.
                await self._provider.revoke(spec.job_id, _read(left.value).ids)
            await self._table.put(spec.job_id, encode(Outstanding(time.time())))
            minted = tuple(await self._provider.issue(grant_of(spec)))
            due = self._rotation.due(minted)
        except Exception as error:
            if isinstance(error, StoreError):
                raise
            _log.exception("credentials for job %s could not be issued", spec.job_id)
            self.revoke_later(spec.job_id)
            raise InternalError("Credentials could not be issued") from error
        outstanding = Outstanding(time.time(), tuple(credential.id for credential in minted), minted, due=due)
        await self._table.put(spec.job_id, encode(outstanding))
        return outstanding

    def assign(self, job: Job, outstanding: Outstanding | None) -> None:
        """Give a job that runs on this node its credentials, and schedule their rotation."""
        if outstanding is not None:
            job.give_credentials(outstanding.wire())
            self._rotation.schedule(job, outstanding)

    async def assign_stored(self, job: Job) -> None:
        """Assign the credentials in the store to a job that was taken from a queue."""
        self.assign(job, await self.outstanding(job.spec.job_id))

    async def rotate(self, job: Job, id: str) -> dict[str, object]:
        """
        Rotate a credential of a job that runs on this node. Returns it in its wire form.

        Raises:
            InternalError: the rotation failed; the old value stays in use.

        """
        return await self._rotation.rotate(job, id)

    async def outstanding(self, job_id: str) -> Outstanding | None:
        """Return a job's outstanding credentials, or None."""
        row = None if self._provider is None else await self._table.get(job_id)
        return None if row is None else _read(row.value)

    def revoke_later(self, job_id: str) -> None:
        """Revoke a job's outstanding credentials in a task of its own."""
        if self._provider is not None:
            self._tasks.spawn(self.revoke(job_id))

    async def revoke(self, job_id: str) -> None:
        """Revoke a job's outstanding credentials, with several tries; `clean_up` repeats it if they all fail."""
        if self._provider is None or job_id in self._revoking:
            return
        self._revoking.add(job_id)
        pause = _FIRST_PAUSE
        since: float | None = None
        try:
            # A rotation in progress has to store its new value first, so that the value is revoked too.
            await self._rotation.wait_until_idle(job_id)
            for _ in range(_TRIES):
                row = await self._table.get(job_id)
                outstanding = None if row is None else _read(row.value)
                if row is None or outstanding is None or since not in {None, outstanding.since}:
                    # Another task or node revoked them, or the row now belongs to a later run.
                    return
                since = outstanding.since
                try:
                    await self._provider.revoke(job_id, outstanding.ids)
                    await self._table.delete(job_id, revision=row.revision)
                except ConflictError:
                    continue
                except StoreError:
                    raise
                except Exception:  # noqa: BLE001 - providers may raise anything
                    _log.exception("the credentials of job %s could not be revoked; trying again", job_id)
                    await asyncio.sleep(pause)
                    pause = min(pause * 2, _LONGEST_PAUSE)
                else:
                    return
            _log.error("the credentials of job %s could not be revoked and are still valid", job_id)
        except StoreError:
            _log.exception(
                "the credentials of job %s may still be valid: the store failed during revocation", job_id
            )
        finally:
            self._revoking.discard(job_id)

    async def clean_up(self) -> None:
        """
        Revoke credentials of jobs that have ended or were never written, and retire values that were replaced.

        This covers crashes, and providers that were unavailable longer than `revoke` and `rotate` tried.
        """
        if self._provider is None:
            return
        long_ago = time.time() - 2 * self._limits.node_lease
        async for row in self._table.scan():
            tail = await self._ledger.tail(row.key)
            outstanding = _read(row.value)
            # A node may be about to write the job that belongs to a young row.
            if (tail is None and outstanding.since < long_ago) or (tail is not None and tail[1].ended):
                self.revoke_later(row.key)
            elif outstanding.replaced and row.key in self._running:
                self._rotation.retire_replaced(row.key, outstanding)
