"""
Stores with a codec: what is stored is encoded, what is read is not, and another key reads nothing.

The suites of the stores, the durable core, effects, tasks and agents run on coded stores with `-p tests.stores.coded`.
"""

import asyncio

import pytest
from cryptography.fernet import Fernet, MultiFernet

from amends import stores
from amends.arcp import Runtime, connect
from amends.effects import Effects
from amends.stores import DamagedStoreError, StoreError


class Encrypted:
    def __init__(self, *keys):
        self._fernet = MultiFernet([Fernet(key) for key in keys])

    def encode(self, value):
        return self._fernet.encrypt(value)

    def decode(self, value):
        return self._fernet.decrypt(value)


KEY, OTHER = Fernet.generate_key(), Fernet.generate_key()


async def write_all(store):
    """Write a secret to a log, a table and a queue; in a transaction too, if there are any."""
    await store.log("l").append(b"s3cret log")
    await store.table("t").put("k", b"s3cret row")
    await store.queue("q").put(b"s3cret message", key="k")
    if store.traits.transactions:

        def work(tx):
            tx.log("l").append(b"s3cret too")
            tx.table("t").put("k2", b"s3cret too")
            assert tx.table("t").get("k").value == b"s3cret row"
            tx.queue("q").put(b"s3cret too", key="k2")

        await store.transaction(work)


async def read_all(store):
    values = [entry.value for entry in await store.log("l").read()]
    values += [row.value async for row in store.table("t").scan()]
    values += [message.value async for message in store.queue("q").messages()]
    return sorted(values)


async def test_nothing_is_stored_as_it_is(url):
    """Through the inner store, or another process without the codec, no value is readable."""
    async with await stores.open(url, codec=Encrypted(KEY)) as store:
        await write_all(store)
        found = await read_all(store)
        assert b"s3cret log" in found
        assert len(found) == (6 if store.traits.transactions else 3)
        stored = await read_all(store.inner)
        assert len(stored) == len(found)
        assert not any(b"s3cret" in value for value in stored)
        lease = await store.queue("q").take()
        assert lease.value in found
        await lease.done()


async def test_keys_can_be_changed(url):
    """What was written with the old key is read with both; with the new one alone it is reported as damaged."""
    async with await stores.open(url, codec=Encrypted(KEY)) as store:
        await write_all(store)
        found = await read_all(store)
        async with await stores.open(url, codec=Encrypted(OTHER, KEY)) as both:
            assert await read_all(both) == found
        async with await stores.open(url, codec=Encrypted(OTHER)) as wrong:
            with pytest.raises(DamagedStoreError, match="codec"):
                await wrong.log("l").read()
            with pytest.raises(StoreError):
                await wrong.table("t").get("k")


async def test_a_job_with_steps_leaves_nothing_readable(tmp_path):
    """Input, events, results of steps, signals and the result, in the file itself."""
    url = f"sqlite:///{tmp_path}/jobs.db"
    async with await stores.open(url, codec=Encrypted(KEY)) as store:
        runtime = Runtime(store, tokens={"secret": "alice"})

        @runtime.register_agent("plan", repeatable=True)
        async def plan(given, ctx):
            await ctx.log("s3cret event")
            value = await ctx.step("look", lambda _: "s3cret step", given)
            return [value, await ctx.signal("go", timeout=30)]

        async with runtime, connect(runtime, token="secret") as client:
            handle = await client.submit("plan", "s3cret input", idempotency_key="k")
            await client.signal(handle.job_id, "go", "s3cret signal")
            assert await handle.done == ["s3cret step", "s3cret signal"]
    for file in tmp_path.iterdir():
        if file.is_file():
            assert b"s3cret" not in file.read_bytes(), file


def test_a_ledger_of_plain_functions(tmp_path):
    """The ledger opens the store again on its own thread, with the codec. The user's own transaction is refused."""
    calls = []

    async def opened():
        return await stores.open(f"sqlite:///{tmp_path}/ledger.db", codec=Encrypted(KEY))

    store = asyncio.run(opened())
    effects = Effects(store)

    @effects.once(key="order")
    def pay(order):
        calls.append(order)
        return "s3cret receipt"

    assert [pay(17), pay(17)] == ["s3cret receipt"] * 2
    assert calls == [17]
    effects.close()
    assert not any(b"s3cret" in file.read_bytes() for file in tmp_path.iterdir() if file.is_file())


async def test_a_wrong_codec():
    """The error names the option."""
    with pytest.raises(TypeError, match="codec"):
        await stores.open("memory:", codec=object())
