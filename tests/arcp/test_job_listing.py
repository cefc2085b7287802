"""Listing and following jobs (6.6, 7.6)."""

from __future__ import annotations

import asyncio
import time

from amends.arcp.wire import text_of
from tests.arcp.raw import connected
from tests.arcp.test_sessions import numbers, resumed


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


async def test_a_policy_that_fails(begin, caplog):
    """The request is answered, and the session goes on."""

    def policy(observer, owner):
        raise RuntimeError("secret")

    runtime = await begin(may_observe=policy)
    alice, bob = await connected(runtime), await connected(runtime, "bob-token")
    job_id = (await alice.run("echo", 1))["job_id"]
    answer = await bob.answer(await bob.send("job.subscribe", {"job_id": job_id}))
    assert (answer["type"], answer["payload"]["code"]) == ("job.error", "INTERNAL_ERROR")
    assert "secret" not in str(answer)
    assert (await bob.run("echo", 2))["payload"]["result"] == 2
