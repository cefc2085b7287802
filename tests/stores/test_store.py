"""The store as a whole: transactions, closing, errors, lazy imports."""

from __future__ import annotations

import asyncio
import copy
import pickle
import subprocess
import sys

import pytest

from amends import stores
from amends.stores import (
    ConflictError,
    LeaseLostError,
    StoreClosedError,
    StoreUnavailableError,
    TrimmedError,
    UnsupportedError,
)


async def test_a_transaction_commits_all_or_nothing(store):
    if not store.traits.transactions:
        with pytest.raises(UnsupportedError):
            await store.transaction(lambda tx: None)
        return

    def work(tx):
        tx.table("t").create("k", b"v")
        tx.queue("q").put(b"message", key="a")
        return tx.log("l").append(b"entry")

    assert await store.transaction(work) == 1
    with pytest.raises(ConflictError):
        await store.transaction(
            lambda tx: (tx.log("l").append(b"lost"), tx.queue("q").put(b"lost"), work(tx))
        )
    assert [e.value for e in await store.log("l").read()] == [b"entry"]
    assert (await store.queue("q").size()).ready == 1

    def fails(tx):
        assert tx.table("t").get("k").value == b"v"
        tx.table("t").put("k", b"changed")
        tx.table("t").put("new", b"x")
        tx.table("t").delete("k")
        raise RuntimeError("mine")

    with pytest.raises(RuntimeError):
        await store.transaction(fails)
    assert (await store.table("t").get("k")).value == b"v"
    assert await store.table("t").get("new") is None


async def test_transactions_beside_other_writes(store):
    if not store.traits.transactions:
        return

    async def move(i):
        def work(tx):
            row = tx.table("t").get("n")
            tx.table("t").put("n", b"%d" % (int(row.value if row else 0) + 1))
            tx.log("l").append(b"%d" % i)
            if i % 3 == 0:
                raise RuntimeError("not this one")

        try:
            await store.transaction(work)
        except RuntimeError:
            return 0
        return 1

    done = await asyncio.gather(
        *(move(i) for i in range(60)), *(store.log("l").append(b"plain") for i in range(60))
    )
    assert sum(done[:60]) == 40
    assert (await store.table("t").get("n")).value == b"40"
    assert (await store.log("l").bounds()).last == 100


async def test_a_message_ends_together_with_what_its_work_changed(store):
    if not store.traits.transactions:
        return
    queue = store.queue("q", lease=30, max_attempts=5)
    for key in ("done", "back", "dead"):
        await queue.put(key.encode(), key=key)
    leases = [await queue.take() for _ in range(3)]
    end = {"done": "done", "back": "give_back", "dead": "dead_letter"}

    def finish(tx, *, fails):
        for lease in leases:
            more = ("no use",) if lease.key == "dead" else ()
            getattr(tx, end[lease.key])(lease, *more)
            tx.table("results").put(lease.key, lease.value, revision=0)
        assert tx.log("l").bounds().last == 0
        assert tx.log("l").append(b"all") == 1
        assert tx.log("l").bounds().last == 1
        # The key is free again, within the transaction too.
        assert tx.queue("q").put(b"new", key="done")
        if fails:
            raise RuntimeError("mine")

    for _ in range(2):
        with pytest.raises(RuntimeError):
            await store.transaction(lambda tx: finish(tx, fails=True))
        assert (await queue.size()).leased == 3
        assert await queue.take() is None
        assert await queue.dead() == []
        assert not await queue.put(b"other", key="done")
    for lease in leases:
        await lease.extend()
        await store.transaction(lambda tx, lease=lease: tx.check_lease(lease))
    await store.transaction(lambda tx: finish(tx, fails=False))
    size = await queue.size()
    assert (size.ready, size.leased, size.dead) == (2, 0, 1)
    assert (await queue.dead())[0].reason == "no use"
    assert sorted([(await queue.take()).value for _ in range(2)]) == [b"back", b"new"]
    # Fenced: the messages are no longer held by these leases, and the rest of the transaction is rolled back too.
    for lease in leases:
        for end in ("done", "check_lease"):
            with pytest.raises(LeaseLostError):
                await store.transaction(
                    lambda tx, lease=lease, end=end: (tx.log("l").append(b"no"), getattr(tx, end)(lease))
                )
    assert (await store.log("l").bounds()).last == 1


async def test_a_lease_of_another_store_is_rejected(store, tmp_path):
    if not store.traits.transactions:
        return
    await store.queue("q").put(b"mine")
    for url in ("memory:", f"sqlite:///{tmp_path}/elsewhere.db"):
        async with await stores.open(url) as elsewhere:
            await elsewhere.queue("q").put(b"not mine")
            lease = await elsewhere.queue("q").take()
            with pytest.raises(ValueError):
                await store.transaction(lambda tx, lease=lease: tx.done(lease))
            await lease.done()
    assert (await store.queue("q").size()).ready == 1


async def test_a_closed_store_raises(url):
    store = await stores.open(url)
    log, table, queue = store.log("l"), store.table("t"), store.queue("q")
    await log.append(b"x")
    await store.close()
    await store.close()
    for use in (
        lambda: log.append(b"y"),
        lambda: log.read(),
        lambda: table.get("k"),
        lambda: table.put("k", b""),
        lambda: queue.put(b""),
        lambda: queue.take(),
        lambda: store.names(),
    ):
        with pytest.raises(StoreClosedError):
            await use()


async def test_data_is_there_when_opened_again(url, backend):
    async with await stores.open(url) as store:
        await store.log("l").append(b"x", dedupe="d")
        await store.table("t").put("k", b"v")
        await store.queue("q").put(b"w")
    async with await stores.open(url) as store:
        assert await store.log("l").append(b"x", dedupe="d") == 1
        assert (await store.table("t").get("k")).value == b"v"
        assert (await store.queue("q").take(wait=5)).value == b"w"
        assert await store.names() == {"logs": ["l"], "tables": ["t"], "queues": ["q"]}
        assert await store.check() == []


async def test_names_lists_all_names(store):
    for name in ("b", "a", "c"):
        await store.log(name).append(b"")
        await store.table(name).put("k", b"")
        await store.queue(name).put(b"")
    assert await store.names() == {
        "logs": ["a", "b", "c"],
        "tables": ["a", "b", "c"],
        "queues": ["a", "b", "c"],
    }


async def test_follow_ends_when_the_store_is_closed(url):
    store = await stores.open(url)
    await store.log("l").append(b"x")

    async def follow():
        async for _ in store.log("l").follow():
            pass

    following = asyncio.ensure_future(follow())
    taking = asyncio.ensure_future(store.queue("q").take(wait=None))
    await asyncio.sleep(0.1)
    await store.close()
    for waiting in (following, taking):
        with pytest.raises(StoreClosedError):
            await asyncio.wait_for(waiting, 100)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "nothing",
        "mysql://x",
        "postgres:x",
        "postgres://h/d?pooled=perhaps",
        "sqlite:",
        "sqlite://x",
        "sqlite:///",
        "nats://",
        "nats://h/a.b",
        "sqlite:///x?synchronus=full",
        "memory:?x=1",
        "sqlite:///x?synchronous=off",
        "nats://h/n?replicas=two",
        "sqlite:///x?busy_timeout=soon",
    ],
)
async def test_invalid_urls(url):
    with pytest.raises(ValueError):
        await stores.open(url)


async def test_stores_that_do_not_exist(tmp_path):
    with pytest.raises(StoreUnavailableError):
        await stores.open(f"sqlite:///{tmp_path}/no/such/folder/x.db")
    with pytest.raises(StoreUnavailableError) as caught:
        await stores.open("nats://127.0.0.1:1/x?timeout=0.5")
    assert "127.0.0.1:1" in str(caught.value)


async def test_opening_never_takes_longer_than_the_timeout():
    """Also if the timeout is in the same turn of the event loop in which a connection is refused."""
    opening = [
        asyncio.create_task(stores.open(f"nats://127.0.0.1:1/x?timeout={0.3 + each / 1500:.4f}"))
        for each in range(300)
    ]
    done, late = await asyncio.wait(opening, timeout=60)
    assert not late
    assert {type(each.exception()) for each in done} == {StoreUnavailableError}


async def test_passwords_are_not_shown():
    with pytest.raises(StoreUnavailableError) as caught:
        await stores.open("nats://user:secret@127.0.0.1:1/x?timeout=0.3")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "error",
    [
        ConflictError("t", 3, 4, "k"),
        LeaseLostError("q", "7", 2),
        TrimmedError("l", 1, 5),
        StoreUnavailableError("no answer", "maybe"),
        StoreClosedError("memory:"),
        stores.ValueTooLargeError(5, 4),
        stores.StoreFullError("full"),
    ],
)
def test_errors_can_be_pickled_and_copied(error):
    for other in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(other) is type(error)
        assert vars(other) == vars(error)
        assert str(other) == str(error)


def test_importing_loads_no_backend():
    code = "import sys, amends.stores; print([m for m in ('nats', 'sqlite3', 'msgspec') if m in sys.modules])"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        == "[]\n"
    )


def test_a_missing_extra_names_its_install_line():
    code = (
        "import sys, asyncio; sys.modules['nats'] = None\n"
        "from amends import stores\n"
        "try: asyncio.run(stores.open('nats://127.0.0.1:1/x'))\n"
        "except ImportError as error: print(error)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "pip install 'amends[nats]'" in out


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("sqlite:///x?busy_timeout=soon", "busy_timeout must be a number of seconds, 0 or more, not 'soon'"),
        ("sqlite:///x?busy_timeout=nan", "busy_timeout must"),
        ("sqlite:///x?busy_timeout=-1", "busy_timeout must"),
        ("nats://h/n?timeout=0", "timeout must be a number of seconds, more than 0, not '0'"),
        ("nats://h/n?dedupe_window=inf", "dedupe_window must"),
        ("nats://h/n?replicas=two", "replicas must be a number from 1 to 5, not 'two'"),
        ("nats://h/n?storage=tape", "storage must be file or memory, not 'tape'"),
    ],
)
async def test_an_invalid_option_is_named(url, problem):
    with pytest.raises(ValueError, match=problem):
        await stores.open(url)


@pytest.mark.parametrize("url", [None, 5, b"memory:"])
async def test_a_url_that_is_no_text(url):
    with pytest.raises(TypeError, match="a store URL must be a string"):
        await stores.open(url)


@pytest.mark.parametrize("seconds", [10**400, None, "soon", float("nan"), -1])
async def test_a_time_that_is_none(store, seconds):
    """ValueError with the argument's name."""
    with pytest.raises(ValueError, match="delay must be a finite number of seconds"):
        await store.queue("q").put(b"x", delay=seconds)


async def test_an_async_function_is_no_transaction(store):
    """It would be committed without its changes."""
    if not store.traits.transactions:
        return

    async def work(tx):
        tx.table("t").put("k", b"v")

    with pytest.raises(TypeError, match="not async"):
        await store.transaction(work)
    await store.table("t").put("k", b"v")
