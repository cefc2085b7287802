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

from collections.abc import AsyncIterator, Awaitable, Callable, Generator
from contextlib import suppress
from functools import partial
from hashlib import sha256
from secrets import token_bytes
from typing import Any, Generic, Literal, TypeAlias, TypeVar

import msgspec
from msgspec.structs import replace

from amends.durable.batch import Batch
from amends.stores.contract import Row, Store, Transaction
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
T = TypeVar("T")


class KeyReused(Exception):
    """The key was used for another request."""


class KeyRunning(Exception):
    """A process works under the key."""


class KeyInDoubt(Exception):
    """The work under the key may have had its effect."""


class Claim(msgspec.Struct, Generic[R], kw_only=True):
    """The exclusive right to work under a key, or to find out about its effect if the record says `doubt`."""

    name: str
    record: R
    revision: int
    lease: int
    token: bytes
    """The value of the lease, by which it is recognised if its revision is not known."""
    expires_in: float
    committed: bool = False
    """Whether the effect and the record were committed in one transaction."""


Step: TypeAlias = Callable[[Any, Any], Any]
"""One operation on the table of records or the table of leases, awaitable outside of a transaction."""
Steps: TypeAlias = Generator[Step, Any, T]


class Keys(Generic[R]):
    """Keys with a state and an outcome, in one store."""

    def __init__(
        self,
        store: Store,
        table: str,
        kind: type[R],
        *,
        expires_in: float,
        lease: float,
        keep_unsettled: bool = False,
    ) -> None:
        """
        Args:
            store: where the keys are.
            table: the name of the table of records; the leases are in `<table>.leases`.
            kind: the type of the records.
            expires_in: seconds until a key is forgotten.
            lease: seconds after which a process that does not renew its lease counts as dead.
            keep_unsettled: keep the keys whose outcome is not known for ever, and forget only those that are done.
        """
        self.store, self.expires_in, self.lease = store, expires_in, lease
        self._table, self._kind = table, kind
        self._keep_unsettled = keep_unsettled
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
            KeyRunning: a process works under the key, or finds out about its effect.
            KeyInDoubt: the work may have had its effect.
        """
        fresh = self._kind(state="running", fingerprint=fingerprint, transactional=transactional)
        taken = await self.acquire(name, fresh, verifiable=verify is not None)
        if not isinstance(taken, Claim) or verify is None or taken.record.state != "doubt":
            return taken
        try:
            found = await verify(taken.record)
        except BaseException:
            await self.release_lease(taken)
            raise
        if found is None:
            await self.release_lease(taken)
            raise KeyInDoubt
        if found is False:
            return await self.restart(taken, fresh)
        record = replace(taken.record if found is True else found, state="done")
        await self._finish(taken, record)
        return record

    async def acquire(
        self,
        name: str,
        fresh: R,
        *,
        verifiable: bool = False,
        reopen: Callable[[R], R | None] | None = None,
        expires_in: float | None = None,
        expect_new: bool = False,
    ) -> Claim[R] | R:
        """
        Return a claim on a new key, or the record of a key that is done.

        Args:
            name: the key.
            fresh: the record to create, in the state `running`.
            verifiable: return a claim on a key in doubt too, with its record in that state, so that the caller can find
                out about the effect. It ends with `complete`, `restart`, `release` or `release_lease`.
            reopen: called with a record that is done; the record that it returns replaces it, and the work runs once more.
            expires_in: seconds until this key is forgotten.
            expect_new: most keys are new. Saves the read that makes repeats cheap; on SQLite it is a fifth of a claim.

        Raises:
            KeyReused, KeyRunning, KeyInDoubt: see `claim`.
        """
        if not expect_new:
            found = await self._records.get(name)
            if found is not None:
                record = self._read(found.value, fresh.fingerprint)
                if record.state == "done" and (reopen is None or reopen(record) is None):
                    return record
        expires = self.expires_in if expires_in is None else expires_in
        return await self._run(lambda: self._acquire(name, fresh, verifiable, reopen, expires))

    def _acquire(
        self,
        name: str,
        fresh: R,
        verifiable: bool,
        reopen: Callable[[R], R | None] | None,
        expires_in: float,
    ) -> Steps[Claim[R] | R]:
        token = token_bytes(8)
        found: Row | None = None
        atomic = self.store.supports_transactions
        if atomic:
            found = yield lambda records, leases: records.get(name)
            if found is not None:
                record = self._read(found.value, fresh.fingerprint)
                if record.state == "done" and (reopen is None or reopen(record) is None):
                    return record
        try:
            lease = yield lambda records, leases: leases.create(name, token, expires_in=self.lease)
        except ConflictError:
            found = yield lambda records, leases: records.get(name)
            held = None if found is None else self._read(found.value, fresh.fingerprint)
            if held is None or held.state != "done":
                raise KeyRunning from None
            return held
        # With the lease, no other process works under the key.
        claim = Claim(name=name, record=fresh, revision=0, lease=lease, token=token, expires_in=expires_in)
        keep = self._unsettled_expiry(expires_in)
        try:
            if not atomic:
                found = yield lambda records, leases: records.get(name)
            if found is None:
                claim.revision = yield lambda records, leases: records.create(
                    name, _encode(fresh), expires_in=keep
                )
                return claim
            record, claim.revision = self._read(found.value, fresh.fingerprint), found.revision
            if record.state == "running" and not record.transactional:
                # The earlier process died during the work, perhaps after its effect.
                record = replace(record, state="doubt")
                claim.revision = yield _put(claim, record, keep)
            if record.state == "doubt":
                if not verifiable:
                    raise KeyInDoubt  # noqa: TRY301 - the lease is deleted first
                claim.record = record
                return claim
            again = record if record.state == "running" else None if reopen is None else reopen(record)
            if again is None:
                yield from _delete_lease(claim)
                return record
            # The new revision fences off the earlier process if it is still alive: its transaction fails.
            claim.record = fresh if again is record else again
            claim.revision = yield _put(claim, claim.record, keep)
            return claim
        except GeneratorExit:
            raise
        except BaseException:
            yield from _delete_lease(claim)
            raise

    async def restart(self, claim: Claim[R], fresh: R) -> Claim[R]:
        """Return the claim to run the work of a key that was in doubt, because its effect did not happen."""
        keep = self._unsettled_expiry(claim.expires_in)
        claim.revision = await self._run(lambda: _single(_put(claim, fresh, keep)))
        claim.record = fresh
        return claim

    async def renew(self, claim: Claim[R]) -> None:
        """Extend the lease by its full length. Raises ConflictError if another process has it."""
        claim.lease = await self._leases.put(
            claim.name, claim.token, revision=claim.lease, expires_in=self.lease
        )

    async def complete(self, claim: Claim[R], **outcome: Any) -> None:
        """Store the outcome and delete the lease."""
        await self._finish(claim, replace(claim.record, state="done", **outcome))

    async def mark_in_doubt(self, claim: Claim[R], **outcome: Any) -> None:
        """Record that the work failed and may have had its effect, and delete the lease."""
        await self._finish(claim, replace(claim.record, state="doubt", **outcome))

    async def release(self, claim: Claim[R]) -> None:
        """Delete the record and the lease: the work had no effect, and the key can be used again."""
        await self._run(lambda: _release(claim))

    async def release_lease(self, claim: Claim[R]) -> None:
        """Delete the lease and keep the record."""
        await self._run(lambda: _delete_lease(claim))

    def write(self, tx: Transaction, claim: Claim[R], **outcome: Any) -> None:
        """
        Store the outcome in the transaction of the effect.

        Raises:
            KeyRunning: another process took over the key; the transaction must not be committed.
        """
        record = replace(claim.record, state="done", **outcome)
        try:
            tx.table(self._table).put(
                claim.name, _encode(record), revision=claim.revision, expires_in=claim.expires_in
            )
        except ConflictError as conflict:
            raise KeyRunning from conflict

    # ----------------------------------------------------------------------------------------- reading all keys

    async def get(self, name: str) -> R | None:
        """Return the record of a key, in doubt if its process died; None if there is none."""
        found = await self._records.get(name)
        return None if found is None else await self._seen(name, self._read(found.value))

    async def scan(self, prefix: str = "") -> AsyncIterator[tuple[str, R]]:
        """Iterate over the keys and their records, in doubt if their process died."""
        async for row in self._records.scan(prefix):
            yield row.key, await self._seen(row.key, self._read(row.value))

    async def _seen(self, name: str, record: R) -> R:
        if record.state != "running" or record.transactional or await self._leases.get(name) is not None:
            return record
        return replace(record, state="doubt")

    async def change(self, name: str, **changes: Any) -> None:
        """Change members of a record that is done. Does nothing if the key is not done, or changes at the same time."""
        found = await self._records.get(name)
        if found is None:
            return
        record = self._read(found.value)
        if record.state == "done":
            with suppress(ConflictError):
                value = _encode(replace(record, **changes))
                await self._records.put(name, value, revision=found.revision, expires_in=found.expires_in)

    # ------------------------------------------------------------------------------------------------- internals

    async def _finish(self, claim: Claim[R], record: R) -> None:
        await self._run(lambda: self._finishing(claim, record))

    def _finishing(self, claim: Claim[R], record: R) -> Steps[None]:
        expires = claim.expires_in if record.state == "done" else self._unsettled_expiry(claim.expires_in)
        try:
            yield _put(claim, record, expires)
        except ConflictError:
            # Our lease expired and another process put the key in doubt. Our record resolves the doubt.
            found = yield lambda records, leases: records.get(claim.name)
            if found is not None and self._read(found.value).state == "doubt":
                claim.revision = found.revision
                yield _put(claim, record, expires)
        yield from _delete_lease(claim)

    def _unsettled_expiry(self, expires_in: float) -> float | None:
        return None if self._keep_unsettled else expires_in

    async def _run(self, begin: Callable[[], Steps[T]]) -> T:
        """Run the steps: in one transaction if the store has transactions, else one after the other."""
        if self.store.supports_transactions:
            ended = await self.store.transaction(partial(self._run_in_transaction, begin))
            if isinstance(ended, BaseException):
                raise ended
            result: T = ended[0]
            return result
        tables, steps = (self._records, self._leases), begin()
        try:
            step = next(steps)
            while True:
                try:
                    value = await step(*tables)
                except BaseException as error:  # noqa: BLE001 - the generator decides
                    step = steps.throw(error)
                else:
                    step = steps.send(value)
        except StopIteration as end:
            returned: T = end.value
            return returned

    def _run_in_transaction(self, begin: Callable[[], Steps[T]], tx: Transaction) -> Any:
        """Return the result in a tuple, or the exception that the steps raised, whose changes are committed."""
        tables, steps = (tx.table(self._table), tx.table(f"{self._table}.leases")), begin()
        try:
            step = next(steps)
            while True:
                try:
                    value = step(*tables)
                except ConflictError as error:
                    step = steps.throw(error)
                else:
                    step = steps.send(value)
        except StopIteration as end:
            return (end.value,)
        except (KeyReused, KeyRunning, KeyInDoubt) as refused:
            return refused

    def _read(self, value: bytes, fingerprint: str | None = None) -> R:
        """Return a stored record. Raises KeyReused if it has another fingerprint than the given one."""
        record = self._decode(value)
        if fingerprint is not None and not same_request(record.fingerprint, fingerprint):
            raise KeyReused
        return record


def _put(claim: Claim[R], record: R, expires_in: float | None) -> Step:
    return lambda records, leases: records.put(
        claim.name, _encode(record), revision=claim.revision, expires_in=expires_in
    )


def _single(step: Step) -> Steps[Any]:
    return (yield step)


def _release(claim: Claim[Any]) -> Steps[None]:
    try:
        yield lambda records, leases: records.delete(claim.name, revision=claim.revision)
    except ConflictError:
        return
    yield from _delete_lease(claim)


def _delete_lease(claim: Claim[Any]) -> Steps[None]:
    """Delete the lease, unless another process holds it now."""
    try:
        yield lambda records, leases: leases.delete(claim.name, revision=claim.lease)
    except ConflictError:
        found = yield lambda records, leases: leases.get(claim.name)
        if found is not None and found.value == claim.token:
            # A renewal was interrupted after it was stored.
            with suppress(ConflictError):
                yield lambda records, leases: leases.delete(claim.name, revision=found.revision)
