"""
What is kept about an idempotency key, and what it means when it is met again.

Two rows per key. The *lease* says that somebody is at work; it ends by itself when its holder dies. The *record* says
how far it got: running, done (with the response), or in doubt. Whoever holds the lease and finds a record that is
still running knows that its holder died in the middle: only work whose effect was to be committed together with the
record may run again, everything else is in doubt and is never rerun blindly (design, section 8).
"""

from __future__ import annotations

from contextlib import suppress
from hashlib import sha256
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from amends.errors.base import FaultError
from amends.http.effect_unknown import EffectUnknownError
from amends.stores import ConflictError, Store, Table
from amends.stores.contract import TableWriter, Transaction

__all__ = ["Claim", "Keys", "Record", "key_of"]

RECORDS, LEASES = "amends.http.idempotency_store", "amends.http.leases"


class Record(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How far a request with a key got, and what was answered."""

    state: Literal["running", "done", "doubt"]
    fingerprint: str
    """Of method, address and body: the same key with another request is a mistake."""
    transactional: bool = False
    status: int = 0
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None
    """None where it was too large to be kept."""


class Claim(msgspec.Struct, kw_only=True):
    """One request's hold on a key."""

    name: str
    record: Record
    revision: int
    lease: int
    committed: bool = False
    """The effect and the record were committed together."""


class Keys:
    """The keys of one application in one store."""

    def __init__(self, store: Store, *, expires_in: float, lease: float) -> None:
        self.store = store
        self.expires_in = expires_in
        self.lease = lease
        self._records: Table = store.table(RECORDS)
        self._leases: Table = store.table(LEASES)

    async def claim(self, name: str, fingerprint: str, *, transactional: bool) -> Claim | Record:
        """
        A hold on the key, or the record of a request that is done.

        Raises:
            FaultError: the key was used for another request, is being worked on, or is in doubt.
        """
        try:
            lease = await self._leases.create(name, b"", expires_in=self.lease)
        except ConflictError:
            found = await self._records.get(name)
            if found is None:
                raise _busy() from None
            record = _read(found.value, fingerprint)
            if record.state == "running":
                raise _busy() from None
            return _settled(record)
        try:
            return await self._under(name, fingerprint, lease, transactional)
        except BaseException:
            await self._drop(name, lease)
            raise

    async def _under(self, name: str, fingerprint: str, lease: int, transactional: bool) -> Claim | Record:
        """The same, holding the lease: nobody else is at work."""
        fresh = Record(state="running", fingerprint=fingerprint, transactional=transactional)
        found = await self._records.get(name)
        if found is None:
            revision = await self._records.create(name, _written(fresh), expires_in=self.expires_in)
            return Claim(name=name, record=fresh, revision=revision, lease=lease)
        record = _read(found.value, fingerprint)
        if record.state == "running" and not record.transactional:
            # Its holder died between the first effect and the last word.
            record = replace(record, state="doubt")
            await self._records.put(
                name, _written(record), revision=found.revision, expires_in=self.expires_in
            )
        if record.state != "running":
            settled = _settled(record)
            await self._drop(name, lease)
            return settled
        # The new revision fences out the old holder, should it only have slept: its transaction fails.
        revision = await self._records.put(
            name, _written(fresh), revision=found.revision, expires_in=self.expires_in
        )
        return Claim(name=name, record=fresh, revision=revision, lease=lease)

    async def renew(self, claim: Claim) -> None:
        """Hold the key for one more full lease."""
        claim.lease = await self._leases.put(claim.name, b"", revision=claim.lease, expires_in=self.lease)

    async def done(
        self, claim: Claim, status: int, headers: tuple[tuple[str, str], ...], body: bytes | None
    ) -> None:
        """Keep the response, then let go."""
        await self._end(claim, replace(claim.record, state="done", status=status, headers=headers, body=body))

    async def doubt(self, claim: Claim) -> None:
        """It failed, and may have had its effect."""
        await self._end(claim, replace(claim.record, state="doubt"))

    async def _end(self, claim: Claim, record: Record) -> None:
        raw = _written(record)
        try:
            await self._records.put(claim.name, raw, revision=claim.revision, expires_in=self.expires_in)
        except ConflictError:
            # We slept past our lease and were given up as dead; now we know better.
            found = await self._records.get(claim.name)
            if found is not None and _read(found.value, None).state == "doubt":
                await self._records.put(claim.name, raw, revision=found.revision, expires_in=self.expires_in)
        await self._drop(claim.name, claim.lease)

    async def release(self, claim: Claim) -> None:
        """Nothing happened: the key is as if it had never been used."""
        try:
            await self._records.delete(claim.name, revision=claim.revision)
        except ConflictError:
            return
        await self._drop(claim.name, claim.lease)

    async def let_go(self, claim: Claim) -> None:
        """The record was committed with the effect; only the lease is left."""
        await self._drop(claim.name, claim.lease)

    async def _drop(self, name: str, revision: int) -> None:
        """Let go of the lease, if it is still ours."""
        with suppress(ConflictError):
            await self._leases.delete(name, revision=revision)

    def write(
        self, tx: Transaction, claim: Claim, status: int, headers: tuple[tuple[str, str], ...], body: bytes
    ) -> None:
        """Keep the response inside a transaction, together with the effect. Fails if somebody else took over."""
        table: TableWriter = tx.table(RECORDS)
        record = replace(claim.record, state="done", status=status, headers=headers, body=body)
        try:
            table.put(claim.name, _written(record), revision=claim.revision, expires_in=self.expires_in)
        except ConflictError as taken:
            raise _busy() from taken


def key_of(caller: str, key: str) -> str:
    """The name of a key in the store: one caller's keys are not another's, and none can be read back."""
    return sha256(f"{caller}\0{key}".encode("utf-8", "surrogateescape")).hexdigest()


def _written(record: Record) -> bytes:
    return msgspec.json.encode(record)


def _read(value: bytes, fingerprint: str | None) -> Record:
    record = msgspec.json.decode(value, type=Record)
    if fingerprint is not None and record.fingerprint != fingerprint:
        raise FaultError(
            "This key was used for another request",
            code="VALIDATION_ERROR",
            vocabulary="http",
            status=422,
            field="Idempotency-Key",
            suggestions=("Send this request with a new key", "Or send the first request again, unchanged"),
        )
    return record


def _settled(record: Record) -> Record:
    """A record that is no longer running; one in doubt says so."""
    if record.state == "doubt":
        raise EffectUnknownError
    return record


def _busy() -> FaultError:
    more: dict[str, Any] = {"recovery": "transient", "status": 409, "vocabulary": "http", "retry_after": 1.0}
    return FaultError("A request with this key is being worked on", code="CONFLICT", **more)
