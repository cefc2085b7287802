"""`amends store info | check | copy`, and copies between backends."""

from __future__ import annotations

import argparse
import json
import sqlite3

import pytest

from amends import stores
from amends.commands import store as command
from amends.errors.cli import ValidationError
from amends.stores import Bounds, StoreError
from amends.stores.copy_store import copy
from tests.stores.clocks import SetClock
from tests.stores.odd import ODD_KEYS


async def furnish(store):
    """Fill a store with logs, rows and messages of every kind, with odd keys too."""
    for i in range(300):
        await store.log("l").append(b"%d" % i, dedupe=f"id {i}" if i % 3 else None)
    await store.log("trimmed").append(b"x")
    await store.log("trimmed").append(b"y")
    await store.log("trimmed").trim(3)
    await store.log("l").trim(41)
    for key in [*ODD_KEYS, ""]:
        await store.table("t").put(key, key.encode())
    await store.table("t").put("expires", b"v", expires_in=500)
    queue = store.queue("q", lease=30)
    await queue.put(b"dead")
    await (await queue.take(wait=5)).dead_letter("für immer")
    await queue.put(b"tried")
    await (await queue.take(wait=5)).give_back(delay=200)
    await queue.put(b"later", delay=4000, key="k/1")
    await queue.put(b"plain")
    await queue.put(b"plain")


async def same(one, two):
    assert await two.names() == await one.names()
    assert await two.log("l").bounds() == Bounds(41, 300)
    assert await two.log("trimmed").bounds() == Bounds(3, 2)
    assert await two.log("l").read(limit=500) == await one.log("l").read(limit=500)
    rows = [{r.key: r.value async for r in store.table("t").scan()} for store in (one, two)]
    assert rows[0] == rows[1]
    assert 400 < (await two.table("t").get("expires")).expires_in <= 500
    messages = [
        sorted([(m.value, m.key, m.attempts) async for m in store.queue("q").messages()])
        for store in (one, two)
    ]
    assert messages[0] == messages[1]
    due = {m.value: m.due_in async for m in two.queue("q").messages()}
    assert 3900 < due[b"later"] <= 4000
    assert 100 < due[b"tried"] <= 200
    (letter,) = await two.queue("q").dead()
    assert (letter.value, letter.attempts, letter.reason) == (b"dead", 1, "für immer")


@pytest.mark.parametrize("target", ["memory", "sqlite", "nats"])
async def test_a_copy_contains_everything(target, tmp_path, nats_server, request):
    urls = {
        "memory": "memory:",
        "sqlite": f"sqlite:///{tmp_path}/b.db",
        "nats": f"{nats_server.url}/copy{abs(hash(request.node.name)) % 10**6}",
    }
    async with (
        await stores.open(f"sqlite:///{tmp_path}/a.db?synchronous=normal") as one,
        await stores.open(urls[target]) as two,
    ):
        await furnish(one)
        copied = await copy(one, two)
        assert copied.differences == []
        assert (copied.entries, copied.rows, copied.messages, copied.dead) == (260, len(ODD_KEYS) + 2, 4, 1)
        await same(one, two)
        assert await two.queue("q").revive((await two.queue("q").dead())[0].id)


async def test_an_interrupted_copy_continues(tmp_path, nats_server):
    async with (
        await stores.open(f"sqlite:///{tmp_path}/a.db?synchronous=normal") as one,
        await stores.open(f"{nats_server.url}/again") as two,
    ):
        await furnish(one)
        await two.log("l").start_at(41)
        for entry in await one.log("l").read(limit=70):
            await two.log("l").append(entry.value, dedupe=entry.dedupe)
        await two.queue("q").put(b"later", key="k/1", delay=4000)
        for _ in range(2):
            assert (await copy(one, two)).differences == []
        await same(one, two)


async def test_a_copy_from_nats_to_sqlite_can_be_used(tmp_path, nats_server):
    async with (
        await stores.open(f"{nats_server.url}/home") as one,
        await stores.open(f"sqlite:///{tmp_path}/b.db?synchronous=normal") as two,
    ):
        await furnish(one)
        assert (await copy(one, two)).differences == []
        await same(one, two)
        assert await two.log("l").append(b"next") == 301


async def test_a_copy_does_not_overwrite_other_data():
    async with await stores.open("memory:") as one, await stores.open("memory:") as two:
        await one.log("l").append(b"mine")
        await two.log("l").append(b"yours")
        with pytest.raises(StoreError, match="other entries"):
            await copy(one, two)
        await two.log("l").drop()
        await one.queue("q").put(b"x")
        lease = await one.queue("q").take()
        with pytest.raises(StoreError, match="in progress"):
            await copy(one, two)
        await lease.done()
        await one.queue("q").put(b"x", key="k")
        await two.queue("q").put(b"y", key="k")
        with pytest.raises(StoreError, match="another message"):
            await copy(one, two)


async def test_a_copy_reports_a_change_during_the_copy(monkeypatch):
    async with await stores.open("memory:", clock=SetClock()) as one, await stores.open("memory:") as two:
        await one.table("t").put("k", b"1")
        names = one.names

        async def change_after():
            found = await names()
            await two.table("t").put("other", b"2")
            return found

        monkeypatch.setattr(one, "names", change_after)
        assert (await copy(one, two)).differences == ["table 't' differs"]


def run(*arguments):
    parser = argparse.ArgumentParser()
    parser.add_argument("--output")
    command.add(parser.add_subparsers())
    args = parser.parse_args(arguments)
    return args.run(args)


def test_info_check_and_copy_on_the_command_line(tmp_path, nats_server, capsys):
    import asyncio

    url = f"sqlite:///{tmp_path}/a.db"

    async def fill():
        async with await stores.open(url) as store:
            await store.log("l").append(b"x")
            await store.table("t").put("k", b"v")
            await store.queue("q").put(b"x", delay=60)

    asyncio.run(fill())
    assert run("--output", "json", "store", "info", url) == 0
    info = json.loads(capsys.readouterr().out)
    assert info["logs"] == {"l": {"first": 1, "last": 1}}
    assert info["tables"] == {"t": {"rows": 1}}
    assert info["queues"] == {"q": {"ready": 0, "delayed": 1, "leased": 0, "dead": 0}}
    target = f"{nats_server.url}/cli"
    assert run("--output", "json", "store", "copy", url, target) == 0
    copied = json.loads(capsys.readouterr().out)
    assert (copied["entries"], copied["rows"], copied["messages"], copied["differences"]) == (1, 1, 1, [])
    assert run("--output", "text", "store", "info", target) == 0
    assert "log    l: entries 1 to 1" in capsys.readouterr().out
    assert run("--output", "json", "store", "check", target) == 0
    assert json.loads(capsys.readouterr().out)["problems"] == []
    connection = sqlite3.connect(tmp_path / "a.db")
    connection.execute("UPDATE amends_logs SET oldest = 0")
    connection.commit()
    connection.close()
    assert run("--output", "text", "store", "check", url) == 1
    assert ": 1 problem\n" in capsys.readouterr().out


def test_info_does_not_create_a_missing_file(tmp_path):
    with pytest.raises(ValidationError, match="no file"):
        run("store", "info", f"sqlite:///{tmp_path}/none.db")
    assert list(tmp_path.iterdir()) == []
