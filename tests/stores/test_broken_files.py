"""SQLite files on a disk that becomes read-only, that are backed up or locked, and that are deleted during a write."""

import asyncio
import shutil
import sqlite3
import subprocess
import threading
from contextlib import closing
from pathlib import Path

import pytest

from amends import stores
from amends.effects import Effects
from amends.effects.errors import LedgerUnavailableError
from amends.stores import StoreUnavailableError


async def test_a_disk_that_becomes_read_only(small_disk):
    """A write raises and has no effect, also on a ledger; reads go on; afterwards the store works as before."""
    async with await stores.open(f"sqlite:///{small_disk}/s.db") as store, Effects(store) as effects:
        log, paid = store.log("l"), []

        @effects.once(key="order")
        async def pay(order):
            paid.append(order)
            return "receipt"

        await log.append(b"before")
        await pay(1)
        # A disk with files that are open for writing cannot be made read-only, so a new connection gets a view that is.
        view = Path(f"{small_disk}-view")
        view.mkdir()
        subprocess.run(["mount", "--bind", small_disk, view], check=True)
        try:
            subprocess.run(["mount", "-o", "remount,ro,bind", view], check=True)
            with pytest.raises(StoreUnavailableError) as refused:
                async with await stores.open(f"sqlite:///{view}/s.db") as unwritable:
                    await unwritable.log("l").append(b"never")
            assert refused.value.executed == "no"
            ledger = Effects(f"sqlite:///{view}/s.db")

            @ledger.once(key="order", name="pay")
            def unpaid(order):
                paid.append(order)

            with pytest.raises(LedgerUnavailableError):
                unpaid(2)
            ledger.close()
        finally:
            subprocess.run(["umount", "-l", view], check=True)
        assert [entry.value for entry in await log.read()] == [b"before"]
        await log.append(b"after")
        assert paid == [1]


async def test_a_backup_during_writes(tmp_path):
    """A backup of the running store is whole, and delays no writer beyond its bound."""
    url = f"sqlite:///{tmp_path}/s.db"
    async with await stores.open(url) as store:
        log, going = store.log("l"), threading.Event()
        await asyncio.gather(*(log.append(b"x" * 2000) for _ in range(500)))

        def back_up():
            with (
                closing(sqlite3.connect(tmp_path / "s.db")) as source,
                closing(sqlite3.connect(tmp_path / "copy.db")) as copy,
            ):
                going.set()
                source.backup(copy, pages=20, sleep=0.002)

        running = asyncio.ensure_future(asyncio.to_thread(back_up))
        while not going.is_set():
            await asyncio.sleep(0)
        written = 0
        while not running.done() and written < 200:
            await log.append(b"during")
            written += 1
        await running
        last = (await log.bounds()).last
        assert last == 500 + written
    async with await stores.open(f"sqlite:///{tmp_path}/copy.db") as copy:
        assert await copy.check() == []
        kept = await copy.log("l").bounds()
        assert kept.first == 1
        assert 500 <= kept.last <= last


async def test_a_lock_that_is_held_too_long(tmp_path):
    """A write, a scan of a ledger and an effect end within their bound, did not happen, and the next ones work."""
    url = f"sqlite:///{tmp_path}/s.db?busy_timeout=0.2"
    async with await stores.open(url) as store:
        log, paid = store.log("l"), []
        await log.append(b"before")
        effects = Effects(store)
        with closing(sqlite3.connect(tmp_path / "s.db", isolation_level=None)) as other:
            other.execute("BEGIN EXCLUSIVE")
            async with asyncio.timeout(20):
                with pytest.raises(StoreUnavailableError) as locked:
                    await log.append(b"never")
                assert locked.value.executed == "no"

                async def pay(order):
                    paid.append(order)

                with pytest.raises(LedgerUnavailableError):
                    await effects.acall("pay", lambda: pay(1), {}, key="1")
                assert [each async for each in store.table("amends.effects").scan()] == []
            other.execute("ROLLBACK")
        assert await log.append(b"after") == 2
        await effects.acall("pay", lambda: pay(1), {}, key="1")
        assert paid == [1]
        await effects.aclose()


async def test_a_file_that_is_deleted_under_a_ledger(tmp_path):
    """The call is not made: its claim would be lost with the file."""
    async with await stores.open(f"sqlite:///{tmp_path}/s.db") as store:
        effects, paid = Effects(store), []

        async def pay():
            paid.append(1)

        await effects.acall("pay", pay, {}, key="1")
        for path in tmp_path.glob("s.db*"):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        with pytest.raises(LedgerUnavailableError):
            await effects.acall("pay", pay, {}, key="2")
        assert paid == [1]
        await effects.aclose()
