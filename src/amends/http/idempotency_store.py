"""
Idempotency keys in a store: what is kept about a key, and what a repeated key means.

A key has two rows. The *lease* exists while a process works on the request, and expires if that process dies. The
*record* holds the state: running, done (with the response), or in doubt. A process that acquires the lease and finds a
running record knows that the earlier process died during the request. The request may run again only if its effect was
to be committed together with the record; otherwise the key is in doubt, until a `verify` hook finds out whether the
effect happened (design, section 8).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from hashlib import sha256
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from amends.errors.base import FaultError
from amends.http.effect_unknown import EffectUnknownError
from amends.http.responses import RawResponse
from amends.stores import ConflictError, Store, Table
from amends.stores.contract import TableWriter, Transaction

__all__ = ["Claim", "Keys", "Record", "Verify", "storage_key"]

RECORDS, LEASES = "amends.http.idempotency_store", "amends.http.leases"


class Record(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The state of a request with a key, and its response."""

    state: Literal["running", "done", "doubt"]
    fingerprint: str
    """Hashes of method and address, and of the body, to detect a key that is used for a different request."""
    transactional: bool = False
    status: int = 0
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None
    """None if the body was too large to be stored, or is not known."""


Verify = Callable[[Record], Awaitable[RawResponse | bool | None]]
"""Finds out whether the request of a record in doubt had its effect; see `verified_response`."""


class Claim(msgspec.Struct, kw_only=True):
    """A request's exclusive right to run under a key."""

    name: str
    record: Record
    revision: int
    lease: int
    committed: bool = False
    """Whether the effect and the record were committed in one transaction."""


class Keys:
    """The idempotency keys of one application in one store."""

    def __init__(self, store: Store, *, expires_in: float, lease: float) -> None:
        self.store = store
        self.expires_in = expires_in
        self.lease = lease
        self._records: Table = store.table(RECORDS)
        self._leases: Table = store.table(LEASES)

    async def claim(
        self, name: str, fingerprint: str, *, transactional: bool, verify: Verify | None = None
    ) -> Claim | Record:
        """
        Return a claim if the request may run, or the record if it is done.

        If the key is in doubt and there is a `verify`, it decides. It is called while the lease is held, so by one process
        at a time.

        Raises:
            FaultError: the key was used for a different request, its request is running, or it is in doubt.

        """
        try:
            lease = await self._leases.create(name, b"", expires_in=self.lease)
        except ConflictError:
            found = await self._records.get(name)
            if found is None:
                raise _running_error() from None
            record = _decode(found.value, fingerprint)
            if record.state == "running":
                raise _running_error() from None
            return _require_done(record)
        try:
            return await self._claim_with_lease(name, fingerprint, lease, transactional, verify)
        except BaseException:
            await self._delete_lease(name, lease)
            raise

    async def _claim_with_lease(
        self, name: str, fingerprint: str, lease: int, transactional: bool, verify: Verify | None
    ) -> Claim | Record:
        """Continue `claim` while holding the lease: no other process works on the request."""
        fresh = Record(state="running", fingerprint=fingerprint, transactional=transactional)
        found = await self._records.get(name)
        if found is None:
            revision = await self._records.create(name, _encode(fresh), expires_in=self.expires_in)
            return Claim(name=name, record=fresh, revision=revision, lease=lease)
        record = _decode(found.value, fingerprint)
        if record.state == "running" and not record.transactional:
            # The earlier process died during the request, perhaps after its effect.
            record = replace(record, state="doubt")
            revision = await self._put(name, record, found.revision)
        else:
            revision = found.revision
        if record.state == "doubt" and verify is not None:
            record = await self._verified(name, record, revision, verify)
        if record.state == "running" or (record.state == "doubt" and verify is not None):
            # The new revision fences off the earlier process if it is still alive: its transaction fails.
            revision = await self._put(name, fresh, revision)
            return Claim(name=name, record=fresh, revision=revision, lease=lease)
        done = _require_done(record)
        await self._delete_lease(name, lease)
        return done

    async def _verified(self, name: str, record: Record, revision: int, verify: Verify) -> Record:
        """Return the record as done, or in doubt if the request did not have its effect and may run."""
        outcome = await verify(record)
        if outcome is None:
            raise EffectUnknownError
        if outcome is False:
            return record
        if isinstance(outcome, RawResponse):
            done = replace(
                record,
                state="done",
                status=outcome.status,
                headers=tuple(outcome.headers),
                body=outcome.body,
            )
        else:
            done = replace(record, state="done", status=0, body=None)
        await self._put(name, done, revision)
        return done

    async def _put(self, name: str, record: Record, revision: int) -> int:
        return await self._records.put(name, _encode(record), revision=revision, expires_in=self.expires_in)

    async def renew(self, claim: Claim) -> None:
        """Extend the lease by its full length."""
        claim.lease = await self._leases.put(claim.name, b"", revision=claim.lease, expires_in=self.lease)

    async def complete(
        self, claim: Claim, status: int, headers: tuple[tuple[str, str], ...], body: bytes | None
    ) -> None:
        """Store the response, then delete the lease."""
        await self._finish(
            claim, replace(claim.record, state="done", status=status, headers=headers, body=body)
        )

    async def mark_in_doubt(self, claim: Claim, status: int = 0) -> None:
        """Record that the request failed with this status and may have had its effect, then delete the lease."""
        await self._finish(claim, replace(claim.record, state="doubt", status=status))

    async def _finish(self, claim: Claim, record: Record) -> None:
        raw = _encode(record)
        try:
            await self._records.put(claim.name, raw, revision=claim.revision, expires_in=self.expires_in)
        except ConflictError:
            # Our lease expired and another process put the key in doubt. Our record resolves the doubt.
            found = await self._records.get(claim.name)
            if found is not None and _decode(found.value, None).state == "doubt":
                await self._records.put(claim.name, raw, revision=found.revision, expires_in=self.expires_in)
        await self._delete_lease(claim.name, claim.lease)

    async def release(self, claim: Claim) -> None:
        """Delete the record and the lease: the request had no effect, and the key can be used again."""
        try:
            await self._records.delete(claim.name, revision=claim.revision)
        except ConflictError:
            return
        await self._delete_lease(claim.name, claim.lease)

    async def release_lease(self, claim: Claim) -> None:
        """Delete the lease and keep the record, which was committed with the effect."""
        await self._delete_lease(claim.name, claim.lease)

    async def _delete_lease(self, name: str, revision: int) -> None:
        """Delete the lease, unless another process holds it now."""
        with suppress(ConflictError):
            await self._leases.delete(name, revision=revision)

    def write(
        self, tx: Transaction, claim: Claim, status: int, headers: tuple[tuple[str, str], ...], body: bytes
    ) -> None:
        """
        Store the response in the transaction of the effect.

        Raises:
            FaultError: another process took over the key; the transaction must not be committed.

        """
        table: TableWriter = tx.table(RECORDS)
        record = replace(claim.record, state="done", status=status, headers=headers, body=body)
        try:
            table.put(claim.name, _encode(record), revision=claim.revision, expires_in=self.expires_in)
        except ConflictError as conflict:
            raise _running_error() from conflict


def storage_key(caller: str, key: str) -> str:
    """Return the name of a caller's key in the store: a hash, so that neither part can be read back."""
    return sha256(f"{caller}\0{key}".encode("utf-8", "surrogateescape")).hexdigest()


def _encode(record: Record) -> bytes:
    return msgspec.json.encode(record)


def _decode(value: bytes, fingerprint: str | None) -> Record:
    """Return the stored record; raise a FaultError if its fingerprint is a different one."""
    record = msgspec.json.decode(value, type=Record)
    if fingerprint is not None and not _is_same(record.fingerprint, fingerprint):
        raise FaultError(
            "This key was used for another request",
            code="VALIDATION_ERROR",
            vocabulary="http",
            status=422,
            field="Idempotency-Key",
            suggestions=("Send this request with a new key", "Or send the first request again, unchanged"),
        )
    return record


def _is_same(first: str, second: str) -> bool:
    """Return whether two fingerprints are of the same request. The body of a streamed request is not compared."""
    head, _, body = first.partition(":")
    other_head, _, other_body = second.partition(":")
    return head == other_head and (not body or not other_body or body == other_body)


def _require_done(record: Record) -> Record:
    """Return the record if the request is done; raise EffectUnknownError if the key is in doubt."""
    if record.state == "doubt":
        raise EffectUnknownError
    return record


def _running_error() -> FaultError:
    more: dict[str, Any] = {"recovery": "transient", "status": 409, "vocabulary": "http", "retry_after": 1.0}
    return FaultError("A request with this key is being worked on", code="CONFLICT", **more)
