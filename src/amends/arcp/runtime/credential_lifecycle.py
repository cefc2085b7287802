"""
Minting credentials for jobs, and making them worthless again (section 9.8.2), whatever happens in between.

What is outstanding stands in the store before anything is minted, so that a node that dies at any moment leaves a row
behind; whoever finds it revokes what it names, and tries until that has worked. A row is of one run: a further run
revokes what the one before has left before it mints its own.
"""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING, Any

import msgspec

from amends.arcp.runtime.credentials import CredentialProvider, Outstanding, grant_of
from amends.arcp.runtime.entries import CREDENTIALS, JobSpec, encode
from amends.arcp.runtime.rotation import Rotation
from amends.errors.arcp import InternalError
from amends.stores import ConflictError, StoreError

if TYPE_CHECKING:
    from amends.arcp.runtime.job import Job
    from amends.arcp.runtime.node import Node

__all__ = ["Issued"]

_log = logging.getLogger("amends.arcp")
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 60.0
_TRIES = 8
_read = msgspec.json.Decoder(Outstanding).decode


class Issued:
    """A provider and what it has outstanding."""

    def __init__(self, provider: CredentialProvider) -> None:
        self._provider = provider
        self._rotation = Rotation(provider)
        self._node: Node
        self._revoking: set[str] = set()

    def use(self, node: Node) -> None:
        """The node it works for."""
        self._node = node
        self._rotation.use(node)

    async def issue(self, order: JobSpec) -> Outstanding:
        """
        Mint what a job needs, with a trace of it left in the store beforehand.

        Raises:
            InternalError: the provider failed; nothing is left behind.

        """
        table = self._node.store.table(CREDENTIALS)
        left = await table.get(order.job_id)
        try:
            if left is not None:
                # Of the run before: revoked now, or there is no other.
                await self._provider.revoke(order.job_id, _read(left.value).ids)
            await table.put(order.job_id, encode(Outstanding(time.time())))
            minted = tuple(await self._provider.issue(grant_of(order)))
            due = self._rotation.due(minted)
        except Exception as error:
            if isinstance(error, StoreError):
                raise
            _log.exception("credentials for job %s could not be issued", order.job_id)
            self._node.spawn(self.revoke(order.job_id))
            raise InternalError("Credentials could not be issued") from error
        outstanding = Outstanding(time.time(), tuple(credential.id for credential in minted), minted, due=due)
        await table.put(order.job_id, encode(outstanding))
        return outstanding

    def give(self, job: Job, outstanding: Outstanding) -> None:
        """Hand a job that runs here what was minted for it; from now on it is rotated when that is due."""
        job.credentials = outstanding.wire()
        self._rotation.attend(job, outstanding)

    async def found(self, job: Job) -> None:
        """The same for a job that was taken from a queue: what was minted stands in the store."""
        outstanding = await self.outstanding(job.order.job_id)
        if outstanding is not None:
            self.give(job, outstanding)

    async def rotate(self, job: Job, id: str) -> dict[str, Any]:
        """
        Give a credential of a job that runs here another value, now. Returns it as it is sent.

        Raises:
            InternalError: that could not be; the value before is what there is.

        """
        return await self._rotation.rotate(job, id)

    async def outstanding(self, job_id: str) -> Outstanding | None:
        """What a job has outstanding."""
        row = await self._node.store.table(CREDENTIALS).get(job_id)
        return None if row is None else _read(row.value)

    async def revoke(self, job_id: str) -> None:
        """Revoke what a job has outstanding; tried again for a while here, and by the keeper for ever."""
        if job_id in self._revoking:
            return
        self._revoking.add(job_id)
        pause = _FIRST_PAUSE
        table = self._node.store.table(CREDENTIALS)
        since: float | None = None
        try:
            # A value that is just being minted has to be written down first.
            await self._rotation.quiet(job_id)
            for _ in range(_TRIES):
                row = await table.get(job_id)
                outstanding = None if row is None else _read(row.value)
                if row is None or outstanding is None or since not in {None, outstanding.since}:
                    # Somebody else did, or it is a further run's by now.
                    return
                since = outstanding.since
                try:
                    await self._provider.revoke(job_id, outstanding.ids)
                    await table.delete(job_id, revision=row.revision)
                except ConflictError:
                    continue
                except StoreError:
                    raise
                except Exception:  # noqa: BLE001 - a provider's failure is nobody else's
                    _log.exception("credentials of job %s could not be revoked; trying again", job_id)
                    await asyncio.sleep(pause)
                    pause = min(pause * 2, _LONGEST_PAUSE)
                else:
                    return
            _log.error("credentials of job %s are still outstanding", job_id)
        except StoreError:
            _log.exception("credentials of job %s are still outstanding", job_id)
        finally:
            self._revoking.discard(job_id)

    async def settle(self) -> None:
        """
        See to what is left over: of jobs that have ended, or never came to be, and values that were replaced.

        For what a crash left behind, and for providers that were away longer than anybody tried.
        """
        long_ago = time.time() - 2 * self._node.limits.node_lease
        async for row in self._node.store.table(CREDENTIALS).scan():
            tail = await self._node.ledger.tail(row.key)
            outstanding = _read(row.value)
            # Without a job, somebody may be about to submit it.
            if (tail is None and outstanding.since < long_ago) or (tail is not None and tail[1].ended):
                self._node.spawn(self.revoke(row.key))
            elif outstanding.replaced and row.key in self._node.jobs:
                self._rotation.retire_left(row.key, outstanding)
