"""JetStream snapshots, requested like `nats stream backup` and `nats stream restore` do."""

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
    """Return the names of a store's streams by kind."""
    found = {}
    for stream in (await api(client, "STREAM.LIST", {"subject": f"amends.{store}.>"}))["streams"]:
        kind = stream["config"]["metadata"]["amends.kind"]
        found.setdefault(kind, []).append(stream["config"]["name"])
    return found


async def take_snapshot(client, stream):
    """Return a stream's configuration, state and data."""
    inbox = client.new_inbox()
    arriving = await client.subscribe(inbox)
    answer = await api(client, f"STREAM.SNAPSHOT.{stream}", {"deliver_subject": inbox, "chunk_size": 65536})
    chunks = []
    while (message := await arriving.next_msg(20)).data:
        chunks.append(message.data)
        if message.reply:
            await client.publish(message.reply)
    await arriving.unsubscribe()
    return {"config": answer["config"], "state": answer["state"], "chunks": chunks}


async def restore_snapshot(client, snapshot):
    """Create the stream of a snapshot."""
    about = {name: snapshot[name] for name in ("config", "state")}
    subject = (await api(client, f"STREAM.RESTORE.{about['config']['name']}", about))["deliver_subject"]
    for chunk in snapshot["chunks"]:
        answer = await client.request(subject, chunk, timeout=20)
        assert not answer.data or b"error" not in answer.data, answer.data
    last = await client.request(subject, b"", timeout=20)
    assert "error" not in json.loads(last.data), last.data


async def copy_streams(source, target, store, kinds):
    """Take snapshots of a store's streams, in the order of their kinds, and restore them on another server."""
    async with asyncio.timeout(60):
        client = await nats.connect(source)
        found = await streams(client, store)
        assert set(found) == {kind for group in kinds for kind in group} & set(found)
        kept = []
        for group in kinds:
            for stream in [stream for kind in group for stream in found.get(kind, ())]:
                kept.append(await take_snapshot(client, stream))
        await client.close()
        client = await nats.connect(target)
        for snapshot in kept:
            await restore_snapshot(client, snapshot)
        await client.close()
