"""Opening a NATS store: its version and its settings; and the settings that its streams must have."""

from __future__ import annotations

import asyncio
import uuid

import pytest

from amends import stores
from amends.stores import DamagedStoreError, StoreMismatchError, versions
from amends.stores.nats.stream_settings import Settings


@pytest.fixture
def url(nats_server):
    return f"{nats_server.url}/o{uuid.uuid4().hex[:8]}"


async def change(url, metadata, name="state_state"):
    """Rewrite the metadata of a stream, or create the stream with it."""
    store = url.rpartition("/")[2]
    async with await stores.open(url.replace(store, "other")) as other:
        api, stream = other._streams.connection.api, f"amends_{store}_{name}"
        subjects = [f"amends.{store}.{name.replace('_', '.')}.>"]
        config = {"name": stream, "subjects": subjects, "metadata": metadata, "max_msgs_per_subject": 1}
        config |= {"allow_direct": True, "allow_msg_ttl": True, "duplicate_window": 120_000_000_000}
        found = (await api("STREAM.NAMES", {"subject": subjects[0]}))["streams"]
        await api(f"STREAM.{'UPDATE' if found else 'CREATE'}.{stream}", config)


async def test_a_store_of_another_version_is_refused(url):
    """The message says what to do."""
    async with await stores.open(url) as store:
        await store.table("t").put("k", b"v")
    for metadata, sentence in (
        ({}, "without a number.*remove its streams"),
        ({"amends.format": str(versions.VERSION - 1)}, "finish its work with the version that wrote it"),
        ({"amends.format": str(versions.VERSION + 1)}, "upgrade amends"),
        ({"amends.format": "odd"}, "upgrade amends"),
    ):
        await change(url, metadata)
        with pytest.raises(DamagedStoreError, match=sentence):
            await stores.open(url)
    await change(url, {"amends.format": str(versions.VERSION)})
    async with await stores.open(url) as store:
        assert (await store.table("t").get("k")).value == b"v"


async def test_a_store_without_the_first_stream_is_an_earlier_one(url):
    """Earlier versions created that stream with the first queue."""
    await change(url, {}, "table_t")
    with pytest.raises(DamagedStoreError, match="earlier amends"):
        await stores.open(url)


async def test_the_first_stream_is_looked_for_again(url):
    """A server that starts, or another process that creates the store, may show another stream first."""
    await change(url, {}, "table_t")
    opening = asyncio.ensure_future(stores.open(url))
    await change(url, {"amends.format": str(versions.VERSION)})
    async with await opening as store:
        assert await store.table("t").get("k") is None


async def test_the_settings_are_the_stores(url):
    """Options that contradict the store are refused; without options its settings apply to new streams."""
    async with await stores.open(f"{url}?storage=memory&dedupe_window=60") as store:
        assert store._streams.settings == Settings(1, "memory", 60.0)
    for option, change in (
        ("replicas=3", "has replicas=1, not 3.*nats stream edit"),
        ("storage=file", "has storage=memory, not file.*amends store copy"),
        ("dedupe_window=120", "has dedupe_window=60, not 120"),
    ):
        with pytest.raises(StoreMismatchError, match=change):
            await stores.open(f"{url}?{option}")
    async with await stores.open(url) as store:
        await store.log("l").append(b"x")
        config = (await store._streams.info("log", "l"))["config"]
        assert (config["storage"], config["duplicate_window"]) == ("memory", 60_000_000_000)


async def test_a_stream_with_other_settings(url):
    """Limits may be changed; a setting that the store depends on is reported with what to do."""
    async with await stores.open(url) as store:
        await store.queue("q").put(b"x")
        streams = store._streams
        config = (await streams.info("queue", "q"))["config"]
        stream = config["name"]
        await streams.connection.api(f"STREAM.UPDATE.{stream}", config | {"max_bytes": 1_000_000})
        streams.forget("queue", "q")
        assert await store.queue("q").put(b"y")
        await streams.connection.api(
            f"STREAM.UPDATE.{stream}", config | {"max_msgs_per_subject": 2, "discard_new_per_subject": False}
        )
        streams.forget("queue", "q")
        with pytest.raises(DamagedStoreError, match=r"another max_msgs_per_subject.*nats stream edit"):
            await store.queue("q").put(b"z")


async def test_reads_depend_on_the_streams_replicas(url):
    """A stream with replicas is read from its leader, whatever the URL says; the number is read again after a while."""
    async with await stores.open(url) as store:
        await store.table("t").put("k", b"v")
        streams, asked = store._streams, []
        stream, api = streams.stream("table", "t"), streams.connection.api

        async def recorded(name, body=None):
            asked.append(name.partition(f".{stream}")[0])
            return await api(name, body)

        streams.connection.api = recorded
        assert (await store.table("t").get("k")).value == b"v"
        assert asked == []
        streams._replicas[stream] = (3, streams._replicas[stream][1])
        assert (await store.table("t").get("k")).value == b"v"
        assert asked == ["STREAM.MSG.GET"]
        streams._replicas[stream] = (3, 0.0)
        assert (await store.table("t").get("k")).value == b"v"
        assert asked == ["STREAM.MSG.GET", "STREAM.INFO"]


async def test_held_messages_are_bounded(url):
    """The server stops delivering before it keeps an unlimited number of messages as pending."""
    async with await stores.open(url) as store:
        assert await store.queue("q").take() is None
        streams = store._streams
        info = await streams.connection.api(f"CONSUMER.INFO.{streams.stream('queue', 'q')}.workers")
        assert 0 < info["config"]["max_ack_pending"] <= 1_000_000
