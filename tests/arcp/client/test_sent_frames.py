"""Every frame that our client sends fits the schemas of the published SDKs. The TypeScript SDK's are checked by `make soak`."""

import asyncio
import json

from arcp._envelope import Envelope
from arcp._messages import PAYLOAD_REGISTRY, parse_payload

from amends.arcp.wire import VERSION
from tests.arcp.client.scripted_client import scripted_client

NOT_IN_THE_SDKS = {"session.close"}
"""The specification's name (6.7); a runtime that refuses it gets session.bye."""


async def sent_frames():
    """Return one session's frames with every type and option."""
    seen = []

    async def first(peer):
        await peer.welcome(heartbeat_interval_sec=1)
        seen.append(peer)
        await peer.accept()
        await peer.send("session.ping", {"nonce": "n1", "sent_at": "2026-05-13T19:42:13Z"})
        await peer.event(1)
        while not {"session.ack", "session.ping", "job.cancel"} <= {each["type"] for each in peer.received}:
            assert await peer.take()
        await peer.send("job.cancelled", {}, job_id="job_1")
        await peer.fail(2, "CANCELLED")
        await peer.take("session.list_jobs")
        await peer.send("session.jobs", {"request_id": peer.received[-1]["id"], "jobs": []})
        await peer.take("job.subscribe")
        await peer.send("job.subscribed", {"job_id": "job_2", "current_status": "running"}, job_id="job_2")
        await peer.take("job.unsubscribe")

    async def second(peer):
        seen.append(peer)
        await peer.welcome()
        await peer.take("session.close")
        await peer.send("session.error", {"code": "INVALID_REQUEST", "message": "unknown type"})
        await peer.take("session.bye")

    async with asyncio.timeout(30), scripted_client(first, second) as (client, _):
        handle = await client.submit(
            "echo@1.0.0",
            {"a": [1, None]},
            idempotency_key="k",
            max_runtime_sec=30.0,
            lease={"fs.read": ["/a/**"], "cost.budget": ["USD:1.00"]},
            expires_at="2030-01-01T00:00:00Z",
            trace_id="ab" * 16,
        )
        async for _ in handle.events():
            await handle.cancel()
        await client.jobs(status=["running"], agent="echo", created_after=0.0, limit=10)
        await client.subscribe("job_2")
        await client.unsubscribe("job_2")
        # The first script has ended, so the client resumes the session on the second connection.
        while len(seen) < 2:
            await asyncio.sleep(0.005)
        await client._session.wait_open(10)
    return [frame for peer in seen for frame in peer.received]


async def test_the_frames_fit_the_python_sdk():
    """Envelope and payload of every type; nothing is null, and the session is named after the handshake."""
    frames = await sent_frames()
    types = {frame["type"] for frame in frames}
    assert types >= {name for name in PAYLOAD_REGISTRY if name in CLIENT_TYPES}
    assert types <= CLIENT_TYPES | NOT_IN_THE_SDKS
    for frame in frames:
        Envelope.model_validate(frame)
        parse_payload(frame["type"], frame["payload"])
        assert frame["arcp"] == VERSION
        assert ("session_id" in frame) is (frame["type"] != "session.hello")
        assert "null" not in json.dumps({**frame, "payload": {**frame["payload"], "input": 0}})
        if frame["type"] == "job.submit":
            assert frame["payload"]["max_runtime_sec"] == 30
            assert isinstance(frame["payload"]["max_runtime_sec"], int)


CLIENT_TYPES = {
    "session.hello",
    "session.bye",
    "session.ping",
    "session.pong",
    "session.ack",
    "session.list_jobs",
    "job.submit",
    "job.cancel",
    "job.subscribe",
    "job.unsubscribe",
}
