"""Journals: the state equals the fold of the log, whatever is interrupted, fails or is lost."""

import asyncio
import itertools
import json

import pytest

from amends import stores
from amends.durable import journal
from amends.durable.index import IndexRow
from amends.durable.journal import Fenced, ImpossibleRecord, Journal
from amends.stores import DamagedStoreError, StoreUnavailableError
from tests.durable.faulty import HOWS, Faulty


class Sums:
    """A log of numbers: the state is their list. "c5" may be appended by any process, "x" fits no state."""

    def new(self):
        return ()

    def encode(self, records):
        return json.dumps(list(records)).encode()

    def decode(self, value):
        try:
            return json.loads(value)
        except ValueError as error:
            raise DamagedStoreError("unknown") from error

    def fold(self, state, records):
        if "x" in records:
            raise ImpossibleRecord
        return (*state, *records)

    table = "sums"

    def row(self, state, table, seq):
        return IndexRow(table, "n", json.dumps({"seq": seq, "state": state}).encode(), seq)

    def is_command(self, record):
        return str(record).startswith("c")

    def valid_until(self, record):
        return int(record[1:]) if str(record).startswith("r") else None


class Patient(Journal):
    """A journal that repeats writes, and closes its log with the record "end"."""

    tries = 5

    def time_left(self):
        self.tries -= 1
        return self.tries

    def lease_end(self, record):
        return 0.0 if record == "end" else None


KIND = Sums()


async def opened(store, cls=Journal):
    found = await journal.read(store, "l/n", KIND)
    return cls(store, "l/n", KIND, found)


async def started(store, cls=Journal):
    await store.log("l/n").append(KIND.encode(["first"]), last=0)
    return await opened(store, cls)


async def row(store):
    found = await store.table("sums").get("n")
    return None if found is None else tuple(json.loads(found.value)["state"])


async def test_writing(store):
    """The entry and the row are written; a command of another process comes first; another writer is fenced."""
    one, two = await started(store), await opened(store)
    seen = []
    one.on_command = lambda: seen.append(one.state)
    assert await one.write(["a"])
    assert not await one.write([])
    with pytest.raises(Fenced):
        await two.write(["b"])
    await store.log("l/n").append(KIND.encode(["c1"]))
    await one.write(["d"])
    assert one.state == ("first", "a", "c1", "d") == (await opened(store)).state == await row(store)
    assert seen == [("first", "a", "c1")]
    await store.log("l/n").append(KIND.encode(["c2"]))
    assert not await one.write(["e"], if_unchanged=True)
    assert one.state[-1] == "c2"
    with pytest.raises(ImpossibleRecord):
        await one.write(["x"])
    assert (await opened(store)).state == one.state
    assert await journal.read(store, "l/none", KIND) is None


async def test_a_closed_journal_writes_nothing(store):
    """A late write is fenced, or left out on request."""
    one = await started(store, Patient)
    await one.write(["end"])
    assert not await one.write(["late"], if_open=True)
    with pytest.raises(Fenced):
        await one.write(["late"])
    with pytest.raises(Fenced):
        await one.commit(lambda tx: None, lambda _: "late")
    await one.catch_up()
    assert (await opened(store)).state == ("first", "end")


async def test_a_transaction_of_the_user():
    """The work and its record are committed together; a conflict of the user's own write is not taken for the log's."""
    async with await stores.open("memory:") as store:
        one = await started(store)
        await store.log("l/n").append(KIND.encode(["c1"]))
        assert await one.commit(lambda tx: bool(tx.table("t").put("k", b"v")), str) is True
        assert one.state == ("first", "c1", "True") == (await opened(store)).state
        with pytest.raises(stores.ConflictError):
            await one.commit(lambda tx: tx.table("t").create("k", b"v"), str)
        with pytest.raises(stores.ConflictError):
            await one.commit(lambda tx: tx.log("log 'l/n'").append(b"", last=7), str)
        assert one.state == ("first", "c1", "True")


async def test_entries_that_do_not_fit(store, caplog):
    """The entries before them count; a record that says so is the continuation, and what lies between is skipped."""
    one = await started(store)
    await one.write(["a"])
    for records in (["x"], ["b"], ["r1", "no"], ["x", "r2"]):
        await store.log("l/n").append(KIND.encode(records))
    found = await journal.read(store, "l/n", KIND)
    assert found == (("first", "a"), 6, 2)
    assert "up to entry 2" in caplog.text
    assert await journal.read_records(store, "l/n", KIND) == ["first", "a"]
    again = await opened(store)
    await again.write([f"r{again.valid}", "go on"])
    await again.write(["end"])
    assert (await opened(store)).state == ("first", "a", "r2", "go on", "end") == again.state
    with pytest.raises(Fenced):
        await one.write(["b"])
    await store.log("l/n").append(b"\xff")
    with pytest.raises(DamagedStoreError):
        await journal.read(store, "l/n", KIND)
    await store.log("l/m").append(KIND.encode(["x"]))
    with pytest.raises(DamagedStoreError):
        await journal.read(store, "l/m", KIND)


@pytest.mark.parametrize("again", [False, True])
async def test_a_log_that_was_deleted(store, again):
    """Its writer is fenced, also if a new log of the same name has as many entries."""
    queue = store.queue("q", lease=0.05)
    await queue.put(b"", key="n")
    lease = await queue.take()
    await started(store)
    one = await opened(store, leased(lease))
    await one.write(["a"])
    other = await queue.take(wait=20)
    await other.done()
    await store.log("l/n").drop()
    if again:
        new = await started(store)
        await new.write(["b"])
    for write in (one.write(["c"]), one.write(["c"], if_open=True)):
        with pytest.raises(Fenced):
            await asyncio.wait_for(write, 20)
    if store.traits.transactions:
        with pytest.raises(Fenced):
            await asyncio.wait_for(one.commit(lambda tx: tx.table("t").put("k", b"v"), str), 20)
        assert await store.table("t").get("k") is None
    assert (await journal.read(store, "l/n", KIND)) == ((("first", "b"), 2, 2) if again else None)


async def test_a_log_that_was_deleted_under_a_writer_without_a_lease(store):
    """The write ends, instead of being repeated without end."""
    one = await started(store)
    await one.write(["a"])
    await store.log("l/n").drop()
    with pytest.raises(Fenced):
        await asyncio.wait_for(one.write(["c"]), 20)


def leased(lease):
    return lambda *given: Journal(*given, lease)


async def script(one, written):
    """Write, use a transaction, write again; note what was acknowledged."""
    for name in ("a", "b"):
        await one.write([name])
        written.append(name)
    if one._store.traits.transactions:
        await one.commit(lambda tx: tx.table("effects").put("once", b"x"), lambda _: "effect")
        written.append("effect")
    await one.write(["end"])
    written.append("end")


@pytest.mark.parametrize("cls", [Journal, Patient])
@pytest.mark.parametrize("transactions", [True, False])
async def test_every_interruption_and_every_failure(cls, transactions):
    """After each of them the state equals the fold of the log, nothing acknowledged is missing, nothing is there twice."""
    tried = 0
    for how, again in itertools.product(HOWS, (False, True)):
        for point in range(40):
            async with await stores.open("memory:") as memory:
                await started(memory)
                faults = Faulty(memory, transactions)
                one, written = await opened(faults, cls), []
                faults.count, faults.point, faults.how = 0, point, how
                faults.caller = asyncio.ensure_future(script(one, written))
                await asyncio.gather(faults.caller, return_exceptions=True)
                if again:
                    # A caller that ignores the failure goes on writing.
                    await asyncio.gather(one.write(["more"], if_open=True), return_exceptions=True)
                if faults.count <= point:
                    break
                tried += 1
                await one.settle()
                truth = (await journal.read(memory, "l/n", KIND)).state
                assert one.state == truth, (how, point)
                assert len(set(truth)) == len(truth), (how, point)
                assert set(written) <= set(truth), (how, point)
                effect = await memory.table("effects").get("once")
                assert (effect is not None) == ("effect" in truth), (how, point)
                if transactions:
                    assert await row(memory) in {truth, truth[:-1], None}
                if how.startswith("fails") and cls is Patient and transactions and "effect" in written:
                    assert written[-1] == "end"
                # Another writer continues from the log.
                late = await opened(memory)
                if not one.closed:
                    await late.write(["taken over"])
                    with pytest.raises(Fenced):
                        await one.write(["stale"])
    assert tried > 12


class Clockwork:
    """asyncio for one module, with a clock of its own: a sleep takes exactly its time, and nothing else takes any."""

    def __init__(self):
        self.now = 1000.0

    def __getattr__(self, name):
        return getattr(asyncio, name)

    def get_running_loop(self):
        return self

    def time(self):
        return self.now

    async def sleep(self, seconds):
        self.now += seconds


async def test_a_write_is_repeated_until_the_time_is_over(store, monkeypatch):
    """At the moment at which the lease ends by the first look at it, the writer gives up, though it was extended since."""
    writer, clock, tries = await started(store, Patient), Clockwork(), []

    async def unanswered(self, store):
        tries.append(clock.now)
        raise StoreUnavailableError("no", "no")

    monkeypatch.setattr(journal, "asyncio", clock)
    monkeypatch.setattr(journal, "_PAUSE", 0.5)
    monkeypatch.setattr(journal.Batch, "commit", unanswered)
    monkeypatch.setattr(Patient, "time_left", lambda self: 1.0)
    with pytest.raises(StoreUnavailableError):
        await writer.write(["a"])
    assert tries == [1000.0, 1000.5, 1001.0]


async def test_all_pages_of_a_log_are_read(store, monkeypatch):
    """Also if the last page is full."""
    monkeypatch.setattr(journal, "_PAGE", 2)
    for number in range(4):
        await store.log("pages").append(str(number).encode())
    assert [entry.seq for entry in await journal.read_entries(store, "pages")] == [1, 2, 3, 4]
    assert [entry.seq for entry in await journal.read_entries(store, "pages", 4)] == [4]


async def test_what_a_journal_begins_with(store):
    """The state that was read; without a lease a write that is not answered is not repeated."""
    one = await started(store)
    assert (one.state, one.last, one.valid, one.closed, one.on_command) == (("first",), 1, 1, False, None)
    assert one.time_left() == 0.0
    await one.write(["a"])
    assert (one.last, one.valid, one.closed) == (2, 2, False)


async def test_the_row_says_up_to_which_entry_it_is_derived(store):
    """After each write that of the entry; rows are replaced, also without transactions."""
    one = await started(store)
    for number in range(2, 6):
        await one.write([str(number)])
        found = json.loads((await store.table("sums").get("n")).value)
        assert (found["seq"], len(found["state"])) == (number, number)


async def test_every_page_is_read_from_its_start(store):
    """Entries before the first wanted one are left out."""
    log = store.log("l/n")
    for number in range(5):
        await log.append(KIND.encode([number]))
    assert [entry.seq for entry in await journal.read_entries(store, "l/n")] == [1, 2, 3, 4, 5]
    assert [entry.seq for entry in await journal.read_entries(store, "l/n", 4)] == [4, 5]
    assert [entry.seq for entry in await journal.read_entries(store, "l/n", 6)] == []
    assert await journal.read_records(store, "l/n", KIND) == [0, 1, 2, 3, 4]


async def test_commands_are_read_without_a_write(store):
    """Once; the callback is called only if there are any."""
    one, seen = await started(store), []
    one.on_command = lambda: seen.append(one.state)
    await one.catch_up()
    assert seen == []
    await store.log("l/n").append(KIND.encode(["c1"]))
    await one.catch_up()
    await one.settle()
    assert seen == [("first", "c1")]
    assert (one.last, one.valid) == (2, 2)
    await store.log("l/n").append(KIND.encode(["c2", "other"]))
    with pytest.raises(Fenced):
        await one.catch_up()
    assert one.state == ("first", "c1")


async def test_a_write_that_needs_an_unchanged_log(store):
    """It is written if nothing came in between."""
    one = await started(store)
    assert await one.write(["a"], if_unchanged=True)
    assert await one.write(["b"], if_open=True)
    assert one.state == ("first", "a", "b")


async def test_a_write_whose_caller_was_cancelled_is_completed(store, caplog):
    """`settle` waits for it; if it fails, asyncio does not report an exception that was never retrieved."""
    import gc

    one = await started(store)
    task = asyncio.ensure_future(one.write(["a"]))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await one.settle()
    assert one.state == ("first", "a")
    task = asyncio.ensure_future(one.write(["x"]))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await one.settle()
    assert not one._writing
    del task
    gc.collect()
    assert caplog.records == []


async def test_an_entry_of_another_writer_with_the_same_content_is_not_mine(store):
    """What this writer appended before and knows of is no longer looked for."""
    one = await started(store)
    await one.write(["a"])
    await store.log("l/n").append(KIND.encode(["a"]))
    with pytest.raises(Fenced):
        await one.write(["b"])
    assert one.state == ("first", "a")


async def test_what_is_logged_of_entries_that_do_not_fit(store, caplog):
    """The name of the log, the last entry that counts, and how many others there are."""
    await started(store)
    for record in ("x", "y", "z"):
        await store.log("l/n").append(KIND.encode([record]))
    found = await journal.read(store, "l/n", KIND)
    assert (found.state, found.last, found.valid) == (("first",), 4, 1)
    (record,) = caplog.records
    assert record.levelname == "ERROR"
    assert record.getMessage() == "log 'l/n' is read up to entry 1: the other 3 entries do not fit"
