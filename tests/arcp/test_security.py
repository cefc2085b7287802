"""Hostile clients: unauthenticated connections, guessed tokens, floods, malformed frames, and slow readers."""

from __future__ import annotations

import asyncio
import gc
import random
import tracemalloc

import pytest

from amends.arcp.transports import websocket
from amends.arcp.transports.memory import pair
from amends.arcp.wire import FEATURES
from tests.arcp.raw import Raw, connected, dial

# -- sessions of other principals


async def test_a_foreign_session_cannot_be_resumed(store_url, begin):
    """Another principal with the right token, or the owner with a wrong one, is refused without details."""
    runtime = await begin(store_url)
    raw = await connected(runtime)
    await raw.run("echo", "secret")
    await raw.close()
    block = raw.resume_block(0)
    thief = dial(runtime)
    stolen = await thief.hello("bob-token", resume=block)
    third = dial(runtime)
    unknown = await third.hello("bob-token", resume={**block, "session_id": "sess_" + "0" * 26})
    assert stolen["payload"] == unknown["payload"]
    assert stolen["payload"]["code"] == "RESUME_WINDOW_EXPIRED"
    assert "secret" not in str(thief.seen)
    back = dial(runtime)
    assert (await back.hello(resume=block))["type"] == "session.welcome"
    await back.close()


async def test_guessing_tokens(begin):
    """Every guess costs a connection, none succeeds, and the owner's session is not affected."""
    runtime = await begin()
    raw = await connected(runtime)
    right = raw.welcome["resume_token"]
    for guess in ("", "0", right[:-1], right + "0", right.swapcase(), right[::-1]):
        guesser = dial(runtime)
        message = await guesser.hello(resume={**raw.resume_block(0), "resume_token": guess})
        assert message["type"] == "session.error"
        assert message["payload"]["code"] in {"UNAUTHENTICATED", "INVALID_REQUEST"}
        assert await guesser.receive() is None
    assert (await raw.run("echo", 1))["event_seq"] == 1
    await raw.close()


async def test_tokens_cannot_be_guessed_from_each_other(begin):
    """256 random bits each, stored as digests only."""
    runtime = await begin()
    tokens = set()
    for _ in range(20):
        raw = await connected(runtime)
        tokens.add(raw.welcome["resume_token"])
        await raw.close()
    assert len(tokens) == 20
    assert min(len(token) for token in tokens) == 43
    rows = [row async for row in runtime._node.store.table("arcp.sessions").scan()]
    assert rows
    assert not any(token.encode() in row.value for token in tokens for row in rows)


@pytest.mark.parametrize("seq", [-1, 5, 2**63 - 1, 2**70, "x", 1.5, None])
async def test_resuming_unknown_sessions(seq, begin):
    """Event numbers that were never sent, and values that are not numbers."""
    runtime = await begin()
    raw = await connected(runtime)
    await raw.close()
    other = dial(runtime)
    message = await other.hello(resume={**raw.resume_block(0), "last_event_seq": seq})
    assert message["type"] in {"session.error", "session.welcome"}
    if message["type"] == "session.error":
        assert message["payload"]["code"] in {"INVALID_REQUEST", "RESUME_WINDOW_EXPIRED"}
    assert message["type"] == "session.error" or seq is None
    await other.close()


# -- before the hello


@pytest.mark.parametrize(
    "frame",
    [
        b"",
        b"{}",
        b"\xff\xfe",
        b"[" * 10_000,
        b'{"arcp":"2","id":"x","type":"session.hello","payload":{}}',
        b'{"arcp":"1.1","id":"x","type":"job.submit","payload":{"agent":"echo"}}',
        b'{"arcp":"1.1","id":"x","type":"session.hello","payload":[]}',
        b'{"arcp":"1.1","id":"x","type":"session.hello","payload":{"auth":3}}',
        b'{"arcp":"1.1","id":"x","type":"session.ping","payload":{"nonce":"n"}}',
    ],
)
async def test_a_first_frame_that_is_not_a_hello(frame, begin):
    """INVALID_REQUEST as a session.error, and the transport closes (R6)."""
    other = dial(await begin())
    await other.connection.send(frame)
    message = await other.receive()
    assert (message["type"], message["payload"]["code"]) == ("session.error", "INVALID_REQUEST")
    assert await other.receive() is None


async def test_handshakes_are_limited(begin):
    """Idle connections are closed in time, the oldest one at once for a new one, and clients connect afterwards."""
    runtime = await begin(limits={"hello_timeout": 0.2, "handshakes": 5})
    silent = [dial(runtime) for _ in range(6)]
    await asyncio.sleep(0)
    assert await silent[0].receive() is None
    for other in silent[1:]:
        message = await other.receive()
        assert message["payload"]["code"] == "INTERNAL_ERROR"
        assert await other.receive() is None
    raw = await connected(runtime)
    assert (await raw.run("echo", 1))["type"] == "job.result"
    assert len(runtime._node.server.handshakes) == 0
    await raw.close()


async def test_one_frame_is_read_before_the_hello(begin):
    """Nothing after the first frame is read or stored."""
    runtime = await begin(limits={"hello_timeout": 5.0})
    async with runtime.listen("127.0.0.1", 0) as listening:
        flooders = [Raw(await websocket.dial(listening.url)) for _ in range(5)]
        for flooder in flooders:
            for _ in range(50):
                try:
                    await flooder.connection.send(b'{"arcp":"1.1","id":"x","type":"job.submit","payload":{}}')
                except ConnectionError:
                    break
        raw = Raw(await websocket.dial(listening.url))
        assert (await raw.hello())["type"] == "session.welcome"
        assert (await raw.run("echo", 1))["type"] == "job.result"
        await raw.close()
        for flooder in flooders:
            while await flooder.receive() is not None:
                pass


async def test_sessions_per_principal_are_limited(begin):
    """14: attached sessions beyond the limit are refused; the oldest detached session makes room."""
    runtime = await begin(limits={"sessions_per_principal": 3})
    raws = [await connected(runtime) for _ in range(3)]
    refused = dial(runtime)
    message = await refused.hello()
    assert (message["payload"]["code"], message["payload"]["retryable"]) == ("INTERNAL_ERROR", True)
    assert message["payload"]["details"] == {"limit": "sessions_per_principal", "value": 3}
    bob = await connected(runtime, "bob-token")
    for raw in raws[:2]:
        await raw.close()
    fresh = await connected(runtime)
    gone = dial(runtime)
    assert (await gone.hello(resume=raws[0].resume_block()))["payload"]["code"] == "RESUME_WINDOW_EXPIRED"
    back = dial(runtime)
    assert (await back.hello(resume=raws[1].resume_block()))["type"] == "session.welcome"
    await asyncio.gather(*(raw.close() for raw in (raws[2], fresh, back, bob)))


# -- frames


@pytest.mark.parametrize("frame", [b"", b"nonsense", b"\x00" * 100, b"[" * 5000, b'{"arcp":"1.1"}', b"null"])
async def test_a_malformed_frame_ends_only_the_connection(frame, begin):
    """session.error INVALID_REQUEST; the session can be resumed, and its jobs continue."""
    runtime = await begin()
    raw = await connected(runtime)
    job_id = (await raw.submit("counting", {"count": 3, "pause": 0.05}))["payload"]["job_id"]
    await raw.connection.send(frame)
    message = await raw.until("session.error")
    assert message["payload"]["code"] == "INVALID_REQUEST"
    assert await raw.receive() is None
    raw2 = dial(runtime)
    await raw2.hello(resume=raw.resume_block())
    assert (await raw2.end(job_id))["payload"]["result"] == 3
    await raw2.close()


async def test_oversized_frames_end_the_connection(begin):
    """They are not read; the runtime continues, and the session can be resumed."""
    runtime = await begin()
    async with runtime.listen("127.0.0.1", 0, max_frame=64 * 1024) as listening:
        raw = Raw(await websocket.dial(listening.url))
        await raw.hello()
        await raw.send("job.submit", {"agent": "echo", "input": "x" * 100_000})
        assert await raw.receive() is None
        raw2 = Raw(await websocket.dial(listening.url))
        assert (await raw2.hello(resume=raw.resume_block()))["type"] == "session.welcome"
        assert (await raw2.run("echo", 1))["type"] == "job.result"
        await raw2.close()


async def test_frames_of_another_session(begin):
    """A frame with another session's id ends the connection."""
    runtime = await begin()
    raw, other = await connected(runtime), await connected(runtime)
    await raw.send("job.submit", {"agent": "echo"}, session_id=other.session_id)
    assert (await raw.until("session.error"))["payload"]["code"] == "INVALID_REQUEST"
    assert (await other.run("echo", 1))["event_seq"] == 1
    await other.close()


async def test_random_frames(begin):
    """The runtime answers or closes, and serves the next client."""
    runtime = await begin()
    rng = random.Random(8)
    types = [
        "job.submit",
        "job.cancel",
        "job.subscribe",
        "job.unsubscribe",
        "session.list_jobs",
        "session.ack",
        "session.ping",
        "session.hello",
        "x",
    ]
    values = [None, "", "x", -1, 2**64, 1e400, [], {}, [1], {"a": {}}, True, "job_x", "echo", "\ud800"]
    members = [
        "agent",
        "input",
        "job_id",
        "lease_request",
        "lease_constraints",
        "idempotency_key",
        "max_runtime_sec",
        "filter",
        "limit",
        "cursor",
        "history",
        "from_event_seq",
        "last_processed_seq",
        "nonce",
        "reason",
    ]
    for _ in range(150):
        raw = await connected(runtime)
        for _ in range(4):
            payload = {rng.choice(members): rng.choice(values) for _ in range(rng.randrange(5))}
            try:
                await raw.send(rng.choice(types), payload)
            except (ConnectionError, UnicodeError):
                break
        await raw.close()
    raw = await connected(runtime)
    assert (await raw.run("echo", 1))["payload"]["result"] == 1
    await raw.close()


# -- slow readers


async def test_a_slow_reader_slows_the_agent_then_loses_its_connection(store_url, begin):
    """Back-pressure first, then the connection is closed; the buffers stay within their limits and no event is lost."""
    emitted = 0

    async def talking(input, ctx):
        nonlocal emitted
        for number in range(2_000):
            await ctx.log("x" * 2_000)
            emitted = number + 1
        return "done"

    runtime = await begin(store_url, limits={"buffered": 20, "send_timeout": 3.0, "unacknowledged": 10_000})
    runtime.register_agent("chatterbox", talking)
    ours, theirs = pair(frames=8)
    raw = Raw(ours, asyncio.ensure_future(runtime.serve(theirs)))
    await raw.hello()
    await raw.send("job.submit", {"agent": "chatterbox"})
    await raw.until("job.event")
    before = -1
    while emitted != before:
        before = emitted
        await asyncio.sleep(0.1)
    # The agent had to wait: it emitted only what the connection and the buffers hold.
    assert before < 200
    async with asyncio.timeout(100):
        await raw.serving
    raw2 = dial(runtime)
    await raw2.hello(resume=raw.resume_block())
    end = await raw2.until("job.result", within=100)
    assert end["payload"]["result"] == "done"
    numbers = [m["event_seq"] for m in raw.seen + raw2.seen if "event_seq" in m]
    assert numbers == list(range(1, 2_002))
    await raw2.close()


async def test_a_client_that_does_not_read_is_not_read_from(begin):
    """Requests wait while their answers wait, so the runtime's memory does not grow with the number of requests."""
    runtime = await begin(limits={"buffered": 20, "send_timeout": 30.0})
    ours, theirs = pair(frames=8)
    raw = Raw(ours, asyncio.ensure_future(runtime.serve(theirs)))
    await raw.hello()
    sent = 0

    async def flood():
        nonlocal sent
        while True:
            await raw.send("job.submit", {"agent": "echo", "input": "x" * 100})
            sent += 1

    flooding = asyncio.ensure_future(flood())
    for _ in range(30):
        await asyncio.sleep(0.01)
    assert sent < 200
    flooding.cancel()
    await raw.close()


async def test_many_idle_sessions_cost_little(begin):
    """The memory of one session without its socket; the soak tests measure 2,000 sessions over WebSockets."""
    runtime = await begin()
    gc.collect()
    tracemalloc.start()
    try:
        raws = [await connected(runtime, features=FEATURES) for _ in range(100)]
        gc.collect()
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held / 100 < 40_000
    await asyncio.gather(*(raw.close() for raw in raws))


@pytest.mark.parametrize("type", ["session.hello", "session.resume"])
async def test_a_second_hello_ends_the_connection(begin, type):
    """A connection has one session; the error is INVALID_REQUEST."""
    raw = await connected(await begin())
    await raw.send(type, {"auth": {"scheme": "bearer", "token": "bob-token"}})
    message = await raw.receive()
    assert (message["type"], message["payload"]["code"]) == ("session.error", "INVALID_REQUEST")
    assert await raw.receive() is None


@pytest.mark.parametrize("value", [b"NaN", b"-Infinity", b"1e999", b"-1e999", b'"\\ud800"', b'"\xff"'])
async def test_an_input_that_is_not_json_is_refused(begin, value):
    """The job would otherwise run with another input; the session continues."""
    raw = await connected(await begin())
    submit = b'{"arcp":"1.1","id":"m1","type":"job.submit","payload":{"agent":"echo","input":[%s]}}'
    await raw.connection.send(submit % value)
    answer = await raw.answer("m1")
    assert (answer["type"], answer["payload"]["code"]) == ("job.error", "INVALID_REQUEST")
    # Another member that is read although it has another type.
    submit = submit.replace(b"m1", b"m2").replace(b'"input"', b'"max_runtime_sec":"60","input"')
    await raw.connection.send(submit % value)
    answer = await raw.answer("m2")
    assert (answer["type"], answer["payload"]["code"]) == ("job.error", "INVALID_REQUEST")
    assert (await raw.run("echo", 1))["payload"]["result"] == 1
    await raw.close()
