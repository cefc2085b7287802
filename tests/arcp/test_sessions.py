"""Sessions: the welcome, event numbers, resuming without loss or duplicates, token rotation, heartbeats, listings."""

from __future__ import annotations

import asyncio

import pytest

from tests.arcp.raw import connected, dial


def numbers(raw):
    return [m["event_seq"] for m in raw.seen if "event_seq" in m]


async def resumed(runtime, raw, last=None, token="alice-token", **more):
    other = dial(runtime)
    message = await other.hello(token, resume={**raw.resume_block(last), **more})
    return other, message


# -- opening


async def test_the_welcome(begin):
    """6.2: everything that clients, also published ones, need."""
    raw = await connected(await begin(name="mine"))
    assert raw.welcome["runtime"]["name"] == "mine"
    assert raw.welcome["session_id"] == raw.session_id
    assert raw.welcome["resume_window_sec"] == 600
    assert raw.welcome["heartbeat_interval_sec"] == 30
    assert raw.welcome["accepted_at"].endswith("Z")
    assert "provisioned_credentials" not in raw.welcome["capabilities"]["features"]
    assert len(raw.welcome["resume_token"]) >= 43
    await raw.close()


@pytest.mark.parametrize("how", ["tokens", "token", "function", "coroutine"])
async def test_who_may_connect(how, begin):
    """Tables, bare tokens, functions; wrong and missing tokens are UNAUTHENTICATED, and the transport closes (R6)."""

    async def coroutine(token):
        return "alice" if token == "alice-token" else None

    options = {
        "tokens": {"tokens": {"alice-token": "alice"}},
        "token": {"tokens": "alice-token"},
        "function": {"authenticate": lambda token: "alice" if token == "alice-token" else None},
        "coroutine": {"authenticate": coroutine},
    }[how]
    runtime = await begin(**options)
    raw = await connected(runtime)
    principal = (await raw.run("talking"))["payload"]["result"]["principal"]
    assert principal == "alice" or how == "token"
    assert "alice-token" not in principal
    for token in (None, "", "wrong", "alice-toke", "alice-token "):
        unknown = dial(runtime)
        message = await unknown.hello(token)
        assert (message["type"], message["payload"]["code"]) == ("session.error", "UNAUTHENTICATED")
        assert await unknown.receive() is None
    await raw.close()


async def test_a_failing_authenticate_function_is_not_revealed(begin, caplog):
    """The function's exception is logged, and the client gets INTERNAL_ERROR."""

    def broken(token):
        raise KeyError("database password")

    runtime = await begin(authenticate=broken)
    unknown = dial(runtime)
    message = await unknown.hello()
    assert message["payload"]["code"] == "INTERNAL_ERROR"
    assert "password" not in str(message)
    assert "password" in caplog.text


async def test_pings_and_acks_and_unknown_types(begin):
    """6.4, 6.5, section 5: pongs contain the nonce; unknown types are ignored."""
    raw = await connected(await begin())
    await raw.send("session.telepathy", {"x": 1})
    await raw.send("session.ping", {"nonce": "n1", "sent_at": "2026-05-13T19:42:13.000Z"})
    assert (await raw.until("session.pong"))["payload"]["ping_nonce"] == "n1"
    await raw.send("session.ack", {"last_processed_seq": 10**9})
    await raw.send("session.ack", {"last_processed_seq": "x"})
    await raw.send("session.pong", {"ping_nonce": "?"})
    assert (await raw.run("echo", 1))["event_seq"] == 1
    await raw.close()


# -- resuming


async def test_a_replaced_connection_is_fenced(store_url, begin):
    """The previous node cannot number further events, and closes its connection."""
    first, second = await begin(store_url), await begin(store_url)
    raw = await connected(first)
    job_id = (await raw.submit("counting", {"count": 40, "pause": 0.01}))["payload"]["job_id"]
    await raw.until("job.event")
    # The client considers its connection dead, though it is open.
    raw2, message = await resumed(second, raw)
    assert message["type"] == "session.welcome"
    await raw2.end(job_id)
    old = numbers(raw)
    async with asyncio.timeout(100):
        while (message := await raw.receive()) is not None:
            pass
    # Messages of the old connection were numbered before the new one took over.
    new = numbers(raw2)
    assert new == list(range(new[0], 42))
    resent = {m["event_seq"]: m["payload"] for m in raw2.seen if "event_seq" in m}
    assert all(resent[m["event_seq"]] == m["payload"] for m in raw.seen if m.get("event_seq", 0) > old[-1])
    await raw2.close()


async def test_the_same_node_gives_the_session_to_its_newest_connection(begin):
    """A client reconnects before the runtime has noticed the end of the old connection."""
    runtime = await begin()
    raw = await connected(runtime)
    raw2, message = await resumed(runtime, raw)
    assert message["type"] == "session.welcome"
    assert await raw.receive() is None
    assert (await raw2.run("echo", 1))["event_seq"] == 1
    await raw2.close()


async def test_several_jobs_in_one_stream(store_url, begin):
    """Numbers are per session, every job's events stay in order, and none is lost over three reconnects."""
    runtime = await begin(store_url)
    raw = await connected(runtime)
    jobs = [
        (await raw.submit("counting", {"count": 15, "pause": 0.005}))["payload"]["job_id"] for _ in range(5)
    ]
    seen = list(raw.seen)
    for _ in range(3):
        for _ in range(12):
            await raw.receive()
        seen += [m for m in raw.seen if m not in seen]
        block = {
            **raw.resume_block(),
            "last_event_seq": max((m.get("event_seq", 0) for m in seen), default=0),
        }
        await raw.close()
        raw2 = dial(runtime)
        assert (await raw2.hello(resume=block))["type"] == "session.welcome"
        raw = raw2
    ended = {m["job_id"] for m in seen if m["type"] == "job.result"}
    while len(ended) < 5:
        ended.add((await raw.until("job.result"))["job_id"])
    seen += [m for m in raw.seen if m not in seen]
    events = [m for m in seen if "event_seq" in m]
    assert [m["event_seq"] for m in events] == list(range(1, 81))
    for job_id in jobs:
        lines = [
            m["payload"]["body"]["message"].strip()
            for m in events
            if m["job_id"] == job_id and m["type"] == "job.event"
        ]
        assert lines == [str(n) for n in range(15)]
    await raw.close()


def session_logs(names):
    return [name for name in names["logs"] if name.startswith("arcp.session/")]


async def test_a_session_that_expires_in_use_is_deleted(store_url, begin):
    """Its row expired while the store was unavailable: it cannot be resumed, and its log is deleted."""
    runtime = await begin(store_url)
    store = runtime.node.store
    raw = await connected(runtime)
    await raw.run("echo", 1)
    assert len(session_logs(await store.names())) == 1
    await store.table("arcp.sessions").delete(raw.session_id)
    runtime.node.sessions.attached[raw.session_id].renewed -= runtime.limits.resume_window
    await raw.close()
    assert session_logs(await store.names()) == []


async def test_a_session_detached_during_its_renewal_is_deleted(store_url, begin):
    """Its row has changed while the node stores it as detached: this node still deletes it."""
    runtime = await begin(store_url, limits={"resume_window": 0.5, "node_lease": 0.3})
    store = runtime.node.store
    raw = await connected(runtime)
    await raw.run("echo", 1)
    rows = store.table("arcp.sessions")
    await rows.put(raw.session_id, (await rows.get(raw.session_id)).value, expires_in=0.5)
    await raw.close()
    async with asyncio.timeout(20):
        while session_logs(await store.names()):
            await asyncio.sleep(0.05)


async def test_an_expired_session_makes_room_and_is_deleted(store_url, begin):
    """The oldest detached session is deleted for a new one, also if its row has expired and its log has not."""
    runtime = await begin(store_url, limits={"sessions_per_principal": 1})
    store = runtime.node.store
    raw = await connected(runtime)
    await raw.run("echo", 1)
    await raw.close()
    await store.table("arcp.sessions").delete(raw.session_id)
    other = await connected(runtime)
    assert session_logs(await store.names()) == []
    await other.close()


async def test_acknowledged_events_are_freed(begin):
    """6.5: acknowledged events are deleted, so that the session's log stays small."""
    runtime = await begin()
    raw = await connected(runtime)
    for _ in range(4):
        for _ in range(100):
            await raw.run("echo", 1)
        await raw.send("session.ack", {"last_processed_seq": numbers(raw)[-1]})
    log = runtime._node.store.log(f"arcp.session/{raw.session_id}")
    for _ in range(130):
        await raw.run("echo", 1)
    assert (await log.bounds()).kept < 300
    await raw.close()
    raw2, message = await resumed(runtime, raw)
    assert message["type"] == "session.welcome"
    assert (await raw2.run("echo", 1))["event_seq"] == 531
    await raw2.close()


async def test_closing_a_session(begin):
    """6.7: acknowledged; jobs continue, and the session can be resumed within its window. v1.0's type works too."""
    runtime = await begin()
    raw = await connected(runtime)
    job_id = (await raw.submit("counting", {"count": 3, "pause": 0.02}))["payload"]["job_id"]
    await raw.send("session.close", {"reason": "done"})
    assert (await raw.until("session.closed"))["payload"]
    assert await raw.receive() is None
    raw2, _ = await resumed(runtime, raw)
    assert (await raw2.end(job_id))["payload"]["result"] == 3
    await raw2.send("session.bye", {"reason": "done"})
    assert await raw2.receive() is None


# -- heartbeats


async def test_a_silent_client_loses_only_its_connection(store_url, begin):
    """6.4: a ping when idle, HEARTBEAT_LOST after two intervals; its job continues, and it can resume."""
    runtime = await begin(store_url, limits={"heartbeat": 0.2})
    raw = await connected(runtime)
    job_id = (await raw.submit("waiting"))["payload"]["job_id"]
    lost = await raw.until("session.error")
    assert lost["payload"]["code"] == "HEARTBEAT_LOST"
    assert lost["payload"]["retryable"] is True
    assert await raw.receive() is None
    assert "session.ping" in {m["type"] for m in raw.seen}
    raw2, message = await resumed(runtime, raw)
    assert message["type"] == "session.welcome"
    await raw2.send("job.cancel", {}, job_id=job_id)
    assert (await raw2.end(job_id))["payload"]["code"] == "CANCELLED"
    await raw2.close()


async def test_a_client_that_answers_stays(begin):
    """Pongs keep a connection open; a session without the feature is not pinged."""
    runtime = await begin(limits={"heartbeat": 1.0})
    raw, quiet = await connected(runtime), await connected(runtime, features=[])
    # Without a message, the connection would end after two intervals.
    for _ in range(3):
        ping = await raw.until("session.ping")
        await raw.send("session.pong", {"ping_nonce": ping["payload"]["nonce"]})
    assert (await raw.run("echo", 1))["type"] == "job.result"
    assert (await quiet.run("echo", 1))["type"] == "job.result"
    assert [m["type"] for m in quiet.seen] == ["session.welcome", "job.accepted", "job.result"]
    await asyncio.gather(raw.close(), quiet.close())


async def test_sessions_in_use_are_kept_beyond_their_window(store_url, begin):
    """The window is counted from the last message, not from the first."""
    runtime = await begin(store_url, limits={"resume_window": 3.0, "node_lease": 0.3})
    raw = await connected(runtime)
    await asyncio.sleep(3.5)
    await raw.run("echo", 1)
    await raw.close()
    raw2, message = await resumed(runtime, raw)
    assert message["type"] == "session.welcome"
    await raw2.close()


# -- listings and subscriptions
