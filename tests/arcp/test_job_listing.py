"""Listing and following jobs (6.6, 7.6)."""

from __future__ import annotations

import asyncio
import time

from amends.arcp import connect
from amends.arcp.runtime import ledger
from amends.arcp.runtime.entries import ACTIVE, JOBS, Summary, encode
from amends.arcp.runtime.ledger import ended_key
from amends.arcp.wire import text_of
from tests.arcp.raw import connected
from tests.arcp.test_sessions import numbers, resumed

decode_summary = ledger._read_summary


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


def stored_job(number, *, principal="alice", agent="echo@1.0.0", status="success", run=1):
    return Summary(
        job_id=f"job_{number * 7919 % 10_007:05}",
        principal=principal,
        session="s",
        agent=agent,
        status=status,
        created=1_700_000_000 + number // 3,
        trace="0" * 32,
        run=run,
    )


async def store_ended(runtime, jobs):
    """Write the rows of ended jobs, many at once."""
    table = runtime._node.store.table(JOBS)
    for start in range(0, len(jobs), 500):
        await asyncio.gather(*(table.put(ended_key(job), encode(job)) for job in jobs[start : start + 500]))


async def all_pages(raw, limit, **request):
    """Return the ids on each page, up to the last."""
    pages, cursor = [], None
    while True:
        page = await list_jobs(raw, limit=limit, cursor=cursor, **request)
        pages.append([job["job_id"] for job in page["jobs"]])
        assert len(pages) < 1_000
        if (cursor := page["next_cursor"]) is None:
            return pages


async def test_pages_contain_every_job_once(store_url, begin, monkeypatch):
    """Whatever is a page's size, how many jobs are looked at for one, which filter there is, and which jobs have ended."""
    runtime = await begin(store_url)
    raw = await connected(runtime)
    states, agents = ("success", "error", "cancelled"), ("echo@1.0.0", "echo@2.0.0", "other@1.0.0")
    jobs = [stored_job(n, status=states[n % 3], agent=agents[n % 5 % 3]) for n in range(90)]
    running = [stored_job(n, status="running") for n in range(90, 96)]
    again = [stored_job(n, status="running", run=2) for n in (0, 40, 41, 89)]
    await store_ended(runtime, jobs + [stored_job(n, principal="bob") for n in range(100, 130)])
    active = runtime._node.store.table(ACTIVE)
    for job in running + again:
        await active.put(f"other/{job.job_id}", encode(job))
    # A node died between the two rows of the end of a job.
    await active.put(f"other/{jobs[7].job_id}", encode(stored_job(7, status="running")))
    known = {job.job_id: job for job in [*jobs, *running, *again]}
    expected = sorted(known.values(), key=lambda job: (-job.created, job.job_id))
    filters = [
        (None, lambda job: True),
        ({"status": ["error"]}, lambda job: job.status == "error"),
        ({"status": ["running"]}, lambda job: job.status == "running"),
        ({"agent": "other"}, lambda job: job.agent == "other@1.0.0"),
        ({"agent": "none"}, lambda job: False),
        ({"created_after": text_of(1_700_000_020)}, lambda job: job.created > 1_700_000_020),
    ]
    for looked_at in (7, 5_000):
        monkeypatch.setattr("amends.arcp.runtime.server.job_listing._LOOKED_AT", looked_at)
        for limit in (10, 95, 96):
            for wanted, is_listed in filters:
                pages = await all_pages(raw, limit, **({"filter": wanted} if wanted else {}))
                assert max(map(len, pages)) <= limit
                assert [each for page in pages for each in page] == [
                    j.job_id for j in expected if is_listed(j)
                ]
    await raw.close()


async def test_the_client_reads_pages_that_are_empty(begin, monkeypatch):
    """A filter that excludes most jobs makes empty pages; the client returns the jobs behind them."""
    monkeypatch.setattr("amends.arcp.runtime.server.job_listing._LOOKED_AT", 10)
    runtime = await begin()
    await store_ended(
        runtime, [stored_job(n, status="error" if n in {0, 35} else "success") for n in range(100)]
    )
    async with connect(runtime, token="alice-token") as client:
        failed = await client.jobs(status=["error"])
    assert [job.job_id for job in failed] == [stored_job(35).job_id, stored_job(0).job_id]


async def test_a_page_reads_no_more_jobs_than_it_shows(begin, tmp_path, monkeypatch):
    """The first page and a later one, with 300 and with 2,000 ended jobs; another principal's are not read."""
    read = []
    monkeypatch.setattr(ledger, "_read_summary", lambda value: read.append(1) or decode_summary(value))
    for url in ("memory:", f"sqlite:///{tmp_path}/jobs.db"):
        runtime = await begin(url)
        raw = await connected(runtime)
        await store_ended(runtime, [stored_job(n, principal="bob") for n in range(500)])
        for stored in (300, 2_000):
            await store_ended(runtime, [stored_job(n) for n in range(stored)])
            cursor = None
            for _ in range(4):
                read.clear()
                page = await list_jobs(raw, limit=50, cursor=cursor)
                cursor = page["next_cursor"]
                assert len(page["jobs"]) == 50
                assert len(read) <= 60
            read.clear()
            assert (
                len((await list_jobs(raw, limit=1, filter={"created_after": text_of(1_800_000_000)}))["jobs"])
                == 0
            )
            assert len(read) <= 10
        await raw.close()
