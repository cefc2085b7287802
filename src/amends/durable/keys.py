"""
Idempotency keys: a name that the caller chose for a piece of work, so that a repeat is recognised.

A key is stored with a fingerprint of the request, to detect a key that is used for another request. There are two kinds:

- `Owners`: the key belongs to a job or task, whose log says what became of it.
- `Keys`: the key's own record holds the state of the work and its outcome. While a process works under the key it holds a
  *lease*, which ends if that process dies. A process that finds a record in the state `running` without a lease knows that
  the earlier process died during the work. The work may run again only if its effect was to be committed together with the
  record; otherwise the key is in doubt until `verify` finds out whether the effect happened.

The lease is a part of the record, so that every change of a key is one write that is conditional on the row's revision,
on every store: the record names its holder, and the end of the lease on the clock since boot (see `deadlines`). The expiry of
the row, which the wall clock or the server measures, only decides when a key is forgotten.

A process that is only stopped has lost its lease like one that died, and may continue. So `verify` is not believed when it
says that the effect did not happen, until the time limit of the lost call is over too: from then on our clients send nothing
for that call.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from hashlib import sha256
from secrets import token_bytes
from typing import Any, Generic, Literal, TypeVar

import msgspec
from msgspec.structs import replace

from amends.durable.batch import Batch
from amends.proof import Claim as Claimed
from amends.proof import Proof, rests_on
from amends.stores.contract import Row, Store, Transaction
from amends.stores.deadlines import Deadline, Deadlines, LeaseOwner
from amends.stores.errors import ConflictError

__all__ = [
    "CALL_LIMIT",
    "Claim",
    "KeyInDoubt",
    "KeyRecord",
    "KeyReused",
    "KeyRunning",
    "Keys",
    "Owner",
    "Owners",
    "key_name",
    "new_holder",
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

_FOR_EVER = 100 * 365 * 86400.0
"""Seconds for which a row is kept that must not be forgotten, after the lease of its holder ended."""
_RUNNING_KEPT = 30 * 86400.0
"""Seconds for which the row of a running call is kept at least: no change of the wall clock may remove it meanwhile."""
CALL_LIMIT = 60.0
"""Seconds that a call may take which has no time limit of its own."""


class KeyRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The state of the work under a key. A subclass adds the members of the outcome, with defaults."""

    state: Literal["running", "done", "doubt"]
    fingerprint: str
    transactional: bool = False
    """Whether the effect is committed together with the record that says `done`."""
    holder: str = ""
    """The claim that holds or held the lease, in stored records."""
    lease: Deadline | None = None
    """The end of the holder's lease, in stored records."""
    owner: str = ""
    """The process of the holder, in stored records; see `LeaseOwner`."""
    call: Deadline | None = None
    """The time limit of the call that runs or was lost; None if it is known to have ended."""


R = TypeVar("R", bound=KeyRecord)
T = TypeVar("T")


class KeyReused(Exception):
    """The key was used for another request."""


class KeyRunning(Exception):
    """A process works under the key, or the call of one that was lost may still act."""

    def __init__(self, left: float = 0.0, *, lost: bool = False) -> None:
        super().__init__(left)
        self.left = left
        """Seconds until the lease, or the time limit of the lost call, is over unless it is renewed."""
        self.lost = lost
        """Whether the call was lost, and `verify` found no effect of it yet."""


class KeyInDoubt(Exception):
    """The work under the key may have had its effect."""


class Claim(msgspec.Struct, Generic[R], kw_only=True):
    """The exclusive right to work under a key, or to find out about its effect if the record says `doubt`."""

    name: str
    record: R
    revision: int
    holder: str
    """By this the row is recognised if its revision is not known, because a renewal changed it."""
    expires_in: float
    call_limit: float = CALL_LIMIT
    """Seconds that the call may take."""
    committed: bool = False
    """Whether the effect and the record were committed in one transaction."""


def new_holder() -> str:
    """Return the identity of a new claim."""
    return token_bytes(8).hex()


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
        call_limit: float = CALL_LIMIT,
        owner: LeaseOwner | None = None,
    ) -> None:
        """
        Args:
            store: where the keys are.
            table: the name of the table.
            kind: the type of the records.
            expires_in: seconds until a key is forgotten.
            lease: seconds after which a process that does not renew its lease counts as dead.
            keep_unsettled: keep the keys whose outcome is not known for ever, and forget only those that are done.
            call_limit: seconds that a call may take, unless `acquire` is given others.
            owner: proves that processes have ended, whose leases are then over.
        """
        self.store, self.expires_in, self.lease, self.call_limit = store, expires_in, lease, call_limit
        self.deadlines, self._owner = Deadlines.of(store), owner
        self._table, self._rows = table, store.table(table)
        self._kind, self._decode = kind, msgspec.json.Decoder(kind).decode
        self._keep_unsettled = keep_unsettled

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
            left = self.call_left(taken)
            if left > 0:
                await self.release_lease(taken)
                raise KeyRunning(left, lost=True)
            return await self.restart(taken, fresh)
        record = replace(taken.record if found is True else found, state="done", call=None)
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
        holder: str | None = None,
        call_limit: float | None = None,
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
            expect_new: most keys are new. Saves the read that makes repeats cheap: on SQLite a claim is then one statement.
            holder: identifies the claim, see `new_holder`; a caller that was cancelled in here can release it by that.
            call_limit: seconds that the call may take, if they are not those of all keys.

        Raises:
            KeyReused, KeyRunning, KeyInDoubt: see `claim`.
        """
        kept = self.expires_in if expires_in is None else expires_in
        claim = Claim(
            name=name,
            record=fresh,
            revision=0,
            holder=holder or new_holder(),
            expires_in=kept,
            call_limit=self.call_limit if call_limit is None else call_limit,
        )
        found = None if expect_new else await self._rows.get(name)
        while True:
            try:
                return await self._take(claim, fresh, found, verifiable, reopen)
            except ConflictError:
                # It changed since it was read.
                found = await self._rows.get(name)

    async def _take(
        self,
        claim: Claim[R],
        fresh: R,
        found: Row | None,
        verifiable: bool,
        reopen: Callable[[R], R | None] | None,
    ) -> Claim[R] | R:
        """Write the claim over the row that was read, or return its record. Raises ConflictError if it changed."""
        claim.record = self._begun(claim, fresh)
        if found is not None:
            record, left = self._read(found, fresh.fingerprint)
            if record.state == "done":
                again = None if reopen is None else reopen(record)
                if again is None:
                    return record
                claim.record = self._begun(claim, again)
            elif left > 0:
                raise KeyRunning(left)
            elif record.state == "doubt" or not record.transactional:
                # The earlier process died during the work, perhaps after its effect, or left the doubt.
                claim.record = _without_holder(replace(record, state="doubt"))
                if not verifiable:
                    if record.state == "running":
                        await self._put(claim, found.revision, claim.record)
                    raise KeyInDoubt
            # The new revision fences off the earlier process if it is still alive: its transaction fails.
        value, expires_in = self._held(claim)
        if found is None:
            claim.revision = await self._rows.create(claim.name, value, expires_in=expires_in)
        else:
            claim.revision = await self._rows.put(
                claim.name, value, revision=found.revision, expires_in=expires_in
            )
        return claim

    async def restart(self, claim: Claim[R], fresh: R) -> Claim[R]:
        """
        Return the claim to run the work of a key that was in doubt, because its effect did not happen.

        Only after the time limit of the lost call; see `call_left`.
        """
        claim.record = self._begun(claim, fresh)
        await self.renew(claim)
        return claim

    @rests_on(Claimed.NOT_HAPPENED, Proof.TIME_LIMIT)
    def call_left(self, claim: Claim[R]) -> float:
        """Return the seconds until the lost call of a key in doubt cannot act any more; 0 if that time is over."""
        call = claim.record.call
        return 0.0 if call is None else self.deadlines.left(call, claim.name)

    def _begun(self, claim: Claim[R], fresh: R) -> R:
        """Return the record of a call that begins now."""
        return replace(fresh, call=self.deadlines.start(claim.call_limit))

    async def renew(self, claim: Claim[R]) -> None:
        """Extend the lease by its full length. Raises ConflictError if another process has it."""
        value, expires_in = self._held(claim)
        claim.revision = await self._own(
            claim,
            lambda revision: self._rows.put(claim.name, value, revision=revision, expires_in=expires_in),
        )

    async def complete(self, claim: Claim[R], **outcome: Any) -> None:
        """Store the outcome, and end the lease."""
        await self._finish(claim, replace(claim.record, state="done", call=None, **outcome))

    async def mark_in_doubt(self, claim: Claim[R], *, answered: bool = True, **outcome: Any) -> None:
        """Record that the work failed and may have had its effect, and end the lease. Without an answer its time limit stays."""
        call = None if answered else claim.record.call
        await self._finish(claim, replace(claim.record, state="doubt", call=call, **outcome))

    async def release(self, claim: Claim[R]) -> None:
        """Delete the record: the work had no effect, and the key can be used again."""
        with suppress(ConflictError):
            await self._own(claim, lambda revision: self._rows.delete(claim.name, revision=revision))

    async def release_lease(self, claim: Claim[R]) -> None:
        """End the lease and keep the record."""
        if not claim.committed:
            with suppress(ConflictError):
                await self._own(claim, lambda revision: self._put(claim, revision, claim.record))

    def write(self, tx: Transaction, claim: Claim[R], **outcome: Any) -> None:
        """
        Store the outcome in the transaction of the effect.

        Raises:
            KeyRunning: another process took over the key; the transaction must not be committed.
        """
        rows, value = (
            tx.table(self._table),
            _encode(replace(claim.record, state="done", call=None, **outcome)),
        )
        found = rows.get(claim.name)
        if found is None or self._decode(found.value).holder != claim.holder:
            raise KeyRunning
        rows.put(claim.name, value, revision=found.revision, expires_in=claim.expires_in)

    # ----------------------------------------------------------------------------------------- reading all keys

    async def get(self, name: str) -> R | None:
        """Return the record of a key, in doubt if its process died; None if there is none."""
        found = await self._rows.get(name)
        return None if found is None else self._seen(found)

    async def scan(self, prefix: str = "") -> AsyncIterator[tuple[str, R]]:
        """Iterate over the keys and their records, in doubt if their process died."""
        async for row in self._rows.scan(prefix):
            yield row.key, self._seen(row)

    def _seen(self, row: Row) -> R:
        record, left = self._read(row)
        died = record.state == "running" and not record.transactional and left <= 0
        return _without_holder(replace(record, state="doubt" if died else record.state))

    async def change(self, name: str, **changes: Any) -> None:
        """Change members of a record that is done. Does nothing if the key is not done, or changes at the same time."""
        found = await self._rows.get(name)
        if found is None:
            return
        record, _ = self._read(found)
        if record.state == "done":
            with suppress(ConflictError):
                value = _encode(replace(record, **changes))
                await self._rows.put(name, value, revision=found.revision, expires_in=found.expires_in)

    # ------------------------------------------------------------------------------------------------- internals

    async def _finish(self, claim: Claim[R], record: R) -> None:
        try:
            await self._own(claim, lambda revision: self._put(claim, revision, record))
        except ConflictError:
            # Our lease ended and another process put the key in doubt. Our record resolves the doubt.
            found = await self._rows.get(claim.name)
            if found is not None and self._read(found)[0].state == "doubt":
                await self._put(claim, found.revision, record)

    async def _put(self, claim: Claim[R], revision: int, record: R) -> int:
        """Write a record without a holder."""
        keep = record.state != "done" and self._keep_unsettled
        expires_in = None if keep else claim.expires_in
        return await self._rows.put(claim.name, _encode(record), revision=revision, expires_in=expires_in)

    @rests_on(Claimed.OURS, Proof.COMPARED)
    async def _own(self, claim: Claim[R], write: Callable[[int], Awaitable[T]]) -> T:
        """Change the row of a claim. Raises ConflictError if another process has it."""
        revision = claim.revision
        while True:
            try:
                return await write(revision)
            except ConflictError:
                found = await self._rows.get(claim.name)
                if found is None or found.revision == revision or self._read(found)[0].holder != claim.holder:
                    raise
                # A renewal is under way, or was interrupted after it was stored.
                revision = found.revision

    def _held(self, claim: Claim[R]) -> tuple[bytes, float]:
        """Return the row of a claim with its lease: the value, and the expiry."""
        record = replace(
            claim.record,
            holder=claim.holder,
            lease=self.deadlines.start(self.lease),
            owner="" if self._owner is None else self._owner.id,
        )
        kept = _FOR_EVER if self._keep_unsettled else max(claim.expires_in, _RUNNING_KEPT)
        return _encode(record), kept + self.lease

    def _read(self, row: Row, fingerprint: str | None = None) -> tuple[R, float]:
        """
        Return a stored record, and the seconds until the lease of its holder is over; 0 if it is, or there is none.

        Raises:
            KeyReused: it has another fingerprint than the given one.
        """
        record = self._decode(row.value)
        if fingerprint is not None and not same_request(record.fingerprint, fingerprint):
            raise KeyReused
        return record, self.lease_left(record, row.key)

    @rests_on(Claimed.LEASE_ENDED, Proof.BOOT_CLOCK, Proof.PROCESS)
    def lease_left(self, record: R, name: str) -> float:
        """Return the seconds until the lease of a record's holder is over; 0 if it is, or if its process has ended."""
        if record.lease is None or not record.holder:
            return 0.0
        if self._owner is not None and record.owner and self._owner.ended(record.owner):
            return 0.0
        return self.deadlines.left(record.lease, f"{name} {record.holder}")


def _without_holder(record: R) -> R:
    return replace(record, holder="", lease=None, owner="")
