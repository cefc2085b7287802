"""
Idempotency keys: a name that the caller chose for a piece of work, so that a repeat is recognised.

A key is stored with a fingerprint of the request, to detect a key that is used for another request. There are two kinds:

- `Owners`: the key belongs to a job or task, whose log says what became of it.
- `Keys`: the key's own record holds the state of the work and its outcome. While a process works under the key it holds a
  *lease*, a second row, which expires if that process dies. A process that acquires the lease and finds a record in the
  state `running` knows that the earlier process died during the work. The work may run again only if its effect was to be
  committed together with the record; otherwise the key is in doubt until `verify` finds out whether the effect happened.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from hashlib import sha256
from typing import Any, Generic, Literal, TypeVar

import msgspec
from msgspec.structs import replace

from amends.durable.batch import Batch
from amends.stores.contract import Store, Transaction
from amends.stores.errors import ConflictError

__all__ = [
    "Claim",
    "KeyInDoubt",
    "KeyRecord",
    "KeyReused",
    "KeyRunning",
    "Keys",
    "Owner",
    "Owners",
    "key_name",
    "same_request",
]


def key_name(scope: str, key: str) -> str:
    """
    Return the name under which a caller's key is stored: a hash, so that neither part can be read back.

    >>> key_name("alice", "k") == key_name("bob", "k")
    False
    """
    return sha256(f"{scope}\0{key}".encode("utf-8", "surrogatepass")).hexdigest()


def same_request(first: str, second: str) -> bool:
    """
    Return whether two fingerprints are of the same request. They are compared part by part; an unknown part is empty.

    >>> same_request("head:body", "head:"), same_request("head:body", "head:other")
    (True, False)
    """
    parts, others = first.split(":"), second.split(":")
    return len(parts) == len(others) and all(
        not part or not other or part == other for part, other in zip(parts, others, strict=True)
    )


# Keys that belong to a job or task ------------------------------------------------------------------------------


class Owner(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The job or task that a key belongs to, and the fingerprint of its request."""

    id: str
    fingerprint: str = ""


_encode = msgspec.json.Encoder().encode
_read_owner = msgspec.json.Decoder(Owner).decode


class Owners:
    """The table of keys that belong to jobs or tasks."""

    def __init__(self, store: Store, table: str) -> None:
        self._name, self._table = table, store.table(table)

    async def get(self, key: str) -> Owner | None:
        """Return the owner of a key, or None."""
        row = await self._table.get(key)
        return None if row is None else _read_owner(row.value)

    def create(self, batch: Batch, key: str, owner: Owner) -> None:
        """Add to a batch that a new owner gets a key; its commit raises ConflictError if the key has an owner."""
        batch.create(self._name, key, _encode(owner))

    def put(self, batch: Batch, key: str, owner: Owner, *, expires_in: float | None = None) -> None:
        """Add to a batch that the owner keeps its key, for ever or until it expires."""
        batch.put(self._name, key, _encode(owner), expires_in=expires_in)

    async def release(self, key: str, id: str) -> None:
        """Free a key, unless it belongs to another owner than this one."""
        row = await self._table.get(key)
        if row is not None and _read_owner(row.value).id == id:
            with suppress(ConflictError):
                await self._table.delete(key, revision=row.revision)


# Keys with a state and an outcome -------------------------------------------------------------------------------


class KeyRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The state of the work under a key. A subclass adds the members of the outcome, with defaults."""

    state: Literal["running", "done", "doubt"]
    fingerprint: str
    transactional: bool = False
    """Whether the effect is committed together with the record that says `done`."""


R = TypeVar("R", bound=KeyRecord)


class KeyReused(Exception):
    """The key was used for another request."""


class KeyRunning(Exception):
    """A process works under the key."""


class KeyInDoubt(Exception):
    """The work under the key may have had its effect."""


class Claim(msgspec.Struct, Generic[R], kw_only=True):
    """The exclusive right to work under a key."""

    name: str
    record: R
    revision: int
    lease: int
    committed: bool = False
    """Whether the effect and the record were committed in one transaction."""


class Keys(Generic[R]):
    """Keys with a state and an outcome, in one store."""

    def __init__(self, store: Store, table: str, kind: type[R], *, expires_in: float, lease: float) -> None:
        """
        Args:
            store: where the keys are.
            table: the name of the table of records; the leases are in `<table>.leases`.
            kind: the type of the records.
            expires_in: seconds until a key is forgotten.
            lease: seconds after which a process that does not renew its lease counts as dead.
        """
        self.store, self.expires_in, self.lease = store, expires_in, lease
        self._table, self._kind = table, kind
        self._records, self._leases = store.table(table), store.table(f"{table}.leases")
        self._decode = msgspec.json.Decoder(kind).decode

    async def claim(
        self,
        name: str,
        fingerprint: str,
        *,
        transactional: bool = False,
        verify: Callable[[R], Awaitable[R | bool | None]] | None = None,
    ) -> Claim[R] | R:
        """
        Return a claim if the work may run, or the record if it is done.

        Args:
            name: the key; see `key_name`.
            fingerprint: of the request; see `same_request`.
            transactional: whether the effect will be committed together with the record.
            verify: called with a record in doubt, by one process at a time. Returns the record with its outcome, or True,
                if the effect happened; False if it did not, so that the work may run; None if that is not known.

        Raises:
            KeyReused: the key was used for another request.
            KeyRunning: a process works under the key.
            KeyInDoubt: the work may have had its effect.
        """
        try:
            lease = await self._leases.create(name, b"", expires_in=self.lease)
        except ConflictError:
            found = await self._records.get(name)
            record = None if found is None else self._read(found.value, fingerprint)
            if record is None or record.state == "running":
                raise KeyRunning from None
            return _require_done(record)
        try:
            return await self._claim_with_lease(name, fingerprint, lease, transactional, verify)
        except BaseException:
            await self._delete_lease(name, lease)
            raise

    async def _claim_with_lease(
        self,
        name: str,
        fingerprint: str,
        lease: int,
        transactional: bool,
        verify: Callable[[R], Awaitable[R | bool | None]] | None,
    ) -> Claim[R] | R:
        """Continue `claim` while holding the lease: no other process works under the key."""
        fresh = self._kind(state="running", fingerprint=fingerprint, transactional=transactional)
        found = await self._records.get(name)
        if found is None:
            revision = await self._records.create(name, _encode(fresh), expires_in=self.expires_in)
            return Claim(name=name, record=fresh, revision=revision, lease=lease)
        record, revision = self._read(found.value, fingerprint), found.revision
        if record.state == "running" and not record.transactional:
            # The earlier process died during the work, perhaps after its effect.
            record = replace(record, state="doubt")
            revision = await self._put(name, record, revision)
        if record.state == "doubt" and verify is not None:
            outcome = await verify(record)
            if outcome is None:
                raise KeyInDoubt
            if outcome is False:
                record = replace(record, state="running")
            else:
                record = replace(record if outcome is True else outcome, state="done")
                await self._put(name, record, revision)
        if record.state == "running":
            # The new revision fences off the earlier process if it is still alive: its transaction fails.
            revision = await self._put(name, fresh, revision)
            return Claim(name=name, record=fresh, revision=revision, lease=lease)
        done = _require_done(record)
        await self._delete_lease(name, lease)
        return done

    async def renew(self, claim: Claim[R]) -> None:
        """Extend the lease by its full length. Raises ConflictError if another process has it."""
        claim.lease = await self._leases.put(claim.name, b"", revision=claim.lease, expires_in=self.lease)

    async def complete(self, claim: Claim[R], **outcome: Any) -> None:
        """Store the outcome, then delete the lease."""
        await self._finish(claim, replace(claim.record, state="done", **outcome))

    async def mark_in_doubt(self, claim: Claim[R], **outcome: Any) -> None:
        """Record that the work failed and may have had its effect, then delete the lease."""
        await self._finish(claim, replace(claim.record, state="doubt", **outcome))

    async def release(self, claim: Claim[R]) -> None:
        """Delete the record and the lease: the work had no effect, and the key can be used again."""
        try:
            await self._records.delete(claim.name, revision=claim.revision)
        except ConflictError:
            return
        await self.release_lease(claim)

    async def release_lease(self, claim: Claim[R]) -> None:
        """Delete the lease and keep the record, which was committed with the effect."""
        await self._delete_lease(claim.name, claim.lease)

    def write(self, tx: Transaction, claim: Claim[R], **outcome: Any) -> None:
        """
        Store the outcome in the transaction of the effect.

        Raises:
            KeyRunning: another process took over the key; the transaction must not be committed.
        """
        record = replace(claim.record, state="done", **outcome)
        try:
            tx.table(self._table).put(
                claim.name, _encode(record), revision=claim.revision, expires_in=self.expires_in
            )
        except ConflictError as conflict:
            raise KeyRunning from conflict

    async def _finish(self, claim: Claim[R], record: R) -> None:
        try:
            await self._put(claim.name, record, claim.revision)
        except ConflictError:
            # Our lease expired and another process put the key in doubt. Our record resolves the doubt.
            found = await self._records.get(claim.name)
            if found is not None and self._read(found.value).state == "doubt":
                await self._put(claim.name, record, found.revision)
        await self.release_lease(claim)

    async def _put(self, name: str, record: R, revision: int) -> int:
        return await self._records.put(name, _encode(record), revision=revision, expires_in=self.expires_in)

    async def _delete_lease(self, name: str, revision: int) -> None:
        """Delete the lease, unless another process holds it now."""
        with suppress(ConflictError):
            await self._leases.delete(name, revision=revision)

    def _read(self, value: bytes, fingerprint: str | None = None) -> R:
        """Return a stored record. Raises KeyReused if it has another fingerprint than the given one."""
        record = self._decode(value)
        if fingerprint is not None and not same_request(record.fingerprint, fingerprint):
            raise KeyReused
        return record


def _require_done(record: R) -> R:
    if record.state == "doubt":
        raise KeyInDoubt
    return record
