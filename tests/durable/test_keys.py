"""Keys: owners, records with a state, fingerprints, leases, and what becomes of a key whose process died."""

import asyncio

import pytest

from amends import stores
from amends.durable.batch import Batch
from amends.durable.keys import (
    Claim,
    KeyInDoubt,
    KeyRecord,
    KeyReused,
    KeyRunning,
    Keys,
    Owner,
    Owners,
    key_name,
    same_request,
)
from amends.stores import ConflictError, StoreError
from tests.durable.faulty import HOWS, Faulty, end_lease


class Paid(KeyRecord, frozen=True, kw_only=True, omit_defaults=True):
    receipt: str | None = None


def keys_in(store, lease=60.0):
    return Keys(store, "paid", Paid, expires_in=60, lease=lease)


async def died(store, name, **options):
    """Leave a key as a process leaves it that dies during the work."""
    claim = await keys_in(store).claim(name, "f", **options)
    await end_lease(store.table("paid"), name)
    return claim


async def test_owners(store):
    """A key has one owner, which alone can release it."""
    owners = Owners(store, "keys")
    batch = Batch()
    owners.create(batch, "k", Owner("job-1", "f"))
    await batch.commit(store)
    assert await owners.get("k") == Owner("job-1", "f")
    other = Batch()
    owners.create(other, "k", Owner("job-2", "f"))
    with pytest.raises(ConflictError):
        await other.commit(store)
    await owners.release("k", "job-2")
    assert (await owners.get("k")).id == "job-1"
    await owners.release("k", "job-1")
    assert await owners.get("k") is None
    await owners.release("k", "job-1")


def test_names_and_fingerprints():
    """Two scopes never share a key, any text can be a key, and an unknown part of a fingerprint matches every other."""
    assert len({key_name(scope, "k\ud800") for scope in ("a", "b", "\udfff")}) == 3
    for first, second, same in (
        ("a", "a", True),
        ("a", "b", False),
        ("a:b", "a:", True),
        ("a:b", "a:c", False),
        ("a:b", "a", False),
    ):
        assert same_request(first, second) is same_request(second, first) is same


async def test_work_under_a_key(store):
    """The first claim runs; a repeat waits for it, then gets the outcome; another request is refused."""
    keys = keys_in(store)
    claim = await keys.claim("k", "f")
    assert isinstance(claim, Claim)
    with pytest.raises(KeyRunning):
        await keys.claim("k", "f")
    with pytest.raises(KeyReused):
        await keys.claim("k", "other")
    await keys.renew(claim)
    await keys.complete(claim, receipt="r")
    assert (await keys.claim("k", "f")).receipt == "r"
    with pytest.raises(KeyReused):
        await keys.claim("k", "other")
    again = await keys.claim("l", "f")
    await keys.release(again)
    assert isinstance(await keys.claim("l", "f"), Claim)


async def test_a_process_that_died_leaves_the_key_in_doubt(store):
    """`verify` decides: it happened, it did not, or it stays unknown. Without it the key stays in doubt."""
    keys = keys_in(store)
    await died(store, "k")
    for _ in range(2):
        with pytest.raises(KeyInDoubt):
            await keys.claim("k", "f")

    async def unknown(record):
        assert record.state == "doubt"

    with pytest.raises(KeyInDoubt):
        await keys.claim("k", "f", verify=unknown)

    async def happened(record):
        return Paid(state="doubt", fingerprint=record.fingerprint, receipt="found")

    assert (await keys.claim("k", "f", verify=happened)).receipt == "found"
    assert (await keys.claim("k", "f")).receipt == "found"
    await died(store, "l")

    async def did_not(record):
        return False

    assert isinstance(await keys.claim("l", "f", verify=did_not), Claim)
    assert (await keys.get("l")).state == "running"
    failed = await keys.claim("m", "f")
    await keys.mark_in_doubt(failed)
    with pytest.raises(KeyInDoubt):
        await keys.claim("m", "f")


async def test_work_in_a_transaction_runs_again_and_the_dead_process_is_fenced(store):
    """Its effect shares the transaction of the record, so it did not happen; the old claim can no longer commit."""
    keys = keys_in(store)
    dead = await died(store, "k", transactional=True)
    claim = await keys.claim("k", "f", transactional=True)
    if store.traits.transactions:
        with pytest.raises(KeyRunning):
            await store.transaction(lambda tx: keys.write(tx, dead, receipt="dead"))
        await store.transaction(lambda tx: keys.write(tx, claim, receipt="new"))
        await keys.release_lease(claim)
        assert (await keys.claim("k", "f")).receipt == "new"


async def test_one_of_many_gets_the_claim(store):
    """Of twenty concurrent claims one runs, and the others are refused."""
    keys = keys_in(store)
    found = await asyncio.gather(*(keys.claim("k", "f") for _ in range(20)), return_exceptions=True)
    assert sum(isinstance(each, Claim) for each in found) == 1
    assert sum(isinstance(each, KeyRunning) for each in found) == 19


async def pay(keys, effects):
    """Do the work under the key, as a process does that fails or is killed anywhere."""
    claim = await keys.claim("k", "f")
    if isinstance(claim, Claim):
        effects.append(1)
        await keys.complete(claim, receipt="r")
        return "r"
    return claim.receipt


async def test_every_interruption_and_every_failure():
    """Without `verify` the work never runs twice, whichever operation of a first caller fails or is its last."""
    tried = []
    for how in HOWS:
        for point in range(20):
            async with await stores.open("memory:") as memory:
                effects, faults = [], Faulty(memory, transactions=True)
                faults.point, faults.how = point, how
                faults.caller = asyncio.ensure_future(pay(keys_in(faults), effects))
                (first,) = await asyncio.gather(faults.caller, return_exceptions=True)
                if faults.count <= point:
                    break
                tried.append((how, point))
                assert first == "r" or isinstance(first, StoreError | asyncio.CancelledError), (how, point)
                # The lease of a process that died expires.
                await end_lease(memory.table("paid"), "k")
                try:
                    second = await pay(keys_in(memory), effects)
                except KeyInDoubt:
                    second = None
                assert len(effects) <= 1, (how, point)
                assert second == "r" if first == "r" else second in {"r", None}, (how, point)
    assert len(tried) == 3 * len(HOWS), tried  # read, claim, outcome


async def test_renewals_beside_other_changes(store):
    """A renewal whose revision the claim does not know is recognised by its holder; one after the end changes nothing."""
    keys = keys_in(store)
    claim = await keys.claim("k", "f")
    known = claim.revision
    await keys.renew(claim)
    claim.revision = known  # as if the caller was interrupted after the renewal was stored
    await keys.renew(claim)
    claim.revision = known
    await keys.complete(claim, receipt="r")
    for revision in (known, claim.revision):
        claim.revision = revision
        with pytest.raises(ConflictError):
            await keys.renew(claim)
    assert (await keys.claim("k", "f")).receipt == "r"
    other = await keys.claim("l", "f")
    known = other.revision
    await keys.renew(other)
    other.revision = known
    await keys.release(other)
    assert await keys.get("l") is None


async def test_a_renewal_keeps_the_key(store):
    """The lease ends without renewals, and lasts with them; a process that lost it cannot renew it."""
    keys = keys_in(store)
    claim = await keys.claim("k", "f", transactional=True)
    await end_lease(store.table("paid"), "k")
    await keys.renew(claim)
    with pytest.raises(KeyRunning):
        await keys.claim("k", "f", transactional=True)
    await end_lease(store.table("paid"), "k")
    await keys.claim("k", "f", transactional=True)
    with pytest.raises(ConflictError):
        await keys.renew(claim)


async def test_a_verification_that_fails_gives_its_lease_back(store):
    """The error reaches the caller, and the next caller can verify."""
    keys = keys_in(store)
    await keys.mark_in_doubt(await keys.claim("a", "f"))

    async def broken(record):
        raise OSError

    with pytest.raises(OSError):
        await keys.claim("a", "f", verify=broken)

    async def unknown(record):
        return None

    with pytest.raises(KeyInDoubt):
        await keys.claim("a", "f", verify=unknown)


async def test_members_of_a_finished_record_are_changed(store):
    """Those of a running or missing one are not."""
    keys = keys_in(store)
    await keys.change("a", receipt="r1")
    claim = await keys.claim("a", "f")
    await keys.change("a", receipt="r1")
    assert (await keys.get("a")).receipt is None
    await keys.complete(claim, receipt="r1")
    await keys.change("a", receipt="r2")
    assert (await keys.get("a")).receipt == "r2"
