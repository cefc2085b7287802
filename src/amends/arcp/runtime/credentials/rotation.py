"""
Rotation: replacing the value of a credential while its job runs (section 9.8.2).

The new value is stored together with the one it replaces, and announced in a `status` event; then the old value is
retired. This node repeats that until it succeeds, and a node that takes the job over continues it. At the end of the
job the credential is revoked with every value it ever had.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

import msgspec
from msgspec.structs import replace

from amends.arcp.runtime.credentials.provider import (
    ROTATED,
    Credential,
    CredentialProvider,
    Outstanding,
    grant_of,
    to_wire,
)
from amends.arcp.runtime.entries import CREDENTIALS, encode
from amends.arcp.runtime.jobs.job import Job
from amends.arcp.runtime.tasks import Tasks
from amends.errors.arcp import ARCPError, InternalError
from amends.logs import logger
from amends.stores import ConflictError, Store, StoreError

__all__ = ["Rotation"]

_log = logger("amends.arcp")
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 60.0
_TRIES = 8
_MINT_TIMEOUT = 60.0
"""Seconds that a provider may take to issue a new value."""
_read = msgspec.json.Decoder(Outstanding).decode


class Rotation:
    """Rotates the credentials of the jobs that run on one node."""

    def __init__(self, provider: CredentialProvider | None, store: Store, tasks: Tasks) -> None:
        self._provider: Any = provider
        self._store = store
        self._tasks = tasks
        self._in_progress: dict[tuple[str, str], asyncio.Task[dict[str, object] | InternalError]] = {}
        self._retiring: set[tuple[str, str]] = set()

    def due(self, minted: Iterable[Credential]) -> dict[str, float]:
        """
        Return when each credential is to be rotated, by id.

        Raises:
            TypeError: a credential has `rotate_after`, but the provider cannot rotate.

        """
        due = {
            credential.id: time.time() + credential.rotate_after
            for credential in minted
            if credential.rotate_after is not None
        }
        if due and not hasattr(self._provider, "rotate"):
            raise TypeError("a credential with rotate_after needs a provider with rotate() and retire()")
        return due

    def schedule(self, job: Job, outstanding: Outstanding) -> None:
        """Schedule the rotations of a job's credentials, and retire values that were already replaced."""
        for id, due in outstanding.due.items():
            self._schedule_one(job, id, due)
        self.retire_replaced(job.spec.job_id, outstanding)

    def retire_replaced(self, job_id: str, outstanding: Outstanding) -> None:
        """Retire values that were replaced and are still valid."""
        for credential in outstanding.replaced:
            self._tasks.spawn(self._retire(job_id, credential))

    async def rotate(self, job: Job, id: str) -> dict[str, object]:
        """
        Rotate a credential now. A call during a rotation of the same credential waits for that one.

        Raises:
            InternalError: the rotation failed; the old value stays in use.

        """
        key = (job.spec.job_id, id)
        task = self._in_progress.get(key)
        if task is None:
            task = self._in_progress[key] = self._tasks.spawn(self._rotate(job, id))
            task.add_done_callback(lambda _: self._in_progress.pop(key, None))
        # If the caller is cancelled, the new value must still be stored.
        rotated = await asyncio.shield(task)
        if isinstance(rotated, InternalError):
            raise rotated
        return rotated

    async def wait_until_idle(self, job_id: str) -> None:
        """Wait until no credential of a job is being rotated."""
        tasks = [task for (owner, _), task in self._in_progress.items() if owner == job_id]
        if tasks:
            await asyncio.wait(tasks)

    # -- one rotation

    async def _rotate(self, job: Job, id: str) -> dict[str, object] | InternalError:
        job_id = job.spec.job_id
        old: Credential | None = None
        fresh: Credential | None = None
        outstanding: Outstanding | None = None
        try:
            row = await self._store.table(CREDENTIALS).get(job_id)
            old = None if row is None else _by_id(_read(row.value), id)
            if old is None:
                return InternalError("The job has no such credential", retryable=False)
            fresh = await self._mint(job, old)
            outstanding = await self._store_new_value(job_id, old, fresh)
        except Exception:  # noqa: BLE001 - providers may raise anything; the caller gets no details of it
            _log.exception("credential %s of job %s could not be rotated", id, job_id)
        if old is None or fresh is None:
            return InternalError("The credential could not be rotated")
        if outstanding is None:
            # The new value was issued but not stored, so it must not stay valid.
            self._tasks.spawn(self._retire(job_id, fresh))
            return InternalError("The credential could not be rotated")
        job.give_credentials(outstanding.wire())
        try:
            job.emit("status", {"phase": ROTATED, "id": id, "value": fresh.value})
        except ARCPError:
            _log.warning(
                "job %s has reached its limit of events: the new value of credential %s is not announced",
                job_id,
                id,
            )
        if id in outstanding.due:
            self._schedule_one(job, id, outstanding.due[id])
        self._tasks.spawn(self._retire(job_id, old))
        return to_wire(fresh)

    async def _mint(self, job: Job, old: Credential) -> Credential:
        async with asyncio.timeout(_MINT_TIMEOUT):
            fresh: Credential = await self._provider.rotate(grant_of(job.spec), old)
        if fresh.id != old.id:
            self._tasks.spawn(self._retire(job.spec.job_id, fresh))
            raise TypeError("the provider returned a rotated credential with another id")
        return fresh

    async def _store_new_value(self, job_id: str, old: Credential, fresh: Credential) -> Outstanding | None:
        """Store a new value in place of the old one. Returns None if the job has ended or the value was replaced."""

        def change(outstanding: Outstanding) -> Outstanding | None:
            if _by_id(outstanding, old.id) != old:
                return None
            return replace(
                outstanding,
                credentials=tuple(fresh if one.id == old.id else one for one in outstanding.credentials),
                replaced=(*outstanding.replaced, old),
                due={id: at for id, at in outstanding.due.items() if id != old.id} | self.due([fresh]),
            )

        return await self._change_row(job_id, change)

    async def _change_row(
        self, job_id: str, change: Callable[[Outstanding], Outstanding | None]
    ) -> Outstanding | None:
        """Replace the row of a job. Returns the new row, or None if there is no row or `change` returned None."""
        table = self._store.table(CREDENTIALS)
        while (row := await table.get(job_id)) is not None:
            if (changed := change(_read(row.value))) is None:
                return None
            with suppress(ConflictError):
                await table.put(job_id, encode(changed), revision=row.revision)
                return changed
        return None

    # -- scheduled rotation

    def _schedule_one(self, job: Job, id: str, due: float) -> None:
        job.after(max(0.0, due - time.time()), lambda: self._tasks.spawn(self._rotate_until_done(job, id)))

    async def _rotate_until_done(self, job: Job, id: str) -> None:
        """Rotate a credential that is due, repeating until it succeeds or the job ends."""
        pause = _FIRST_PAUSE
        while job.is_running:
            try:
                await self.rotate(job, id)
            except InternalError as error:
                if not error.retryable:
                    return
                await asyncio.sleep(pause)
                pause = min(pause * 2, _LONGEST_PAUSE)
            else:
                return

    # -- old values

    async def _retire(self, job_id: str, credential: Credential) -> None:
        """Retire a value and remove it from the row, with several tries; `clean_up` repeats it if they all fail."""
        key = (job_id, credential.value)
        if key in self._retiring:
            return
        self._retiring.add(key)
        pause = _FIRST_PAUSE
        try:
            for _ in range(_TRIES):
                try:
                    await self._provider.retire(job_id, credential)
                except Exception:  # noqa: BLE001 - providers may raise anything
                    _log.exception(
                        "an old value of credential %s of job %s could not be retired; trying again",
                        credential.id,
                        job_id,
                    )
                    await asyncio.sleep(pause)
                    pause = min(pause * 2, _LONGEST_PAUSE)
                else:
                    await self._change_row(job_id, lambda outstanding: _without(outstanding, credential))
                    return
            _log.error(
                "an old value of credential %s of job %s could not be retired and is still valid",
                credential.id,
                job_id,
            )
        except StoreError:
            _log.exception(
                "an old value of credential %s of job %s was retired, but the store failed to record that",
                credential.id,
                job_id,
            )
        finally:
            self._retiring.discard(key)


def _without(outstanding: Outstanding, credential: Credential) -> Outstanding | None:
    """The row without a value that was retired; None if it does not have it."""
    left = tuple(one for one in outstanding.replaced if one != credential)
    return None if left == outstanding.replaced else replace(outstanding, replaced=left)


def _by_id(outstanding: Outstanding, id: str) -> Credential | None:
    return next((credential for credential in outstanding.credentials if credential.id == id), None)
