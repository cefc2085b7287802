"""Tests of sharing what is known about a service between processes."""

import json
import sqlite3
import subprocess
import sys
import time
from contextlib import closing

import pytest

from amends import Fault, FaultError, Upstream, recover
from amends.errors import ServiceUnavailableError
from amends.recovery import Shared
from amends.recovery.async_library import ThreadWaiter
from amends.recovery.clock import CLOCK
from amends.recovery.evidence import Traffic
from amends.recovery.schedule import Hold
from amends.recovery.sharing import Sharing
from amends.testing import Script

from .test_upstream import READ, trip


class Table:
    """A `Shared` on a table of SQLite."""

    def __init__(self, path):
        self.path = str(path)
        with self.connect() as db:
            db.execute("create table if not exists records (name text primary key, record text, leased real)")

    def connect(self):
        """Return a connection that a `with` statement closes."""
        return closing(sqlite3.connect(self.path, isolation_level=None))

    def read(self, name):
        """Return the record."""
        with self.connect() as db:
            row = db.execute("select record from records where name = ?", (name,)).fetchone()
        return None if row is None or row[0] is None else json.loads(row[0])

    def write(self, name, record):
        """Replace the record."""
        text = None if record is None else json.dumps(record)
        with self.connect() as db:
            db.execute(
                "insert into records values (?, ?, 0) on conflict (name) do update set record = excluded.record",
                (name, text),
            )

    def lease(self, name, seconds):
        """Take the lease if it is free."""
        now = time.time()
        with self.connect() as db:
            db.execute("insert or ignore into records values (?, null, 0)", (name,))
            changed = db.execute(
                "update records set leased = ? where name = ? and leased < ?", (now + seconds, name, now)
            )
            return changed.rowcount == 1


class Away:
    """A `Shared` whose store cannot be reached."""

    def _fail(self, *_):
        raise ConnectionError

    read = write = lease = _fail


CHILD = """
import sys
from amends import Upstream
from tests.recovery.test_sharing import Table
from tests.recovery.test_upstream import trip
import time
from amends.core.fault import Fault
upstream = Upstream("shop", shared=Table(sys.argv[1]))
for _ in range(8):
    upstream.failed(Fault(code="TIMEOUT"), time.monotonic(), time.monotonic() - 20, 1.0)
"""


def test_another_process_learns_of_an_outage(tmp_path):
    """It waits, although it has not made a call; when the first process removes the record, it sends again."""
    path = tmp_path / "shared.db"
    table: Shared = Table(path)
    subprocess.run([sys.executable, "-c", CHILD, str(path)], check=True, timeout=60)
    assert table.read("shop")["resume_at"] > time.time() - 5
    upstream = Upstream("shop", shared=table)
    now = time.monotonic()
    assert upstream.look(ThreadWaiter(), now) > now
    assert upstream.snapshot().state == "shut"
    table.write("shop", None)
    upstream.look(ThreadWaiter(), now + 2)
    assert upstream.snapshot().state != "shut"


def test_one_process_probes(tmp_path, clock):
    """The one that has the lease. The other one learns from it that the service is available again."""
    one, two = (Upstream("shop", shared=Table(tmp_path / "s.db")) for _ in range(2))
    trip(one, clock.now())
    trip(two, clock.now())
    clock.advance(10)
    late = clock.now()
    first, second = ThreadWaiter(), ThreadWaiter()
    assert one.look(first, late) == 0.0
    assert two.look(second, late) > late
    one.succeeded(late + 0.1, late)
    clock.advance(2)
    assert two.look(second, clock.now()) == 0.0


@pytest.mark.parametrize("shared", [Away(), None])
def test_without_the_store_recovery_works_alone(shared, clock):
    """Nothing but the sharing changes."""
    upstream = Upstream("shop", shared=shared)
    script = Script(ServiceUnavailableError(), ServiceUnavailableError(), "ok")
    assert recover(script, upstream=upstream, operation=READ) == "ok"
    with pytest.raises(FaultError):
        recover(Script(Fault(code="SERVICE_UNAVAILABLE"), repeat=True), upstream=upstream, operation=READ)
    assert recover(Script("ok"), upstream=upstream, operation=READ) == "ok"
    upstream.reset()


@pytest.mark.parametrize(
    "record",
    [
        {},
        {"at": "x"},
        {"at": float("nan"), "resume_at": 1, "until": 0},
        {"at": 1, "resume_at": 10**400, "until": 0},
    ],
)
def test_a_wrong_record_is_ignored(record, clock):
    """So is one that is older than a minute."""

    class Wrong(Away):
        def read(self, name):
            return record

    assert recover(Script("ok"), upstream=Upstream("shop", shared=Wrong())) == "ok"


def test_a_record_that_this_process_removed_is_no_news(clock):
    """After `clear` a missing record says nothing new; after another process removed it, the service is back."""

    class Memory:
        record = None

        def read(self, name):
            return self.record

        def write(self, name, record):
            self.record = record

        def lease(self, name, seconds):
            return True

    memory = Memory()
    sharing, other = Sharing(memory, "a"), Sharing(memory, "a")
    hold = Upstream("a")._controller.hold
    sharing.write(hold, clock.now())
    never = float("-inf")
    assert other.read(clock.now(), never) is not None
    sharing.clear()
    clock.advance(10.0)
    assert sharing.read(clock.now(), never) is None
    assert other.read(clock.now(), never) == (clock.now(), 0.0, False)
    clock.advance(10.0)
    assert other.read(clock.now(), never) is None


class Kept(Away):
    """A `Shared` that keeps its record."""

    record = None

    def read(self, name):
        return self.record

    def write(self, name, record):
        self.record = record


def test_the_time_that_a_server_named_is_shared(clock):
    """Another process reads the times of the record on its own clock; without a named time it reads none."""
    for until, expected in ((clock.now() + 30.0, clock.now() + 30.0), (0.0, 0.0)):
        shared = Kept()
        hold = Hold(Traffic())
        hold.resume_at, hold.until = clock.now() + 5.0, until
        Sharing(shared, "shop").write(hold, clock.now())
        found = Sharing(shared, "shop").read(clock.now(), -1000.0)
        assert found == (pytest.approx(clock.now() + 5.0), pytest.approx(expected), True)


def test_the_removal_of_a_record_is_news_once(clock):
    """The service is available: a call may be sent now, and no time is named."""
    shared = Kept()
    sharing = Sharing(shared, "shop")
    shared.record = {"at": CLOCK.wall(), "resume_at": CLOCK.wall() + 5.0, "until": 0.0}
    assert sharing.read(clock.now(), -1000.0) is not None
    shared.record = None
    clock.advance(1.0)
    assert sharing.read(clock.now(), -1000.0) == (clock.now(), 0.0, False)
    clock.advance(1.0)
    assert sharing.read(clock.now(), -1000.0) is None


@pytest.mark.parametrize(("age", "seen"), [(59.9, True), (60.0, False), (-0.1, False)])
def test_a_record_counts_for_a_minute(age, seen, clock):
    """An older one may be of a process that died. One from the future is wrong."""
    shared = Kept()
    shared.record = {"at": CLOCK.wall() - age, "resume_at": CLOCK.wall() + 5.0, "until": 0.0}
    assert (Sharing(shared, "shop").read(clock.now(), -1000.0) is not None) is seen


@pytest.mark.parametrize(("answered", "reads"), [(4.9, False), (5.0, True)])
def test_a_process_with_a_fresh_answer_does_not_read(answered, reads, clock):
    """It knows better."""
    shared = Kept()
    shared.record = {"at": CLOCK.wall(), "resume_at": CLOCK.wall() + 5.0, "until": 0.0}
    assert (Sharing(shared, "shop").read(clock.now(), clock.now() - answered) is not None) is reads


def test_the_lease_of_a_probe_lasts_five_seconds(clock):
    """Then another process may probe."""
    asked = []

    class Leasing(Away):
        def lease(self, name, seconds):
            asked.append((name, seconds))
            return False

    assert Sharing(Leasing(), "shop").may_probe() is False
    assert asked == [("shop", 5.0)]


def test_a_time_that_another_process_was_given_holds_calls_back(clock):
    """An operation that cannot wait so long is refused with that time."""
    shared = Kept()
    shared.record = {"at": CLOCK.wall(), "resume_at": CLOCK.wall() + 5.0, "until": CLOCK.wall() + 500.0}
    upstream = Upstream("shop", shared=shared)
    assert upstream.look(ThreadWaiter(), clock.now()) > clock.now()
    assert upstream.held_for(clock.now()) == pytest.approx(500.0)
    assert upstream.refuses(clock.now(), 300.0)


class Notes:
    """A `Shared` in memory that counts its reads."""

    def __init__(self):
        self.record, self.reads, self.leases = None, 0, []

    def read(self, name):
        self.reads += 1
        return self.record

    def write(self, name, record):
        self.record = record

    def lease(self, name, seconds):
        self.leases.append((name, seconds))
        return True


@pytest.fixture
def notes(clock):
    return Notes()


def record_at(clock, age=0.0, resume=10.0, until=0.0):
    at = CLOCK.wall() - age
    return {"at": at, "resume_at": at + resume, "until": at + until if until else 0.0}


def test_when_a_record_is_read(clock, notes):
    """At most once a second, and not if the last answer is younger than five seconds."""
    sharing, now = Sharing(notes, "shop"), clock.now()
    assert sharing.read(now, now - 4.9) is None
    assert notes.reads == 0
    assert sharing.read(now, now - 5.0) is None
    assert notes.reads == 1
    sharing.read(now + 0.9, float("-inf"))
    assert notes.reads == 1
    sharing.read(now + 1.0, float("-inf"))
    assert notes.reads == 2
    assert sharing.interval == 1.0


def test_what_a_record_says(clock, notes):
    """Its times on this process's clock, once; records of a minute ago, of the future or without numbers say nothing."""
    now = clock.now()
    notes.record = record_at(clock, age=2.0, resume=10.0, until=30.0)
    sharing = Sharing(notes, "shop")
    found = sharing.read(now, float("-inf"))
    assert found == (pytest.approx(now + 8.0), pytest.approx(now + 28.0), True)
    assert sharing.read(now + 2.0, float("-inf")) is None
    notes.record = record_at(clock, age=1.0)
    assert sharing.read(now + 4.0, float("-inf"))[1] == 0.0
    for record in (
        record_at(clock, age=60.0),
        record_at(clock, age=-1.0),
        {**record_at(clock), "until": float("nan")},
        {**record_at(clock), "resume_at": float("inf")},
        {"at": CLOCK.wall()},
        {**record_at(clock), "until": "x"},
        7,
    ):
        notes.record = record
        assert Sharing(notes, "shop").read(now, float("-inf")) is None
    notes.record = record_at(clock, age=59.0)
    assert Sharing(notes, "shop").read(now, float("-inf")) is not None


def test_a_record_that_is_gone(clock, notes):
    """The service is available again, if there was a record; that is said once."""
    sharing, now = Sharing(notes, "shop"), clock.now()
    assert sharing.read(now, float("-inf")) is None
    notes.record = record_at(clock)
    assert sharing.read(now + 1.0, float("-inf"))[2] is True
    notes.record = None
    assert sharing.read(now + 2.0, float("-inf")) == (now + 2.0, 0.0, False)
    assert sharing.read(now + 3.0, float("-inf")) is None


def test_what_is_written(clock, notes):
    """Times since the epoch; a process does not learn from its own record. A probe is leased for five seconds."""
    sharing, now, hold = Sharing(notes, "shop"), clock.now(), Hold(Traffic())
    hold.resume_at = now + 5.0
    sharing.write(hold, now)
    wall = CLOCK.wall()
    assert notes.record == {"at": wall, "resume_at": pytest.approx(wall + 5.0), "until": 0.0}
    assert sharing.read(now, float("-inf")) is None
    hold.until = now + 9.0
    sharing.write(hold, now)
    assert notes.record["until"] == pytest.approx(wall + 9.0)
    assert sharing.may_probe()
    assert notes.leases == [("shop", 5.0)]
    sharing.clear()
    assert notes.record is None
    assert sharing.read(now + 1.0, float("-inf")) is None
