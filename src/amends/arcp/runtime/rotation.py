"""
Giving a credential another value while its job runs (section 9.8.2).

The new value is written down with the one it replaces, told as a `status` event, and then the old one is retired: by
us until that has worked, by whoever takes the job over, and at the latest with the job's end, when the credential is
revoked with every value it ever had.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from amends.arcp.runtime.credentials import (
    ROTATED,
    Credential,
    CredentialProvider,
    Outstanding,
    grant_of,
    on_wire,
)
from amends.arcp.runtime.entries import CREDENTIALS, encode
from amends.arcp.runtime.job import RUNNING
from amends.errors.arcp import ARCPError, InternalError
from amends.stores import ConflictError, StoreError

if TYPE_CHECKING:
    from amends.arcp.runtime.job import Job
    from amends.arcp.runtime.node import Node

__all__ = ["Rotation"]

_log = logging.getLogger("amends.arcp")
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 60.0
_TRIES = 8
_PATIENCE = 60.0
"""Seconds a provider may take to mint."""
_read = msgspec.json.Decoder(Outstanding).decode


class Rotation:
    """The rotations of one node."""

    def __init__(self, provider: CredentialProvider) -> None:
        self._provider: Any = provider
        self._node: Node
        self._under_way: dict[tuple[str, str], asyncio.Task[dict[str, Any] | InternalError]] = {}
        self._retiring: set[tuple[str, str]] = set()

    def use(self, node: Node) -> None:
        """The node it works for."""
        self._node = node

    def due(self, minted: Iterable[Credential]) -> dict[str, float]:
        """
        When each is to be rotated, by id.

        Raises:
            TypeError: the provider asks for what it cannot do.

        """
        due = {
            credential.id: time.time() + credential.rotate_after
            for credential in minted
            if credential.rotate_after is not None
        }
        if due and not hasattr(self._provider, "rotate"):
            raise TypeError("rotate_after needs a provider with rotate and retire")
        return due

    def attend(self, job: Job, outstanding: Outstanding) -> None:
        """See to a job's credentials from now on."""
        for id, due in outstanding.due.items():
            self._later(job, id, due)
        self.retire_left(job.order.job_id, outstanding)

    def retire_left(self, job_id: str, outstanding: Outstanding) -> None:
        """Retire what was replaced and is not worthless yet."""
        for credential in outstanding.replaced:
            self._node.spawn(self._retire(job_id, credential))

    async def rotate(self, job: Job, id: str) -> dict[str, Any]:
        """
        Rotate one, now. Whoever asks for one that is being rotated gets what comes of that.

        Raises:
            InternalError: that could not be; the value before is what there is.

        """
        key = (job.order.job_id, id)
        task = self._under_way.get(key)
        if task is None:
            task = self._under_way[key] = self._node.spawn(self._rotated(job, id))
            task.add_done_callback(lambda _: self._under_way.pop(key, None))
        # Whoever asked may be stopped; what was minted is written down all the same.
        found = await asyncio.shield(task)
        if isinstance(found, InternalError):
            raise found
        return found

    async def quiet(self, job_id: str) -> None:
        """Wait until no credential of a job is being rotated."""
        tasks = [task for (owner, _), task in self._under_way.items() if owner == job_id]
        if tasks:
            await asyncio.wait(tasks)

    # -- one rotation

    async def _rotated(self, job: Job, id: str) -> dict[str, Any] | InternalError:
        job_id = job.order.job_id
        old: Credential | None = None
        fresh: Credential | None = None
        outstanding: Outstanding | None = None
        try:
            row = await self._node.store.table(CREDENTIALS).get(job_id)
            old = None if row is None else _named(_read(row.value), id)
            if old is None:
                return InternalError("The job has no such credential", retryable=False)
            fresh = await self._minted(job, old)
            outstanding = await self._replaced(job_id, old, fresh)
        except Exception:  # noqa: BLE001 - a provider's failure is nobody else's, and says nothing to anybody
            _log.exception("credential %s of job %s could not be rotated", id, job_id)
        if old is None or fresh is None:
            return InternalError("The credential could not be rotated")
        if outstanding is None:
            # Minted, but in nobody's hands.
            self._node.spawn(self._retire(job_id, fresh))
            return InternalError("The credential could not be rotated")
        job.credentials = outstanding.wire()
        try:
            job.emit("status", {"phase": ROTATED, "id": id, "value": fresh.value})
        except ARCPError:
            _log.warning("job %s has said too much to be told of its new credential", job_id)
        if id in outstanding.due:
            self._later(job, id, outstanding.due[id])
        self._node.spawn(self._retire(job_id, old))
        return on_wire(fresh)

    async def _minted(self, job: Job, old: Credential) -> Credential:
        async with asyncio.timeout(_PATIENCE):
            fresh: Credential = await self._provider.rotate(grant_of(job.order), old)
        if fresh.id != old.id:
            self._node.spawn(self._retire(job.order.job_id, fresh))
            raise TypeError("a rotated credential keeps its id")
        return fresh

    async def _replaced(self, job_id: str, old: Credential, fresh: Credential) -> Outstanding | None:
        """Write a new value down in place of the old; None when the job has ended, or somebody else was faster."""
        table = self._node.store.table(CREDENTIALS)
        while (row := await table.get(job_id)) is not None:
            found = _read(row.value)
            if _named(found, old.id) != old:
                break
            due = {id: at for id, at in found.due.items() if id != old.id} | self.due([fresh])
            changed = replace(
                found,
                credentials=tuple(fresh if one.id == old.id else one for one in found.credentials),
                replaced=(*found.replaced, old),
                due=due,
            )
            try:
                await table.put(job_id, encode(changed), revision=row.revision)
            except ConflictError:
                continue
            return changed
        return None

    # -- when it is due

    def _later(self, job: Job, id: str, due: float) -> None:
        job.after(max(0.0, due - time.time()), lambda: self._node.spawn(self._renewed(job, id)))

    async def _renewed(self, job: Job, id: str) -> None:
        """Rotate one that is due, however often it takes while its job runs."""
        pause = _FIRST_PAUSE
        while job.phase is RUNNING:
            try:
                await self.rotate(job, id)
            except InternalError as error:
                if not error.retryable:
                    return
                await asyncio.sleep(pause)
                pause = min(pause * 2, _LONGEST_PAUSE)
            else:
                return

    # -- the value before

    async def _retire(self, job_id: str, credential: Credential) -> None:
        """Make a value worthless, and strike it off; tried again for a while here, and by the keeper."""
        key = (job_id, credential.value)
        if key in self._retiring:
            return
        self._retiring.add(key)
        pause = _FIRST_PAUSE
        try:
            for _ in range(_TRIES):
                try:
                    await self._provider.retire(job_id, credential)
                except Exception:  # noqa: BLE001 - a provider's failure is nobody else's
                    _log.exception("an old value of credential %s could not be retired", credential.id)
                    await asyncio.sleep(pause)
                    pause = min(pause * 2, _LONGEST_PAUSE)
                else:
                    await self._struck_off(job_id, credential)
                    return
            _log.error("an old value of credential %s of job %s still works", credential.id, job_id)
        except StoreError:
            _log.exception("that credential %s was retired could not be written down", credential.id)
        finally:
            self._retiring.discard(key)

    async def _struck_off(self, job_id: str, credential: Credential) -> None:
        table = self._node.store.table(CREDENTIALS)
        while (row := await table.get(job_id)) is not None:
            found = _read(row.value)
            if credential not in found.replaced:
                return
            left = tuple(one for one in found.replaced if one != credential)
            try:
                await table.put(job_id, encode(replace(found, replaced=left)), revision=row.revision)
            except ConflictError:
                continue
            return


def _named(outstanding: Outstanding, id: str) -> Credential | None:
    return next((credential for credential in outstanding.credentials if credential.id == id), None)
