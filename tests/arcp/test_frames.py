"""Members that the clients of the published SDKs wait for."""

from arcp._envelope import Envelope
from arcp._messages import PAYLOAD_REGISTRY, parse_payload

from tests.arcp.raw import connected, dial
from tests.arcp.sent_frames import CODES, TYPESCRIPT, TYPESCRIPT_ID, sent_frames

BUDGET = {"cost.budget": ["USD:5.00"]}


async def test_refusals_name_the_request(begin):
    """A refused submission has no job id and the id of its request; other refusals have the id of the job they are about."""
    raw = await connected(await begin())
    running = (await raw.submit("waiting"))["job_id"]
    submitted = await raw.submit("nobody")
    assert submitted["type"] == "job.error"
    assert "job_id" not in submitted
    assert submitted["id"] == submitted["payload"]["request_id"]
    assert running not in str(submitted)
    for type, wanted in (("job.subscribe", "job_x"), ("job.cancel", "job_y")):
        payload = {"job_id": wanted} if type == "job.subscribe" else {}
        answer = await raw.answer(await raw.send(type, payload, job_id=wanted))
        assert (answer["type"], answer["job_id"]) == ("job.error", wanted)
    listed = await raw.answer(await raw.send("session.list_jobs", {"limit": -1}))
    assert (listed["type"], listed["id"]) == ("job.error", listed["payload"]["request_id"])
    await raw.close()


async def test_amounts_are_numbers(begin):
    """7.1: in `job.accepted`, `job.subscribed` and metrics, with every digit that was given."""
    runtime = await begin()
    raw = await connected(runtime)
    accepted = await raw.submit("spending", {"amounts": ["0.10", 0.2]}, lease_request=BUDGET)
    job_id = accepted["job_id"]
    assert accepted["payload"]["budget"] == {"USD": 5.0}
    await raw.end(job_id)
    values = [m["payload"]["body"]["value"] for m in raw.events(job_id, "metric")]
    assert values
    assert all(isinstance(value, int | float) for value in values)
    answer = await raw.answer(await raw.send("job.subscribe", {"job_id": job_id}))
    assert isinstance(answer["payload"]["budget"]["USD"], float)
    await raw.close()


async def test_the_published_python_client_gets_text(begin):
    """Its hello names agents; it reads budgets only as text."""
    runtime = await begin()
    raw = dial(runtime)
    hello = {
        "client": {"name": "raw", "version": "1"},
        "auth": {"scheme": "bearer", "token": "alice-token"},
        "capabilities": {"encodings": ["json"], "features": ["subscribe"], "agents": []},
    }
    await raw.send("session.hello", hello, session_id=None)
    raw.session_id = (await raw.receive())["session_id"]
    accepted = await raw.submit("echo", 1, lease_request=BUDGET)
    assert accepted["payload"]["budget"] == {"USD": "5.00"}
    lease = {**BUDGET, "agent.delegate": ["*"]}
    job_id = (await raw.submit("delegating", {"agent": "echo", "input": 1}, lease_request=lease))["job_id"]
    child = await raw.until(lambda m: m["type"] == "job.accepted" and m["job_id"] != job_id)
    assert child["payload"]["budget"] == {"USD": "5.00"}
    await raw.close()


async def test_a_listing_has_every_member(begin):
    """`next_cursor` and `parent_job_id` are null if there is none, and `last_event_seq` is always a number."""
    runtime = await begin()
    raw = await connected(runtime)
    await raw.run("echo", 1)
    await raw.submit("waiting")
    await raw.until("job.event")
    page = (await raw.answer(await raw.send("session.list_jobs", {})))["payload"]
    assert page["next_cursor"] is None
    assert len(page["jobs"]) == 2
    for job in page["jobs"]:
        assert job["parent_job_id"] is None
        assert job["last_event_seq"] > 0
        assert job["lease"] == {"tool.call": ["**"]}
    first = (await raw.answer(await raw.send("session.list_jobs", {"limit": 1})))["payload"]
    assert isinstance(first["next_cursor"], str)
    await raw.close()


async def test_a_client_that_does_not_acknowledge_is_told(begin):
    """6.5, 8.2: one `status` event with the phase `back_pressure`, and another after it has caught up once."""
    runtime = await begin(limits={"unacknowledged": 20})
    raw = await connected(runtime)
    job_id = (await raw.submit("counting", {"count": 200}))["job_id"]
    await raw.end(job_id)

    def phases():
        bodies = [m["payload"]["body"] for m in raw.events(job_id, "status")]
        return [body["phase"] for body in bodies]

    assert phases() == ["back_pressure"]
    await raw.send("session.ack", {"last_processed_seq": raw.seen[-1]["event_seq"]})
    job_id = (await raw.submit("counting", {"count": 200}))["job_id"]
    await raw.end(job_id)
    assert phases() == ["back_pressure"]
    await raw.close()
    quiet = await connected(runtime, features=["progress"])
    job_id = (await quiet.submit("counting", {"count": 200}))["job_id"]
    await quiet.end(job_id)
    assert not quiet.events(job_id, "status")
    await quiet.close()


async def test_the_frames_fit_the_python_sdk(begin):
    """Envelope and payload of every message that our runtime sends; `make soak` checks them with the TypeScript SDK."""
    frames = await sent_frames(begin)
    types = {frame["type"] for frame in frames}
    assert types >= {"session.welcome", "session.error", "session.jobs", "job.subscribed", "job.cancelled"}
    assert types - PAYLOAD_REGISTRY.keys() == {"session.closed", "job.cancelled"}
    for frame in frames:
        Envelope.model_validate(frame)
        if frame["type"] == "job.error" and frame["payload"]["code"] == "NOT_OURS":
            continue
        if frame["type"] in PAYLOAD_REGISTRY:
            payload = dict(frame["payload"])
            if frame["type"] == "job.error":
                # Its client gets this status (test_interop.py); section 7.4 has others.
                payload["final_status"] = "error"
            if payload.get("budget"):
                # Its client gets text (below); section 7.1 has numbers.
                payload["budget"] = {name: str(value) for name, value in payload["budget"].items()}
            parse_payload(frame["type"], payload)


async def test_errors_for_the_typescript_sdk(begin):
    """Its client discards other codes, and INTERNAL_ERROR that is not retryable: it would wait for ever."""
    frames = await sent_frames(begin, TYPESCRIPT, TYPESCRIPT_ID)
    assert all("session_id" in frame for frame in frames)
    ends = [frame["payload"] for frame in frames if frame["type"] == "job.error"]
    assert {error["code"] for error in ends} == set(CODES)
    assert all(error["retryable"] for error in ends if error["code"] == "INTERNAL_ERROR")
    renamed = {
        details["code"]: error for error in ends if (details := error.get("details") or {}).get("code")
    }
    assert renamed.keys() == {"NOT_OURS", "INTERNAL_ERROR"}
    assert renamed["NOT_OURS"]["details"] == {"a": 1, "code": "NOT_OURS"}
    # What must not be repeated does not look as if it may be.
    assert renamed["INTERNAL_ERROR"]["code"] == "CANCELLED"
    assert not renamed["INTERNAL_ERROR"]["retryable"]
    # Any other client gets what the agent raised (S5: per-error overrides).
    ends = [frame["payload"] for frame in await sent_frames(begin) if frame["type"] == "job.error"]
    assert {error["code"] for error in ends} == {*CODES, "NOT_OURS"}
    assert {error["retryable"] for error in ends if error["code"] == "INTERNAL_ERROR"} == {True, False}
