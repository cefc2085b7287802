"""Resuming a session: exactly the missed events, on any node, within the window."""

from __future__ import annotations

import asyncio

from tests.arcp.raw import connected, dial
from tests.arcp.test_sessions import numbers, resumed, session_logs


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
