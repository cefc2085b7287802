"""Workers: rows that expire, and what a worker does that could not renew its row in time."""

import asyncio
import logging

import msgspec

from amends import stores
from amends.durable.workers import Workers
from amends.stores import StoreClosedError, StoreUnavailableError, Traits
from amends.stores.clock import SystemClock
from tests.stores.clocks import SetClock

LOG = logging.getLogger("tests.workers")


class Row(msgspec.Struct):
    offers: list[str]


async def test_rows(store):
    """A row is there until it expires or is withdrawn; other rows are skipped."""
    workers = Workers(store, "w", Row, expires_in=60)
    await workers.announce("one", Row(["a"]))
    await Workers(store, "w", Row, expires_in=0.05).announce("gone", Row([]))
    await store.table("w").put("odd", b"\xff")
    await asyncio.sleep(0.1)
    alive = await workers.alive()
    assert {name: each.row for name, each in alive.items()} == {"one": Row(["a"])}
    assert 0 < alive["one"].expires_in <= 60
    await workers.withdraw("one")
    assert await workers.alive() == {}


async def test_a_lapse(store, caplog):
    """After a renewal that came too late, and only then, the worker checks what was taken from it, for one more expiry."""
    workers, tries, checks = Workers(store, "w", Row, expires_in=0.3), [], []

    async def announce():
        tries.append(1)
        if 2 <= len(tries) <= 5:
            raise StoreUnavailableError("away") if len(tries) % 2 else RuntimeError("odd")
        await workers.announce("one", Row([]))

    async def after_lapse():
        checks.append(len(tries))

    keeping = asyncio.ensure_future(workers.keep_announcing(announce, log=LOG, after_lapse=after_lapse))
    async with asyncio.timeout(20):
        while len(tries) < 12:
            await asyncio.sleep(0.01)
    assert checks[0] == 6
    assert len(checks) < 6
    assert "could not renew its row" in caplog.text
    assert "one" in await workers.alive()
    await store.close()
    async with asyncio.timeout(20):
        await keeping


async def test_rows_of_any_type(store):
    """A row may be a plain object whose members are all of one type, or no object."""
    for kind, row in ((dict[str, Row], {"one": Row(["a"])}), (list[int], [1, 2])):
        workers = Workers(store, "w", kind, expires_in=60)
        await workers.announce("one", row)
        assert (await workers.alive())["one"].row == row


async def test_a_step_of_the_wall_clock_ends_no_worker():
    """Two days forwards or backwards: the worker is alive until its time on the clock since boot is over, and then removed."""
    clock = SetClock()
    async with await stores.open("memory:", clock=clock) as store:
        workers = Workers(store, "w", Row, expires_in=30)
        await workers.announce("one", Row(["a"]))
        for step in (2 * 86_400.0, -5 * 86_400.0):
            clock.now += step
            assert (await workers.alive())["one"].expires_in == 30
        clock.up += 30
        assert await workers.alive() == {}
        assert await store.table("w").get("one") is None


async def test_a_row_that_does_not_expire(store):
    """It has no time left that is known."""
    await store.table("w").put("one", b'{"offers": []}')
    assert (await Workers(store, "w", Row, expires_in=60).alive())["one"].expires_in == 0.0


class Times:
    """The clock of a loop and its sleeps: a test says how long each renewal takes."""

    def __init__(self, monkeypatch, *seconds):
        self.now, self.seconds, self.sleeps = 100.0, list(seconds), []
        monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: self.now)
        monkeypatch.setattr("amends.durable.workers.asyncio.sleep", self.sleep)

    async def sleep(self, seconds):
        self.sleeps.append(round(seconds, 6))
        self.now += seconds

    async def announce(self):
        if not self.seconds:
            raise StoreClosedError("closed")
        took = self.seconds.pop(0)
        if isinstance(took, Exception):
            raise took
        self.now += took


async def test_a_row_is_renewed_three_times_per_expiry(monkeypatch):
    """The time that a renewal takes is subtracted; a slow one is followed by the next at once."""
    workers = Workers(store_without_rows(), "w", Row, expires_in=30.0)
    times = Times(monkeypatch, 0.0, 4.0, 12.0, 0.0)
    await workers.keep_announcing(times.announce, log=LOG)
    assert times.sleeps == [10.0, 6.0, 0.0, 10.0]


async def test_when_a_worker_checks_what_was_taken_from_it(monkeypatch):
    """After a renewal more than an expiry after the one before; then at each renewal for one more expiry."""
    for took, checked in ((30.0, []), (30.5, [140.5, 140.5, 150.5, 160.5]), (5.0, [])):
        workers, checks = Workers(store_without_rows(), "w", Row, expires_in=30.0), []
        with monkeypatch.context() as patch:
            times = Times(patch, 0.0, 0.0, max(0.0, took - 10.0), 0.0, 0.0, 0.0, 0.0, 0.0)

            async def after_lapse(times=times, checks=checks):
                checks.append(times.now)

            await workers.keep_announcing(times.announce, log=LOG, after_lapse=after_lapse)
        assert checks == checked


async def test_what_is_logged_of_a_renewal_that_fails(monkeypatch, caplog):
    """A failing store is a warning, anything else an error with its traceback; both are tried again."""
    workers = Workers(store_without_rows(), "w", Row, expires_in=30.0)
    times = Times(monkeypatch, StoreUnavailableError("away"), KeyError("a bug"), 0.0)
    await workers.keep_announcing(times.announce, log=LOG)
    assert [(each.levelname, bool(each.exc_info)) for each in caplog.records] == [
        ("WARNING", False),
        ("ERROR", True),
    ]
    assert times.sleeps == [10.0, 10.0, 10.0]


def store_without_rows():
    """A store of which only the table is made."""

    class OnlyTables:
        clock = SystemClock()
        traits = Traits("object", False, True, False, True, False)

        def table(self, name):
            return None

    return OnlyTables()
