"""
Credentials provisioned for a job (section 9.8): minted before it is accepted, revoked when it has ended, whatever
happens in between.

What is outstanding stands in the store before anything is minted, so that a node that dies at any moment leaves a row
behind; whoever finds it revokes what it names, and tries until that has worked. Without a provider the feature is not
offered.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from amends.arcp.runtime.entries import CREDENTIALS, Order, encode
from amends.arcp.wire import text_of
from amends.errors.arcp import InternalError
from amends.stores import StoreError

if TYPE_CHECKING:
    from amends.arcp.runtime.node import Node

__all__ = ["Credential", "CredentialProvider", "Grant", "Issued"]

_log = logging.getLogger("amends.arcp")
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 60.0
_TRIES = 8


class Grant(msgspec.Struct, frozen=True, kw_only=True):
    """What a provider needs to know about a job to bound its credentials."""

    job_id: str
    principal: str
    agent: str
    lease: dict[str, list[str]]
    expires_at: str | None = None
    parent_job_id: str | None = None


class Credential(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A credential on the wire (9.8.1). Its text form does not show its value."""

    id: str
    value: str
    endpoint: str
    scheme: str = "bearer"
    profile: str | None = None
    constraints: dict[str, Any] | None = None

    def __repr__(self) -> str:
        return f"Credential(id={self.id!r}, endpoint={self.endpoint!r})"


class CredentialProvider(Protocol):
    """Whoever mints: a gateway with virtual keys, say."""

    async def issue(self, grant: Grant) -> Sequence[Credential]:
        """Mint credentials for one job, bounded by its lease. Never the same value for two jobs."""

    async def revoke(self, job_id: str, ids: Sequence[str]) -> None:
        """
        Make the job's credentials worthless. Repeating it is fine.

        `ids` is empty where the node died while minting: then whatever was minted for this job is meant.
        """


class _Outstanding(msgspec.Struct, frozen=True, omit_defaults=True):
    since: float
    ids: tuple[str, ...] = ()
    credentials: tuple[Credential, ...] = ()


class Issued:
    """A provider and what it has outstanding."""

    def __init__(self, provider: CredentialProvider) -> None:
        self._provider = provider
        self._node: Node
        self._revoking: set[str] = set()

    def use(self, node: Node) -> None:
        """The node it works for."""
        self._node = node

    async def issue(self, order: Order) -> list[dict[str, Any]]:
        """
        Mint what a job needs, with a trace of it left in the store beforehand.

        Raises:
            InternalError: the provider failed; nothing is left behind.

        """
        table = self._node.store.table(CREDENTIALS)
        await table.put(order.job_id, encode(_Outstanding(time.time())))
        grant = Grant(
            job_id=order.job_id,
            principal=order.principal,
            agent=order.agent,
            lease={name: list(patterns) for name, patterns in order.grants.items()},
            expires_at=None if order.expires_at is None else text_of(order.expires_at),
            parent_job_id=order.parent,
        )
        try:
            minted = tuple(await self._provider.issue(grant))
        except Exception as error:
            _log.exception("credentials for job %s could not be issued", order.job_id)
            self._node.spawn(self.revoke(order.job_id))
            raise InternalError("Credentials could not be issued") from error
        outstanding = _Outstanding(time.time(), tuple(credential.id for credential in minted), minted)
        await table.put(order.job_id, encode(outstanding))
        return [msgspec.to_builtins(credential) for credential in minted]

    async def of(self, job_id: str) -> list[dict[str, Any]] | None:
        """A job's credentials, for the node that runs it and for its submitter."""
        row = await self._node.store.table(CREDENTIALS).get(job_id)
        if row is None:
            return None
        found = msgspec.json.decode(row.value, type=_Outstanding)
        return [msgspec.to_builtins(credential) for credential in found.credentials]

    async def revoke(self, job_id: str) -> None:
        """Revoke what a job has outstanding; tried again for a while here, and by the keeper for ever."""
        if job_id in self._revoking:
            return
        self._revoking.add(job_id)
        pause = _FIRST_PAUSE
        table = self._node.store.table(CREDENTIALS)
        try:
            for _ in range(_TRIES):
                row = await table.get(job_id)
                if row is None:
                    return
                try:
                    await self._provider.revoke(job_id, msgspec.json.decode(row.value, type=_Outstanding).ids)
                except Exception:  # noqa: BLE001 - a provider's failure is nobody else's
                    _log.exception("credentials of job %s could not be revoked; trying again", job_id)
                    await asyncio.sleep(pause)
                    pause = min(pause * 2, _LONGEST_PAUSE)
                else:
                    await table.delete(job_id)
                    return
            _log.error("credentials of job %s are still outstanding", job_id)
        except StoreError:
            _log.exception("credentials of job %s are still outstanding", job_id)
        finally:
            self._revoking.discard(job_id)

    async def settle(self) -> None:
        """Revoke what belongs to jobs that have ended, or never came to be; for what a crash left behind."""
        long_ago = time.time() - 2 * self._node.limits.node_lease
        async for row in self._node.store.table(CREDENTIALS).scan():
            tail = await self._node.ledger.tail(row.key)
            # Without a job, somebody may be about to submit it.
            begun = msgspec.json.decode(row.value, type=_Outstanding).since
            if (tail is None and begun < long_ago) or (tail is not None and tail[1].ended):
                self._node.spawn(self.revoke(row.key))
