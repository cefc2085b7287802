"""Workers: rows that expire, and what a worker does that could not renew its row in time."""

import asyncio
import logging

import msgspec

from amends.durable.workers import Workers
from amends.stores import StoreUnavailableError

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
