"""Keys: owners, records with a state, fingerprints, leases, and what becomes of a key whose process died."""

import asyncio

import pytest
from msgspec.structs import replace

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


async def test_what_a_record_begins_with(store):
    """Without an outcome, a holder, or a transaction; stored records have no members with these values."""
    record = Paid(state="running", fingerprint="f")
    assert (record.transactional, record.holder, record.lease) == (False, "", None)
    claim = await keys_in(store).claim("k", "f")
    begun = replace(record, call=claim.record.call)
    assert (claim.record, claim.committed, claim.expires_in) == (begun, False, 60)
    assert claim.record.call.length == 60.0
    assert claim.revision == (await store.table("paid").get("k")).revision
    assert await keys_in(store).get("k") == begun
    await keys_in(store).complete(claim)
    assert await keys_in(store).get("k") == replace(record, state="done")


async def test_keys_that_are_forgotten(store):
    """A running row is kept for 30 days at least; one whose outcome is not known may be kept for ever."""
    forgetting = keys_in(store, lease=30.0)
    claim = await forgetting.claim("a", "f")
    month = 30 * 86400
    assert month < (await store.table("paid").get("a")).expires_in <= month + 30
    await forgetting.complete(claim, receipt="r")
    assert 55.0 < (await store.table("paid").get("a")).expires_in <= 60.0
    keeping = Keys(store, "paid", Paid, expires_in=60, lease=30.0, keep_unsettled=True)
    claim = await keeping.claim("b", "f")
    assert (await store.table("paid").get("b")).expires_in > 99 * 365 * 86400
    with pytest.raises(KeyRunning):
        await keeping.claim("b", "f")
    await keeping.mark_in_doubt(claim)
    assert (await store.table("paid").get("b")).expires_in is None
    with pytest.raises(KeyInDoubt):
        await keeping.claim("b", "f")

    async def happened(record):
        return True

    assert (await keeping.claim("b", "f", verify=happened)).state == "done"
    assert 55.0 < (await store.table("paid").get("b")).expires_in <= 60.0


async def test_a_key_with_an_expiry_of_its_own(store):
    """It replaces that of the table, also for the outcome."""
    keys = keys_in(store, lease=30.0)
    claim = await keys.acquire("a", Paid(state="running", fingerprint="f"), expires_in=500.0, expect_new=True)
    assert (await store.table("paid").get("a")).expires_in > 30 * 86400
    await keys.complete(claim)
    assert 495.0 < (await store.table("paid").get("a")).expires_in <= 500.0
    # The key is not new, although the caller expects that.
    fresh = Paid(state="running", fingerprint="f")
    assert (await keys.acquire("a", fresh, expect_new=True)).state == "done"


async def test_work_that_runs_once_more(store):
    """`reopen` is asked about a record that is done, and may leave it; the holder can be chosen."""
    keys, fresh = keys_in(store), Paid(state="running", fingerprint="f")
    await keys.complete(await keys.claim("a", "f"), receipt="r1")
    assert (await keys.acquire("a", fresh, reopen=lambda record: None)).receipt == "r1"
    again = await keys.acquire(
        "a", fresh, reopen=lambda record: Paid(state="running", fingerprint="f", receipt="kept"), holder="me"
    )
    assert (again.record.receipt, again.holder) == ("kept", "me")
    with pytest.raises(KeyRunning):
        await keys.claim("a", "f")
    await keys.complete(again, receipt="r2")
    assert (await keys.get("a")).receipt == "r2"


async def test_all_keys_are_read(store):
    """With their state; a running one whose process died is in doubt, unless its effect needs a transaction."""
    keys = keys_in(store)
    await died(store, "x/dead")
    await died(store, "x/again", transactional=True)
    await keys.claim("x/running", "f")
    await keys.complete(await keys.claim("y/done", "f"), receipt="r")
    found = {name: record async for name, record in keys.scan()}
    assert {name: record.state for name, record in found.items()} == {
        "x/dead": "doubt",
        "x/again": "running",
        "x/running": "running",
        "y/done": "done",
    }
    assert all((record.holder, record.lease) == ("", None) for record in found.values())
    assert {name async for name, _ in keys.scan("y/")} == {"y/done"}
    assert await keys.get("z") is None


async def test_a_key_in_doubt_is_verified_by_one_process_at_a_time(store):
    """The lease of the verifying process holds the key; what was stored as doubt stays until then."""
    keys = keys_in(store)
    await died(store, "a")
    with pytest.raises(KeyInDoubt):
        await keys.claim("a", "f")
    assert (await keys.get("a")).state == "doubt"
    claim = await keys.acquire("a", Paid(state="running", fingerprint="f"), verifiable=True)
    assert claim.record.state == "doubt"
    with pytest.raises(KeyRunning):
        await keys.claim("a", "f")
    await keys.release_lease(claim)
    with pytest.raises(KeyInDoubt):
        await keys.claim("a", "f")


async def test_an_outcome_after_the_lease_ended_resolves_the_doubt(store):
    """The process was slow, not dead. An outcome for a key that others hold or deleted changes nothing."""
    keys = keys_in(store)
    slow = await died(store, "a")
    with pytest.raises(KeyInDoubt):
        await keys.claim("a", "f")
    await keys.complete(slow, receipt="late")
    assert (await keys.get("a")).receipt == "late"
    slow = await died(store, "b", transactional=True)
    other = await keys.claim("b", "f", transactional=True)
    await keys.complete(slow, receipt="late")
    assert (await keys.get("b")).state == "running"
    await keys.complete(other, receipt="new")
    assert (await keys.get("b")).receipt == "new"
    gone = await keys.claim("c", "f")
    await keys.release(gone)
    await keys.complete(gone, receipt="late")
    assert await keys.get("c") is None


async def test_a_committed_claim_keeps_its_record(store):
    """Its lease ended with the transaction."""
    keys = keys_in(store)
    claim = await keys.claim("a", "f")
    await keys.complete(claim, receipt="r")
    claim.committed = True
    await keys.release_lease(claim)
    assert (await keys.get("a")).receipt == "r"


async def test_a_changed_record_keeps_its_expiry(store):
    """Changes of members do not extend it."""
    keys = Keys(store, "paid", Paid, expires_in=600, lease=60.0)
    await keys.complete(await keys_in(store).claim("a", "f"))
    before = (await store.table("paid").get("a")).expires_in
    await keys.change("a", receipt="r")
    assert (await store.table("paid").get("a")).expires_in < before + 1.0
