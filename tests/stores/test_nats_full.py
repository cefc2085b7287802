"""A NATS server whose disk is full: writes raise StoreFullError, nothing acknowledged is lost, and a restart recovers."""

from __future__ import annotations

import os

import pytest

from amends import stores
from amends.stores import StoreFullError
from tests.stores.servers import NatsServer


async def fill(store):
    acked = 0
    with pytest.raises(StoreFullError) as caught:
        for _ in range(1000):
            acked = await store.log("l").append(os.urandom(100_000))
    return acked, caught.value


@pytest.mark.parametrize("limit", ["the server's", "the disk's"])
async def test_a_full_disk_is_reported(small_disk, tmp_path, limit):
    """
    The server stops at its own limit, three quarters of the disk by default, or when a write fails.

    After a failed write it does not answer, so the outcome of that write is not known.
    """
    config = tmp_path / "nats.conf"
    config.write_text("jetstream { max_file_store: 1GB }" if limit == "the disk's" else "")
    server = NatsServer(small_disk / "nats", options=("-c", str(config)))
    server.start()
    try:
        async with await stores.open(f"{server.url}/full?timeout=1") as store:
            await store.table("t").put("k", b"v")
            acked, error = await fill(store)
            assert acked > 10
            assert error.executed == ("maybe" if limit == "the disk's" else "no")
            assert (await store.table("t").get("k")).value == b"v"
            assert (await store.log("l").bounds()).last == acked
        server.stop()
        # An operator makes room: here a larger disk.
        os.system(f"mount -o remount,size=16m {small_disk}")
        server.start()
        async with await stores.open(f"{server.url}/full") as store:
            assert (await store.log("l").bounds()).last == acked
            assert await store.log("l").append(os.urandom(100_000)) == acked + 1
            assert await store.check() == []
    finally:
        server.stop()
