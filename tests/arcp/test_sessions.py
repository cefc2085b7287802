"""Sessions: the welcome, event numbers, resuming without loss or duplicates, token rotation, heartbeats, listings."""

from __future__ import annotations

import asyncio
import time

import pytest

from amends.arcp.wire import text_of
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


async def test_resuming_replays_exactly_what_was_missed(store_url, begin):
    """8.3: the same events have the same numbers, and later ones follow without a gap, wherever the connection broke."""
    runtime = await begin(store_url)
    raw = await connected(runtime)
    job_id = (await raw.submit("counting", {"count": 30, "pause": 0.005}))["payload"]["job_id"]
    whole = {}
    for cut in (4, 9, 15):
        while not numbers(raw) or numbers(raw)[-1] < cut:
            await raw.receive()
        whole.update({m["event_seq"]: m["payload"] for m in raw.seen if "event_seq" in m})
        await raw.close()
        back = cut - 2
        raw, message = await resumed(runtime, raw, back)
        assert message["type"] == "session.welcome"
    end = await raw.end(job_id)
    assert numbers(raw) == list(range(14, 32))
    assert [m["payload"]["body"]["message"].strip() for m in raw.events(job_id)] == [
        str(n) for n in range(13, 30)
    ]
    replayed = {m["event_seq"]: m["payload"] for m in raw.seen if "event_seq" in m}
    assert all(replayed[n] == whole[n] for n in replayed if n in whole)
    assert end["payload"]["result"] == 30
    await raw.close()


async def test_resuming_on_another_node(store_url, begin):
    """On any node that shares the store: the same session, the same numbers, and the end of a job that runs elsewhere."""
    first, second = await begin(store_url), await begin(store_url)
    raw = await connected(first)
    job_id = (await raw.submit("counting", {"count": 20, "pause": 0.01}))["payload"]["job_id"]
    other_job = (await raw.submit("waiting"))["payload"]["job_id"]
    while len(numbers(raw)) < 6:
        await raw.receive()
    await raw.close()
    raw2, message = await resumed(second, raw, 2)
    assert message["payload"]["session_id"] == raw.session_id
    end = await raw2.end(job_id)
    assert numbers(raw2) == list(range(3, end["event_seq"] + 1))
    lines = [m["payload"]["body"]["message"].strip() for m in raw2.events(job_id)]
    before = [m["payload"]["body"]["message"].strip() for m in raw.events(job_id) if m["event_seq"] <= 2]
    assert before + lines == [str(n) for n in range(20)]
    # The session may still cancel the job, which runs on the other node.
    request = await raw2.send("job.cancel", {"reason": "over there"}, job_id=other_job)
    assert (await raw2.answer(request))["type"] == "job.cancelled"
    end = await raw2.end(other_job)
    assert end["payload"]["details"] == {"reason": "over there"}
    await raw2.close()


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


async def test_session_resume_as_a_message_of_its_own(begin):
    """v1.1 defines `session.resume`; it is handled like a hello with a resume block."""
    runtime = await begin()
    raw = await connected(runtime)
    await raw.run("echo", 1)
    await raw.close()
    other = dial(runtime)
    auth = {"scheme": "bearer", "token": "alice-token"}
    await other.send("session.resume", {**raw.resume_block(0), "auth": auth})
    assert (await other.receive())["type"] == "session.welcome"
    assert (await other.receive())["event_seq"] == 1
    await other.close()
    unknown = dial(runtime)
    await unknown.send("session.resume", raw.resume_block(0))
    assert (await unknown.receive())["payload"]["code"] == "UNAUTHENTICATED"


async def test_tokens_rotate_and_old_ones_become_invalid(store_url, begin):
    """6.3: after the client has sent a message on the new connection, the previous token is invalid."""
    runtime = await begin(store_url)
    raw = await connected(runtime)
    first = raw.welcome["resume_token"]
    await raw.close()
    raw2, message = await resumed(runtime, raw)
    second = message["payload"]["resume_token"]
    assert first != second
    await raw2.run("echo", 1)
    await raw2.close()
    _, message = await resumed(runtime, raw2, resume_token=first)
    assert (message["type"], message["payload"]["code"]) == ("session.error", "UNAUTHENTICATED")
    raw3, message = await resumed(runtime, raw2, resume_token=second)
    assert message["type"] == "session.welcome"
    await raw3.close()


async def test_a_lost_welcome_does_not_lock_the_client_out(store_url, begin):
    """The previous token works until the client has sent a message after the new welcome."""
    runtime = await begin(store_url)
    raw = await connected(runtime)
    await raw.close()
    for _ in range(3):
        # The client never reads the welcome, and tries again with its old token.
        lost, message = await resumed(runtime, raw, 0)
        assert message["type"] == "session.welcome"
        await lost.close()
    raw2, message = await resumed(runtime, raw, 0)
    assert message["type"] == "session.welcome"
    assert (await raw2.run("echo", 1))["event_seq"] == 1
    await raw2.close()


async def test_resuming_too_late(store_url, begin):
    """RESUME_WINDOW_EXPIRED if the session, or the requested events, no longer exist."""
    runtime = await begin(store_url, limits={"resume_window": 0.3, "node_lease": 0.3})
    raw = await connected(runtime)
    await raw.run("echo", 1)
    await raw.close()
    await asyncio.sleep(0.8)
    other, message = await resumed(runtime, raw)
    assert (message["type"], message["payload"]["code"]) == ("session.error", "RESUME_WINDOW_EXPIRED")
    assert await other.receive() is None
    async with asyncio.timeout(100):
        while session_logs(await runtime.node.store.names()):
            await asyncio.sleep(0.05)


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


async def test_deleted_events_cannot_be_replayed(begin):
    """Events beyond `events_kept`, or acknowledged ones, are deleted; resuming from there fails, from later on works."""
    runtime = await begin(limits={"events_kept": 200})
    raw = await connected(runtime)
    for _ in range(400):
        await raw.run("echo", 1)
    await raw.close()
    _, message = await resumed(runtime, raw, 1)
    assert message["payload"]["code"] == "RESUME_WINDOW_EXPIRED"
    raw2, message = await resumed(runtime, raw, 390)
    assert message["type"] == "session.welcome"
    for number in range(391, 401):
        assert (await raw2.receive())["event_seq"] == number
    _, message = await resumed(runtime, raw2, 401)
    assert message["payload"]["code"] == "INVALID_REQUEST"
    await raw2.close()


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


async def test_deleted_jobs_are_not_replayed(begin):
    """A session cannot be resumed if the job of its missed events was deleted."""
    runtime = await begin(limits={"finished": 1})
    raw = await connected(runtime)
    await raw.run("echo", 1)
    await raw.close()
    other = await connected(runtime)
    for _ in range(200):
        await other.run("echo", 1)
    _, message = await resumed(runtime, raw, 0)
    assert message["payload"]["code"] == "RESUME_WINDOW_EXPIRED"
    await other.close()


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


async def list_jobs(raw, **request):
    answer = await raw.answer(await raw.send("session.list_jobs", request))
    return answer["payload"]


async def test_listing(store_url, begin):
    """6.6: filters, pages, and only the principal's own jobs."""
    runtime = await begin(store_url)
    raw, other = await connected(runtime), await connected(runtime, "bob-token")
    await other.run("echo", 1)
    lease = {"fs.read": ["/w/**"]}
    running = (await raw.submit("waiting", lease_request=lease, trace_id="a" * 32))["payload"]["job_id"]
    done = [(await raw.run("echo", n))["job_id"] for n in range(4)]
    failed = (await raw.run("crashing"))["job_id"]
    everything = await list_jobs(raw)
    assert [job["job_id"] for job in everything["jobs"]] == [failed, *reversed(done), running]
    assert everything["next_cursor"] is None
    entry = everything["jobs"][-1]
    assert entry["lease"] == lease
    assert entry["created_at"] == entry["submitted_at"]
    assert (entry["agent"], entry["status"], entry["trace_id"]) == ("waiting@1.0.0", "running", "a" * 32)
    pages, cursor = [], None
    while True:
        page = await list_jobs(raw, limit=4, cursor=cursor)
        pages.append([job["job_id"] for job in page["jobs"]])
        cursor = page.get("next_cursor")
        if cursor is None:
            break
    assert pages == [[failed, *reversed(done[1:])], [done[0], running]]
    for wanted, expected in [
        ({"status": ["running"]}, [running]),
        ({"status": ["error", "running"]}, [failed, running]),
        ({"agent": "echo"}, done[::-1]),
        ({"agent": "echo@1.0.0", "status": ["success"]}, done[::-1]),
        ({"created_after": text_of(time.time() + 60)}, []),
        ({"created_after": text_of(time.time() - 60), "agent": "waiting"}, [running]),
    ]:
        assert [job["job_id"] for job in (await list_jobs(raw, filter=wanted))["jobs"]] == expected
    for bad in (
        {"limit": 0},
        {"limit": 5000},
        {"cursor": "x"},
        {"filter": {"created_after": "x"}},
        {"limit": "many"},
    ):
        assert (await list_jobs(raw, **bad))["code"] == "INVALID_REQUEST"
    await asyncio.gather(raw.close(), other.close())


async def test_subscribing(store_url, begin):
    """7.6: another session of the principal subscribes, with or without history, and may not cancel."""
    runtime = await begin(store_url)
    raw, watcher, late = await connected(runtime), await connected(runtime), await connected(runtime)
    lease = {"cost.budget": ["USD:5.00"]}
    job_id = (await raw.submit("counting", {"count": 10, "pause": 0.03}, lease_request=lease))["payload"][
        "job_id"
    ]
    await raw.until("job.event")
    request = await watcher.send("job.subscribe", {"job_id": job_id, "history": True, "from_event_seq": 0})
    subscribed = (await watcher.answer(request))["payload"]
    assert subscribed["current_status"] == "running"
    assert subscribed["replayed"] is True
    assert subscribed["budget"] == {"USD": 5.0}
    assert subscribed["lease"] == lease
    assert "credentials" not in subscribed
    request = await late.send("job.subscribe", {"job_id": job_id})
    assert (await late.answer(request))["payload"]["replayed"] is False
    end = await watcher.end(job_id)
    lines = [m["payload"]["body"]["message"].strip() for m in watcher.events(job_id)]
    assert lines == [str(n) for n in range(10)]
    assert numbers(watcher) == list(range(1, 12))
    await late.end(job_id)
    assert 0 < len(late.events(job_id)) < 10
    # After the job's end its history is still sent; without history nothing is.
    request = await late.send("job.subscribe", {"job_id": job_id, "history": True})
    assert (await late.answer(request))["payload"]["current_status"] == "success"
    assert (await late.end(job_id))["payload"] == end["payload"]
    request = await late.send("job.subscribe", {"job_id": job_id})
    assert (await late.answer(request))["payload"]["current_status"] == "success"
    await late.send("session.ping", {"nonce": "n"})
    await late.until("session.pong")
    assert late.seen[-1]["type"] == "session.pong"
    await asyncio.gather(raw.close(), watcher.close(), late.close())


async def test_unsubscribing(begin):
    """No further messages arrive, also after a resume; the job continues."""
    runtime = await begin()
    raw, watcher = await connected(runtime), await connected(runtime)
    job_id = (await raw.submit("counting", {"count": 20, "pause": 0.01}))["payload"]["job_id"]
    await watcher.send("job.subscribe", {"job_id": job_id})
    await watcher.until("job.event")
    await watcher.send("job.unsubscribe", {"job_id": job_id})
    await watcher.send("job.unsubscribe", {})
    assert (await watcher.until("job.error"))["payload"]["code"] == "INVALID_REQUEST"
    count = len(watcher.events(job_id))
    await raw.end(job_id)
    await watcher.close()
    watcher2, _ = await resumed(runtime, watcher)
    await watcher2.send("session.ping", {"nonce": "n"})
    assert (await watcher2.receive())["type"] == "session.pong"
    assert count < 20
    await asyncio.gather(raw.close(), watcher2.close())


async def test_may_observe_is_a_policy(begin, caplog):
    """14: without a policy only the owner sees a job; with one, the policy decides; every request is logged."""
    caplog.set_level("INFO", logger="amends.arcp.audit")
    closed = await begin()
    raw, other = await connected(closed), await connected(closed, "bob-token")
    job_id = (await raw.submit("waiting"))["payload"]["job_id"]
    request = await other.send("job.subscribe", {"job_id": job_id})
    assert (await other.answer(request))["payload"]["code"] == "JOB_NOT_FOUND"
    request = await other.send("job.subscribe", {"job_id": "job_unknown"})
    assert (await other.answer(request))["payload"]["code"] == "JOB_NOT_FOUND"
    assert "bob" in caplog.text
    assert "denied" in caplog.text
    await asyncio.gather(raw.close(), other.close())

    async def policy(observer, owner):
        return observer == "bob"

    opened = await begin(may_observe=policy)
    raw, other = await connected(opened), await connected(opened, "bob-token")
    job_id = (await raw.submit("waiting"))["payload"]["job_id"]
    own = (await other.submit("waiting"))["payload"]["job_id"]
    request = await raw.send("job.subscribe", {"job_id": own})
    assert (await raw.answer(request))["payload"]["code"] == "PERMISSION_DENIED"
    request = await other.send("job.subscribe", {"job_id": job_id})
    assert (await other.answer(request))["type"] == "job.subscribed"
    assert {job["job_id"] for job in (await list_jobs(other))["jobs"]} == {job_id, own}
    assert {job["job_id"] for job in (await list_jobs(raw))["jobs"]} == {job_id}
    request = await other.send("job.cancel", {}, job_id=job_id)
    assert (await other.answer(request))["payload"]["code"] == "PERMISSION_DENIED"
    await asyncio.gather(raw.close(), other.close())
