"""Damaged data is an error that says what to do; a part of the data is never returned silently."""

from __future__ import annotations

import sqlite3
import uuid
from contextlib import closing

import pytest

from amends import stores
from amends.stores import DamagedStoreError
from amends.stores.sqlite import store


@pytest.fixture
async def filled(tmp_path):
    """The path of a file with a table of many pages."""
    path = tmp_path / "store.db"
    async with await stores.open(f"sqlite:///{path}") as store:
        await store.transaction(
            lambda tx: [tx.table("t").put(f"{n:05}", bytes([n % 256]) * 500) for n in range(2000)]
        )
        await store.log("l").append(b"x")
        await store.queue("q").put(b"x")
    return path


def damage(path):
    """Overwrite pages in the middle of the file."""
    content = bytearray(path.read_bytes())
    middle = len(content) // 2 // 4096 * 4096
    content[middle : middle + 40_960] = b"\xa5" * 40_960
    path.write_bytes(content)


async def test_a_damaged_page_is_found_on_opening(filled):
    """The message names the file and what to do."""
    damage(filled)
    with pytest.raises(DamagedStoreError, match=r"store\.db is .*restore it from a backup"):
        await stores.open(f"sqlite:///{filled}")


async def test_a_scan_returns_no_part_of_a_damaged_table(filled, monkeypatch):
    """Without the check on opening, the scan that meets the page raises."""
    damage(filled)
    monkeypatch.setattr(store, "quick_problem", lambda _: None)
    async with await stores.open(f"sqlite:///{filled}") as opened:
        with pytest.raises(DamagedStoreError):
            assert len([row async for row in opened.table("t").scan()]) == 2000
        assert await opened.check()


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE amends_rows SET value = 'text' WHERE key = '01999'",
        "UPDATE amends_rows SET key = CAST(x'ff30' AS TEXT) WHERE key = '01999'",
        "UPDATE amends_entries SET value = 17",
        "UPDATE amends_tasks SET value = 'text'",
        "UPDATE amends_tasks SET key = CAST(x'ff' AS TEXT)",
    ],
)
async def test_rows_that_amends_did_not_write(filled, change):
    """A scan, a read or a listing that meets one raises."""
    with closing(sqlite3.connect(filled, isolation_level=None)) as connection:
        connection.execute(change)
    async with await stores.open(f"sqlite:///{filled}") as store:
        with pytest.raises(DamagedStoreError, match="amends store check"):
            assert len([row async for row in store.table("t").scan()]) == 2000
            await store.log("l").read()
            assert [message async for message in store.queue("q").messages()]
        assert "amends did not write" in (await store.check())[0]


async def test_messages_that_amends_did_not_write(nats_server):
    """On NATS: a scan, a get, a read and a listing that meet one raise."""
    async with await stores.open(f"{nats_server.url}/d{uuid.uuid4().hex[:8]}") as store:
        await store.table("t").put("k", b"v")
        await store.log("g/1").append(b"x")
        await store.queue("q").put(b"x")
        streams = store._streams
        for kind, name, suffix in (("table", "t", ".k.other"), ("logs", "g", ".1")):
            subject = streams.subject(kind, name) + suffix
            await streams.connection.publish_acked(subject, b"{", {"Other": "1"})
        claim = f"{streams.subject('state', 'state')}.lease.q.1"
        await streams.connection.publish_acked(claim, b'{"state": "odd"}', {"Other": "1"})
        for read in (
            lambda: anext(row async for row in store.table("t").scan() if row.key == "other"),
            lambda: store.table("t").get("other"),
            lambda: store.log("g/1").read(),
            lambda: store.queue("q").size(),
        ):
            with pytest.raises(DamagedStoreError, match="was not written by amends"):
                await read()
