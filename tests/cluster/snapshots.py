"""JetStream's snapshots, asked for as `nats stream backup` and `nats stream restore` ask for them."""

from __future__ import annotations

import asyncio
import json

import nats


async def api(client, name, body=None):
    answer = await client.request(f"$JS.API.{name}", json.dumps(body or {}).encode(), timeout=20)
    found = json.loads(answer.data)
    assert "error" not in found, (name, found["error"])
    return found


async def streams(client, store):
    """The names of a store's streams by kind."""
    found = {}
    for stream in (await api(client, "STREAM.LIST", {"subject": f"amends.{store}.>"}))["streams"]:
        kind = stream["config"]["metadata"]["amends.kind"]
        found.setdefault(kind, []).append(stream["config"]["name"])
    return found


async def taken(client, stream):
    """A snapshot: what the stream is, and its bytes."""
    inbox = client.new_inbox()
    arriving = await client.subscribe(inbox)
    told = await api(client, f"STREAM.SNAPSHOT.{stream}", {"deliver_subject": inbox, "chunk_size": 65536})
    chunks = []
    while (message := await arriving.next_msg(20)).data:
        chunks.append(message.data)
        if message.reply:
            await client.publish(message.reply)
    await arriving.unsubscribe()
    return {"config": told["config"], "state": told["state"], "chunks": chunks}


async def put_back(client, snapshot):
    """Make the stream of a snapshot."""
    about = {name: snapshot[name] for name in ("config", "state")}
    told = await api(client, f"STREAM.RESTORE.{about['config']['name']}", about)
    for chunk in snapshot["chunks"]:
        answer = await client.request(told["deliver_subject"], chunk, timeout=20)
        assert not answer.data or b"error" not in answer.data, answer.data
    last = await client.request(told["deliver_subject"], b"", timeout=20)
    assert "error" not in json.loads(last.data), last.data


async def moved(source, target, store, kinds):
    """Snapshots of a store's streams, in the order of their kinds, and all of them put back elsewhere."""
    async with asyncio.timeout(60):
        client = await nats.connect(source)
        found = await streams(client, store)
        assert set(found) == {kind for group in kinds for kind in group} & set(found)
        kept = []
        for group in kinds:
            for stream in [stream for kind in group for stream in found.get(kind, ())]:
                kept.append(await taken(client, stream))
        await client.close()
        client = await nats.connect(target)
        for snapshot in kept:
            await put_back(client, snapshot)
        await client.close()
