"""Every code of R1 by its real condition, over WebSockets, in memory and on SQLite, in R2's shape with R4's details."""

from __future__ import annotations

import asyncio
import time

import pytest

from amends.arcp.transports import websocket
from amends.arcp.wire import text_of
from amends.errors.arcp_base import is_retryable_by_default
from tests.arcp.raw import Raw

SHAPE = {"code", "message", "retryable", "details"}
AROUND = {
    "session": set(),
    "refusal": {"final_status", "completed_at", "request_id"},
    "job": {"final_status", "completed_at"},
    "tool": set(),
}


async def refused_submission(raw, *, agent="echo", input=None, **more):
    answer = await raw.submit(agent, input, **more)
    assert "event_seq" not in answer
    return "refusal", answer["payload"]


async def job_error(raw, agent, input=None, **more):
    end = await raw.run(agent, input, **more)
    assert end["type"] == "job.error"
    return "job", end["payload"]


async def tool_error(raw, agent, input=None, **more):
    """Return the error of a `tool_result`; the job itself succeeds."""
    end = await raw.run(agent, input, **more)
    assert end["type"] == "job.result"
    (event,) = raw.events(end["job_id"], "tool_result")
    return "tool", event["payload"]["body"]["error"]


async def invalid_request(raw, reconnect):
    return await refused_submission(raw, agent="Not A Name")


async def unauthenticated(raw, reconnect):
    other = await reconnect()
    message = await other.hello("wrong-token")
    assert message["type"] == "session.error"
    assert await other.receive() is None
    return "session", message["payload"]


async def permission_denied(raw, reconnect):
    wants = [["fs.read", "/etc/passwd"]]
    return await tool_error(raw, "trying", {"wants": wants}, lease_request={"fs.read": ["/w/**"]})


async def job_not_found(raw, reconnect):
    request = await raw.send("job.cancel", {"reason": "r"}, job_id="job_unknown")
    return "refusal", (await raw.answer(request))["payload"]


async def agent_not_available(raw, reconnect):
    return await refused_submission(raw, agent="unknown")


async def agent_version_not_available(raw, reconnect):
    return await refused_submission(raw, agent="echo@9.9")


async def cancelled(raw, reconnect):
    accepted = await raw.submit("waiting")
    job_id = accepted["payload"]["job_id"]
    await raw.until("job.event")
    request = await raw.send("job.cancel", {"reason": "enough"}, job_id=job_id)
    assert (await raw.answer(request))["type"] == "job.cancelled"
    end = await raw.end(job_id)
    assert end["payload"]["final_status"] == "cancelled"
    return "job", end["payload"]


async def timeout(raw, reconnect):
    kind, payload = await job_error(raw, "waiting", max_runtime_sec=0.05)
    assert payload["final_status"] == "timed_out"
    return kind, payload


async def internal_error(raw, reconnect):
    kind, payload = await job_error(raw, "crashing")
    assert "hunter2" not in str(raw.seen)
    return kind, payload


async def lease_subset_violation(raw, reconnect):
    lease = {"agent.delegate": ["echo"], "fs.read": ["/w/**"]}
    wanted = {"agent": "echo", "lease": {"fs.read": ["/**"]}}
    return await tool_error(raw, "delegating", wanted, lease_request=lease)


async def lease_expired(raw, reconnect):
    return await job_error(
        raw,
        "expiring",
        lease_request={"fs.read": ["/w/**"]},
        lease_constraints={"expires_at": text_of(time.time() + 0.15)},
    )


async def budget_exhausted(raw, reconnect):
    lease = {"cost.budget": ["USD:0.30"], "tool.call": ["*"]}
    return await job_error(raw, "spending", {"amounts": [0.1, 0.2]}, lease_request=lease)


async def resume_window_expired(raw, reconnect):
    block = {**raw.resume_block(0), "session_id": "sess_00000000000000000000000000"}
    other = await reconnect()
    message = await other.hello(resume=block)
    assert message["type"] == "session.error"
    return "session", message["payload"]


async def heartbeat_lost(raw, reconnect):
    message = await raw.until("session.error")
    assert [m["type"] for m in raw.seen].count("session.ping") >= 1
    return "session", message["payload"]


async def duplicate_key(raw, reconnect):
    first = await raw.run("echo", 1, idempotency_key="k")
    assert first["type"] == "job.result"
    return await refused_submission(raw, input=2, idempotency_key="k")


CASES = {
    "INVALID_REQUEST": (invalid_request, {"field": "agent"}),
    "UNAUTHENTICATED": (unauthenticated, None),
    "PERMISSION_DENIED": (permission_denied, {"capability": "fs.read", "target": "/etc/passwd"}),
    "JOB_NOT_FOUND": (job_not_found, None),
    "AGENT_NOT_AVAILABLE": (agent_not_available, {"agent": "unknown"}),
    "AGENT_VERSION_NOT_AVAILABLE": (
        agent_version_not_available,
        {"agent": "echo", "version": "9.9", "available": ["1.0.0"]},
    ),
    "CANCELLED": (cancelled, {"reason": "enough"}),
    "TIMEOUT": (timeout, {"max_runtime_sec": 0.05}),
    "INTERNAL_ERROR": (internal_error, None),
    "LEASE_SUBSET_VIOLATION": (lease_subset_violation, {"capability": "fs.read", "pattern": "/**"}),
    "LEASE_EXPIRED": (lease_expired, {"capability": "fs.read", "target": "/w/a"}),
    "BUDGET_EXHAUSTED": (budget_exhausted, {"currency": "USD", "capability": "tool.call"}),
    "RESUME_WINDOW_EXPIRED": (resume_window_expired, None),
    "HEARTBEAT_LOST": (heartbeat_lost, None),
    "DUPLICATE_KEY": (duplicate_key, "job_id"),
}


@pytest.mark.parametrize("code", CASES)
async def test_every_code_has_its_condition_and_one_shape(code, store_url, begin):
    """R1, R2, R4, R8, R11: each code is caused end to end, not raised by the test."""
    provoke, details = CASES[code]
    runtime = await begin(store_url, limits={"heartbeat": 0.15 if code == "HEARTBEAT_LOST" else 30.0})
    async with runtime.listen("127.0.0.1", 0) as listening:

        async def reconnect():
            return Raw(await websocket.dial(listening.url))

        raw = await reconnect()
        assert (await raw.hello())["type"] == "session.welcome"
        where, payload = await provoke(raw, reconnect)
        assert payload["code"] == code
        assert SHAPE - {"details"} <= set(payload) <= SHAPE | AROUND[where]
        assert payload["message"]
        assert payload["retryable"] is is_retryable_by_default(code)
        if details is None:
            assert set(payload.get("details", ())) <= {"amends"}
        elif isinstance(details, str):
            assert details in payload["details"]
        else:
            assert payload["details"].items() >= details.items()
        await raw.close()


@pytest.mark.parametrize("code", [*CASES, "OUT_OF_STOCK"])
async def test_what_an_agent_raises_arrives_as_raised(code, begin):
    """R3, R4: code, message, retryable and details, for every code and for a code of the agent's own."""
    runtime = await begin()
    from tests.arcp.raw import connected

    raw = await connected(runtime)
    details = {"a": [1, None, {"b": "ü"}], "n": 1.5}
    for retryable in (None, True, False):
        end = await raw.run("raising", {"code": code, "details": details, "retryable": retryable})
        payload = end["payload"]
        assert end["type"] == "job.error"
        assert (payload["code"], payload["message"], payload["details"]) == (code, "as raised", details)
        expected = is_retryable_by_default(code) if retryable is None else retryable
        assert payload["retryable"] is expected
    await raw.close()


async def test_errors_of_other_vocabularies_are_translated(begin):
    """An everyday error is translated to ARCP's vocabulary and keeps its recovery."""
    from tests.arcp.raw import connected

    raw = await connected(await begin())
    payload = (await raw.run("everyday"))["payload"]
    assert payload["retryable"] is True
    assert payload["details"]["translated_from"]["code"] == "RATE_LIMITED"
    await raw.close()


async def test_nothing_of_a_foreign_exception_leaves(begin, caplog):
    """R3: the runtime logs the exception with the trace id and sends a generic message; SystemExit ends only the job."""
    from tests.arcp.raw import connected

    raw = await connected(await begin())
    trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    for agent in ("crashing", "exiting"):
        end = await raw.run(agent, trace_id=trace)
        assert end["payload"]["code"] == "INTERNAL_ERROR"
        assert set(end["payload"].get("details", ())) <= {"amends"}
    assert "hunter2" not in str(raw.seen)
    assert "hunter2" in caplog.text
    assert trace in caplog.text
    assert (await raw.run("echo", 1))["payload"]["result"] == 1
    await raw.close()
    await asyncio.sleep(0)
