"""Jobs: their events and results, how they are stopped, what they may do, and delegation."""

from __future__ import annotations

import asyncio

import pytest

from amends.arcp import Runtime, errors
from tests.arcp.raw import connected, dial

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


# -- events and results


async def test_every_kind_of_event(store_url, begin):
    """8.2: every kind with its body, in order, numbered without gaps, with the trace id of the submission."""
    raw = await connected(await begin(store_url))
    end = await raw.run("talking", {"x": 1}, trace_id=TRACE)
    events = raw.events(end["job_id"])
    assert [(m["payload"]["kind"], m["payload"]["body"]) for m in events] == [
        ("log", {"level": "warn", "message": "a line"}),
        ("thought", {"text": "hm"}),
        ("status", {"phase": "working", "message": "on it"}),
        ("metric", {"name": "rows", "value": 3, "unit": "rows", "dimensions": {"table": "t"}}),
        ("progress", {"current": 1, "total": 2, "units": "files", "message": "half"}),
        ("artifact_ref", {"uri": "arcp://a", "content_type": "text/plain", "byte_size": 3, "sha256": "00"}),
        ("x-vendor.note", {"n": 1}),
        (
            "tool_call",
            {"tool": "search", "args": {"q": 1}, "call_id": events[7]["payload"]["body"]["call_id"]},
        ),
        (
            "tool_result",
            {"call_id": events[7]["payload"]["body"]["call_id"], "result": {"hits": 2}},
        ),
    ]
    assert [m["event_seq"] for m in [*events, end]] == list(range(1, 11))
    assert {m["trace_id"] for m in raw.seen[1:]} == {TRACE}
    assert end["payload"]["result"] == {
        "run": 1,
        "trace": TRACE,
        "agent": "talking@1.0.0",
        "principal": "alice",
    }
    await raw.close()


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (f"00-{TRACE}-00f067aa0ba902b7-01", TRACE),
        (TRACE, TRACE),
        ("0" * 32, None),
        ("garbage", None),
        (None, None),
    ],
)
async def test_trace_ids_are_taken_or_generated(given, expected, begin):
    """11: a trace id or a traceparent is used; anything else gives a new id."""
    raw = await connected(await begin())
    end = await raw.run("echo", 1, trace_id=given)
    assert len(end["trace_id"]) == 32
    assert int(end["trace_id"], 16)
    assert expected in {None, end["trace_id"]}
    await raw.close()


async def test_invalid_events_raise_in_the_agent(begin):
    """Negative progress, a kind without the vendor prefix, and an error without a code raise."""
    seen = []

    async def wrong(input, ctx):
        for call in (
            lambda: ctx.progress(-1),
            lambda: ctx.event("log", {}),
            lambda: ctx.tool_result("c", error={"message": "m"}),
        ):
            try:
                await call()
            except (ValueError, TypeError) as error:
                seen.append(type(error))

    runtime = await begin()
    runtime.register_agent("wrong", wrong)
    raw = await connected(runtime)
    assert (await raw.run("wrong"))["type"] == "job.result"
    assert seen == [ValueError, ValueError, TypeError]
    await raw.close()


async def test_results_in_chunks(store_url, begin):
    """8.4: chunks are numbered from 0, the last one is marked, large ones are split; text, bytes and generators."""
    from base64 import b64decode

    raw = await connected(await begin(store_url, limits={"chunk_bytes": 40}))
    pieces = ["first ", "x" * 25, "", "ü" * 9]
    for agent, binary in (("streaming", False), ("streaming", True), ("yielding", False)):
        end = await raw.run(agent, {"pieces": pieces, "binary": binary})
        chunks = [m["payload"]["body"] for m in raw.events(end["job_id"], "result_chunk")]
        assert [chunk["chunk_seq"] for chunk in chunks] == list(range(len(chunks)))
        assert [chunk["more"] for chunk in chunks] == [True] * (len(chunks) - 1) + [False]
        assert {chunk["result_id"] for chunk in chunks} == {end["payload"]["result_id"]}
        assert "result" not in end["payload"]
        assert end["payload"]["result_size"] == len("".join(pieces).encode())
        assert end["payload"].get("summary") == ("a summary" if agent == "streaming" else None)
        if binary:
            assert b"".join(b64decode(chunk["data"]) for chunk in chunks).decode() == "".join(pieces)
        else:
            assert "".join(chunk["data"] for chunk in chunks) == "".join(pieces)
            assert len(chunks) > 4
    await raw.close()


@pytest.mark.parametrize("store_url", ["memory", "sqlite", "nats"], indirect=True)
async def test_sessions_without_chunks_get_the_whole_result(store_url, begin):
    """8.4 with 6.2: a session without `result_chunk` gets a streamed result in one message, numbered without a gap."""
    from base64 import b64decode

    runtime = await begin(store_url, limits={"chunk_bytes": 40})
    raw = await connected(runtime, features=["ack", "progress"])
    pieces = ["first ", 'x"' * 20, "", "ü" * 9]
    for agent, binary in (("streaming", False), ("streaming", True), ("yielding", False)):
        end = await raw.run(agent, {"pieces": pieces, "binary": binary})
        assert raw.events(end["job_id"], "result_chunk") == []
        assert not {"result_id", "result_size"} & set(end["payload"])
        result = end["payload"]["result"]
        if binary:
            assert result["encoding"] == "base64"
            result = b64decode(result["data"]).decode()
        assert result == "".join(pieces)
        assert end["payload"].get("summary") == ("a summary" if agent == "streaming" else None)
    assert (await raw.run("yielding", {"pieces": []}))["payload"]["result"] == ""
    numbers = [m["event_seq"] for m in raw.seen if "event_seq" in m]
    assert numbers == list(range(1, len(numbers) + 1))
    await raw.close()


async def test_whole_results_after_resume_and_repeated_keys(store_url, begin):
    """After a replay, a repeated key or a subscription in another session the result is whole as well."""
    runtime = await begin(store_url)
    work = {"pieces": ["a", "b"], "binary": False}
    chunked = await connected(runtime)
    job_id = (await chunked.run("streaming", work, idempotency_key="k"))["job_id"]
    raw = await connected(runtime, features=["subscribe"])
    assert (await raw.run("streaming", work, idempotency_key="k"))["payload"]["result"] == "ab"
    again = dial(runtime)
    welcome = await again.hello(resume=raw.resume_block(0), features=["subscribe"])
    assert welcome["type"] == "session.welcome"
    assert (await again.end(job_id))["payload"]["result"] == "ab"
    await again.send("job.subscribe", {"job_id": job_id, "history": True})
    assert (await again.end(job_id))["payload"]["result"] == "ab"
    assert again.events(job_id, "result_chunk") == []
    for one in (chunked, raw, again):
        await one.close()


@pytest.mark.parametrize("piece", ["x" * 300, "\x00" * 60])
async def test_a_streamed_result_that_is_too_large_to_be_whole(store_url, begin, piece):
    """If the result, or its JSON form, exceeds the limit, the session gets an error; the job has succeeded."""
    runtime = await begin(store_url, limits={"result_bytes": 200})
    raw = await connected(runtime, features=["list_jobs"])
    end = await raw.run("yielding", {"pieces": [piece]}, idempotency_key="k")
    assert (end["type"], end["payload"]["code"], end["payload"]["retryable"]) == (
        "job.error",
        "INTERNAL_ERROR",
        False,
    )
    assert end["payload"]["details"] == {
        "limit": "result_bytes",
        "value": 200,
        "result_size": len(piece),
        "feature": "result_chunk",
        "executed": "yes",
    }
    listed = await raw.answer(await raw.send("session.list_jobs", {}))
    assert [job["status"] for job in listed["payload"]["jobs"]] == ["success"]
    chunked = await connected(runtime)
    assert (await chunked.run("yielding", {"pieces": [piece]}, idempotency_key="k"))["payload"]["result_id"]
    await raw.close()
    await chunked.close()


async def test_a_streamed_result_is_closed(begin):
    """14: a result beyond the limit fails the job without a retry; only text and bytes can be streamed."""
    runtime = await begin(limits={"streamed_bytes": 100})

    async def numbers(input, ctx):
        yield 1

    async def closed(input, ctx):
        stream = ctx.result_chunks()
        await stream.close()
        await stream.write("more")

    runtime.register_agent("numbers", numbers)
    runtime.register_agent("closed", closed)
    raw = await connected(runtime)
    payload = (await raw.run("yielding", {"pieces": ["x" * 60, "x" * 60]}))["payload"]
    assert (payload["code"], payload["retryable"]) == ("INVALID_REQUEST", False)
    assert payload["details"] == {"limit": "streamed_bytes", "value": 100}
    for agent in ("numbers", "closed"):
        assert (await raw.run(agent))["payload"]["code"] == "INTERNAL_ERROR"
    empty = await raw.run("yielding", {"pieces": []})
    assert empty["payload"]["result_size"] == 0
    await raw.close()


async def test_values_that_are_not_json(begin, caplog):
    """A result that cannot be encoded fails the job and is logged; such a value in details is replaced."""
    runtime = await begin()

    async def unreadable(input, ctx):
        return object()

    async def unreadable_details(input, ctx):
        raise errors.PermissionDeniedError("no", details={"x": object(), "y": 1})

    runtime.register_agent("unreadable", unreadable)
    runtime.register_agent("unreadable-details", unreadable_details)
    raw = await connected(runtime)
    assert (await raw.run("unreadable"))["payload"]["code"] == "INTERNAL_ERROR"
    payload = (await raw.run("unreadable-details"))["payload"]
    assert payload["code"] == "PERMISSION_DENIED"
    assert payload["details"] == {"x": "[redacted]", "y": 1}
    await raw.close()


async def test_features_that_were_not_negotiated_are_not_used(begin):
    """6.2: sessions without the features get no progress and no chunks; lists and subscriptions are refused."""
    runtime = await begin()
    raw = await connected(runtime, features=["ack"])
    end = await raw.run("talking")
    assert not raw.events(end["job_id"], "progress")
    assert [m["event_seq"] for m in [*raw.events(end["job_id"]), end]] == list(range(1, 10))
    assert "heartbeat_interval_sec" not in raw.welcome
    for type in ("session.list_jobs", "job.subscribe"):
        request = await raw.send(type, {"job_id": end["job_id"]})
        answer = await raw.answer(request)
        assert answer["payload"]["code"] == "INVALID_REQUEST"
        assert answer["payload"]["details"]["feature"] in {"list_jobs", "subscribe"}
    await raw.close()


# -- versions


async def test_versions_are_resolved_at_submission(begin):
    """7.5: a name means its default version, `name@version` exactly that one, and the answer contains the version."""
    runtime = await begin()

    async def second(input, ctx):
        return "second"

    runtime.register_agent("echo", second, version="2.0.0")
    raw = await connected(runtime)
    assert (await raw.submit("echo", 1))["payload"]["agent"] == "echo@1.0.0"
    assert (await raw.run("echo@2.0.0", 1))["payload"]["result"] == "second"
    agents = {agent["name"]: agent for agent in raw.welcome["capabilities"]["agents"]}
    assert agents["echo"] == {"name": "echo", "versions": ["1.0.0", "2.0.0"], "default": "1.0.0"}
    runtime.register_agent("echo", second, version="3.0.0-rc+1", default=True)
    assert (await raw.submit("echo", 1))["payload"]["agent"] == "echo@3.0.0-rc+1"
    await raw.close()


def test_registration_is_validated():
    """Invalid registrations raise."""
    runtime = Runtime(tokens="t")

    @runtime.register_agent("a", version="1")
    async def agent(input, ctx):
        return input

    assert agent.__name__ == "agent"
    for name, function, version, kind in [
        ("Upper", agent, "1", ValueError),
        ("a", agent, "1", ValueError),
        ("b", agent, "1 2", ValueError),
        ("c", "nothing", "1", TypeError),
    ]:
        with pytest.raises(kind):
            runtime.register_agent(name, function, version=version)


# -- stopping


# -- leases


async def test_authorize_reports_refusals(begin):
    """9.3, R8: every refusal is also reported as a `tool_result`, and the agent continues."""
    raw = await connected(await begin())
    wants = [
        ["fs.read", "/w/a"],
        ["fs.read", "/w/../etc/passwd"],
        ["fs.write", "/w/a"],
        ["model.use", "tier-fast/x"],
        ["net.fetch", "https://evil.example/"],
    ]
    lease = {"fs.read": ["/w/**"], "model.use": ["tier-fast/*"]}
    end = await raw.run("trying", {"wants": wants}, lease_request=lease)
    assert end["payload"]["result"] == ["PERMISSION_DENIED"] * 3
    errors = [m["payload"]["body"]["error"] for m in raw.events(end["job_id"], "tool_result")]
    assert [error["details"]["target"] for error in errors] == [
        "/w/../etc/passwd",
        "/w/a",
        "https://evil.example/",
    ]
    await raw.close()


async def test_a_tool_call_that_the_lease_denies(begin):
    """R8: the call and its refusal are reported under its id; without `tool.call` in the lease no check is made."""
    runtime = await begin()
    raw = await connected(runtime)
    end = await raw.run("calling", lease_request={"tool.call": ["other"]})
    assert end["payload"]["code"] == "PERMISSION_DENIED"
    kinds = [(m["payload"]["kind"], m["payload"]["body"]["call_id"]) for m in raw.events(end["job_id"])]
    assert kinds == [("tool_call", "c1"), ("tool_result", "c1")]
    assert (await raw.run("calling"))["payload"]["result"] == "alive"
    await raw.close()


async def test_a_tool_error_does_not_end_the_job(store_url, begin):
    """R7, R2, R4: the error in the `tool_result` has the common shape, with the given members."""
    raw = await connected(await begin(store_url))
    end = await raw.run("calling")
    assert end["payload"]["result"] == "alive"
    first, second = (m["payload"]["body"] for m in raw.events(end["job_id"], "tool_result"))
    assert first == {
        "call_id": "c1",
        "error": {
            "code": "INVALID_REQUEST",
            "message": "404 from upstream",
            "retryable": False,
            "details": {"status": 404, "url": "u"},
        },
    }
    assert second["error"] == {"code": "NOT_OURS", "message": "m", "retryable": True}
    await raw.close()


async def test_budgets_are_decimal(begin):
    """9.6: decimal arithmetic; only non-negative costs in a budgeted currency count; the rest is reported."""
    raw = await connected(await begin())
    lease = {"cost.budget": ["USD:1.00"], "tool.call": ["*"]}
    end = await raw.run("spending", {"amounts": [0.1] * 9 + [-5]}, lease_request=lease)
    assert end["payload"]["result"] == {"USD": "0.10"}
    left = [
        m["payload"]["body"]["value"]
        for m in raw.events(end["job_id"], "metric")
        if m["payload"]["body"]["name"] == "cost.budget.remaining"
    ]
    assert left == [0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.1]
    accepted = next(m for m in raw.seen if m["type"] == "job.accepted")
    assert accepted["payload"]["budget"] == {"USD": 1.0}
    assert accepted["payload"]["lease"] == lease
    end = await raw.run("spending", {"amounts": [0.1] * 10}, lease_request=lease)
    assert end["payload"]["code"] == "BUDGET_EXHAUSTED"
    await raw.close()


# -- delegation


async def test_delegating_a_part(store_url, begin):
    """10: the child is a job in the same session and trace, under a part of the lease, and its result is returned."""
    raw = await connected(await begin(store_url))
    lease = {"agent.delegate": ["echo", "streaming", "spending"], "fs.read": ["/w/**"]}
    end = await raw.run(
        "delegating",
        {"agent": "echo", "input": {"deep": [1]}, "lease": {"fs.read": ["/w/x/**"]}},
        lease_request=lease,
        trace_id=TRACE,
    )
    assert end["payload"]["result"]["result"] == {"deep": [1]}
    (event,) = raw.events(end["job_id"], "delegate")
    body = event["payload"]["body"]
    child = next(m for m in raw.seen if m["type"] == "job.accepted" and m["job_id"] != end["job_id"])[
        "payload"
    ]
    assert child["parent_job_id"] == end["job_id"]
    assert child["delegate_id"] == body["delegate_id"]
    assert child["lease"] == {"fs.read": ["/w/x/**"]}
    assert child["trace_id"] == TRACE
    assert [m["event_seq"] for m in raw.seen if "event_seq" in m] == [1, 2, 3]
    end = await raw.run(
        "delegating", {"agent": "streaming", "input": {"pieces": ["a", "b"]}}, lease_request=lease
    )
    assert end["payload"]["result"]["result"] == "ab"
    end = await raw.run(
        "delegating", {"agent": "streaming", "input": {"pieces": ["a"], "binary": True}}, lease_request=lease
    )
    assert end["payload"]["result"]["result"] == "a"
    await raw.close()


async def test_refused_delegations_raise_in_the_agent(begin):
    """R8: PERMISSION_DENIED without agent.delegate, LEASE_SUBSET_VIOLATION beyond the lease, and malformed requests."""
    raw = await connected(await begin())
    lease = {"agent.delegate": ["echo"], "cost.budget": ["USD:1.00"]}
    for wanted, code in [
        ({"agent": "talking"}, "PERMISSION_DENIED"),
        ({"agent": "echo", "lease": {"cost.budget": ["USD:1.01"]}}, "LEASE_SUBSET_VIOLATION"),
        ({"agent": "echo", "lease": {"fs.read": ["/**"]}}, "LEASE_SUBSET_VIOLATION"),
        ({"agent": "unknown"}, "AGENT_NOT_AVAILABLE"),
        ({"agent": "echo@7"}, "AGENT_VERSION_NOT_AVAILABLE"),
        ({"agent": "echo", "lease": {"fs.read": ["a/../b"]}}, "INVALID_REQUEST"),
        ({"agent": "echo", "expires_at": "yesterday"}, "INVALID_REQUEST"),
    ]:
        end = await raw.run("delegating", wanted, lease_request=lease)
        assert end["payload"]["result"]["code"] == code
        (event,) = raw.events(end["job_id"], "tool_result")
        (asked,) = raw.events(end["job_id"], "delegate")
        assert event["payload"]["body"]["error"]["code"] == code
        assert event["payload"]["body"]["call_id"] == asked["payload"]["body"]["delegate_id"]
    await raw.close()


async def test_a_failed_child_raises_its_error(begin):
    """The parent's agent gets the child's code and details."""
    raw = await connected(await begin())
    wanted = {"agent": "raising", "input": {"code": "TIMEOUT", "details": {"x": 1}}}
    end = await raw.run("delegating", wanted, lease_request={"agent.delegate": ["*"]})
    assert end["payload"]["result"] == {"code": "TIMEOUT", "details": {"x": 1}, "budget": {}}
    await raw.close()


async def test_a_delegated_budget_is_spent_once(begin):
    """9.4: the child's share is deducted first, the rest is added back, and the cost is reported."""
    raw = await connected(await begin())
    lease = {"agent.delegate": ["*"], "cost.budget": ["USD:1.00"], "tool.call": ["*"]}
    child = {
        "agent": "spending",
        "input": {"amounts": [0.3]},
        "lease": {"cost.budget": ["USD:0.50"], "tool.call": ["*"]},
    }
    end = await raw.run("delegating", child, lease_request=lease)
    assert end["payload"]["result"] == {"result": {"USD": "0.20"}, "budget": {"USD": "0.70"}}
    costs = [m["payload"]["body"] for m in raw.events(end["job_id"], "metric")]
    assert costs == [{"name": "cost.delegated", "value": 0.3, "unit": "USD"}]
    await raw.close()


async def test_children_end_with_their_parent(store_url, begin):
    """9.8.2: the children of an ended job are cancelled."""
    raw = await connected(await begin(store_url, limits={"running": 2}))
    lease = {"agent.delegate": ["*"]}
    parent = (await raw.submit("delegating", {"agent": "waiting"}, lease_request=lease))["payload"]["job_id"]
    child = (await raw.until(lambda m: m["type"] == "job.accepted" and m["job_id"] != parent))["job_id"]
    await raw.until(lambda m: m.get("job_id") == child and m["type"] == "job.event")
    await raw.send("job.cancel", {}, job_id=parent)
    assert (await raw.end(parent))["payload"]["code"] == "CANCELLED"
    assert (await raw.end(child))["payload"]["code"] == "CANCELLED"
    await raw.close()


# -- capacity


async def test_jobs_beyond_capacity_wait_in_the_queue(store_url, begin):
    """All jobs run, never more at the same time than the limit."""
    runtime = await begin(store_url, limits={"running": 3})
    running, most = 0, 0

    async def counted(input, ctx):
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.01)
        running -= 1
        return input

    runtime.register_agent("counted", counted)
    raw = await connected(runtime)
    for number in range(20):
        await raw.send("job.submit", {"agent": "counted", "input": number})
    results = [(await raw.until("job.result"))["payload"]["result"] for _ in range(20)]
    assert sorted(results) == list(range(20))
    assert most == 3
    numbers = [m["event_seq"] for m in raw.seen if "event_seq" in m]
    assert numbers == list(range(1, 21))
    await raw.close()


async def test_jobs_per_principal_are_limited(begin):
    """14: the limit is per principal; others are not affected, and an ended job makes room."""
    runtime = await begin(limits={"jobs_per_principal": 2})
    raw, other = await connected(runtime), await connected(runtime, "bob-token")
    jobs = [(await raw.submit("waiting"))["payload"]["job_id"] for _ in range(2)]
    refused = (await raw.submit("echo"))["payload"]
    assert (refused["code"], refused["retryable"]) == ("INTERNAL_ERROR", True)
    assert refused["details"] == {"limit": "jobs_per_principal", "value": 2}
    assert (await other.run("echo", 1))["type"] == "job.result"
    await raw.send("job.cancel", {}, job_id=jobs[0])
    await raw.end(jobs[0])
    assert (await raw.run("echo", 1))["type"] == "job.result"
    await asyncio.gather(raw.close(), other.close())


@pytest.mark.parametrize(
    "payload",
    [
        {},
        {"agent": 1},
        {"agent": "echo@"},
        {"agent": "a" * 200},
        {"agent": "echo", "idempotency_key": ""},
        {"agent": "echo", "idempotency_key": "k" * 300},
        {"agent": "echo", "max_runtime_sec": 0},
        {"agent": "echo", "max_runtime_sec": -1},
        {"agent": "echo", "max_runtime_sec": "soon"},
        {"agent": "echo", "lease_request": {"fs.read": "x"}},
        {"agent": "echo", "lease_request": {"no such": ["x"]}},
        {"agent": "echo", "lease_constraints": {"expires_at": "tomorrow"}},
    ],
)
async def test_a_malformed_submission_ends_only_its_request(payload, begin):
    """INVALID_REQUEST with the request's id; the session continues."""
    raw = await connected(await begin())
    request = await raw.send("job.submit", payload)
    answer = await raw.answer(request)
    assert (answer["type"], answer["payload"]["code"]) == ("job.error", "INVALID_REQUEST")
    assert answer["id"] == request
    assert (await raw.run("echo", 1))["type"] == "job.result"
    await raw.close()
