"""Thirty cases of our client on a runtime of the TypeScript SDK (server.mjs). Each takes a function that opens a client."""

import asyncio
import re
import time

import pytest

from amends import Policy
from amends.arcp import Settings
from amends.errors.base import FaultError
from tests.arcp.typescript.agents import TOKEN

CASES = []


def case(function):
    CASES.append(function)
    return function


async def failure(awaitable):
    """The error that it raises."""
    with pytest.raises(FaultError) as caught:
        await awaitable
    return caught.value


async def run(client, agent, given=None, **job):
    return await (await client.submit(agent, given, **job)).done


async def messages(handle):
    return [event.body["message"] async for event in handle.events() if event.kind == "log"]


def later(seconds):
    return time.time() + seconds


# -- sessions


@case
async def the_welcome(connect):
    async with connect(token=TOKEN) as client:
        assert {"heartbeat", "ack", "list_jobs", "subscribe", "result_chunk"} <= client.features
        assert client.agents["pinned"].versions == ["1.0.0", "2.0.0"]
        assert client.agents["pinned"].default == "2.0.0"


@case
async def a_wrong_token(connect):
    async def opening():
        async with connect(token="wrong"):
            pass

    assert (await failure(opening())).code == "UNAUTHENTICATED"


@case
async def heartbeats_of_an_idle_session(connect):
    """Both sides are silent for longer than two heartbeats of two seconds."""
    async with connect(token=TOKEN) as client:
        await asyncio.sleep(5)
        assert await run(client, "echo", 1) == 1


@case
async def a_lost_connection(connect):
    """The session is resumed. The runtime does not report the job that it ended because of the connection; `done` raises."""
    async with connect(token=TOKEN) as client:
        session = client.session_id
        handle = await client.submit("ticks", {"count": 20, "pause": 50})
        await anext(aiter(handle.events()))
        client._session._outbox.connection._connection._socket.transport.abort()
        error = await failure(run_to_end(handle))
        assert (error.code, error.details["reason"]) == ("HEARTBEAT_LOST", "job_lost")
        assert await run(client, "echo", 2) == 2
        assert client.session_id == session


@case
async def resuming_on_demand(connect):
    """Also if the client has every event."""
    async with connect(token=TOKEN) as client:
        session = client.session_id
        assert await run(client, "echo", 1) == 1
        await client.resume()
        assert await run(client, "echo", 2) == 2
        assert client.session_id == session


@case
async def continuing_a_session_elsewhere(connect):
    client = await connect(token=TOKEN)
    session = client.session_id
    ticket = await client.detach()
    async with connect(token=TOKEN, ticket=ticket) as again:
        assert again.session_id == session
        assert await run(again, "echo", 1) == 1


# -- results


@case
async def a_result(connect):
    async with connect(token=TOKEN) as client:
        given = {"a": [1, 2.5, None, "ü😀"], "b": {}}
        assert await run(client, "echo", given) == given


@case
async def fifty_jobs_at_once(connect):
    async with connect(token=TOKEN) as client:
        handles = [await client.submit("echo", number) for number in range(50)]
        assert [await handle.done for handle in handles] == list(range(50))


@case
async def every_kind_of_event(connect):
    async with connect(token=TOKEN) as client:
        handle = await client.submit("talk")
        kinds = [event.kind async for event in handle.events()]
        assert kinds[-7:] == [
            *("status", "log", "thought", "progress", "metric", "artifact_ref", "x-vendor.test.note")
        ]
        assert await handle.done == "done"


@case
async def a_result_in_chunks(connect):
    async with connect(token=TOKEN) as client:
        handle = await client.submit("chunks", {"count": 9})
        assert await handle.done == "".join(f"part {n} é\n" for n in range(9)) + "end"
        assert handle.summary == "parts"


@case
async def bytes_in_chunks(connect):
    async with connect(token=TOKEN) as client:
        assert await run(client, "bytes") == b"\x00\xff\x01"


@case
async def a_thousand_events(connect):
    """More than the runtime leaves unacknowledged without a `back_pressure` status."""
    async with connect(token=TOKEN) as client:
        handle = await client.submit("ticks", {"count": 1000})
        logs = [event async for event in handle.events() if event.kind == "log"]
        assert len(logs) + handle.missed == 1000
        assert await handle.done == {"count": 1000}


# -- failures of jobs


@case
async def a_denied_job(connect):
    async with connect(token=TOKEN) as client:
        error = await failure(run(client, "denied"))
        assert (error.code, error.retryable) == ("PERMISSION_DENIED", False)


@case
async def an_internal_error(connect):
    """The runtime sends `retryable: true` with this code whatever the agent chose (section 12)."""
    async with connect(token=TOKEN) as client:
        error = await failure(run(client, "once"))
        assert (error.code, error.retryable) == ("INTERNAL_ERROR", True)


@case
async def an_unhandled_error(connect):
    async with connect(token=TOKEN) as client:
        error = await failure(run(client, "broken"))
        assert (error.code, error.retryable) == ("INTERNAL_ERROR", True)


@case
async def an_invalid_input(connect):
    async with connect(token=TOKEN) as client:
        error = await failure(run(client, "refuse"))
        assert (error.code, error.retryable) == ("INVALID_REQUEST", False)


@case
async def a_time_out(connect):
    async with connect(token=TOKEN) as client:
        error = await failure(run(client, "slow", max_runtime_sec=1))
        assert (error.code, error.retryable) == ("TIMEOUT", True)


@case
async def a_cancellation(connect):
    async with connect(token=TOKEN) as client:
        handle = await client.submit("slow")
        await anext(aiter(handle.events()))
        await handle.cancel()
        error = await failure(run_to_end(handle))
        assert (error.code, error.retryable) == ("CANCELLED", False)


async def run_to_end(handle):
    return await handle.done


@case
async def retries_under_one_key(connect):
    """The runtime repeats the stored failure; recovery gives up within its policy and raises it."""
    async with connect(token=TOKEN) as client:
        trying = client.submit_with_recovery("broken", policy=Policy(attempts=2))
        assert (await failure(trying)).code == "INTERNAL_ERROR"


# -- refusals


@case
async def an_unknown_agent(connect):
    async with connect(token=TOKEN) as client:
        assert (await failure(client.submit("unknown"))).code == "AGENT_NOT_AVAILABLE"
        assert (await failure(client.submit("Not A Name!"))).code == "INVALID_REQUEST"
        assert await run(client, "echo", 1) == 1


@case
async def versions(connect):
    async with connect(token=TOKEN) as client:
        assert await run(client, "pinned") == "two"
        handle = await client.submit("pinned@1.0.0")
        assert (handle.agent, await handle.done) == ("pinned@1.0.0", "one")
        assert (await failure(client.submit("pinned@9"))).code == "AGENT_VERSION_NOT_AVAILABLE"


@case
async def a_repeated_key(connect):
    async with connect(token=TOKEN) as client:
        first = await client.submit("echo", 1, idempotency_key=f"k{time.time_ns()}-1")
        assert await first.done == 1
        key = f"k{time.time_ns()}"
        first = await client.submit("echo", 1, idempotency_key=key)
        again = await client.submit("echo", 1, idempotency_key=key)
        assert first.job_id == again.job_id
        assert await first.done == await again.done == 1
        assert (await failure(client.submit("echo", 2, idempotency_key=key))).code == "DUPLICATE_KEY"


@case
async def a_key_repeated_in_flight(connect):
    async with connect(token=TOKEN) as client:
        key, given = f"k{time.time_ns()}", {"count": 5, "pause": 20}
        handles = await asyncio.gather(
            *(client.submit("ticks", given, idempotency_key=key) for _ in range(3))
        )
        assert len({handle.job_id for handle in handles}) == 1
        assert [await handle.done for handle in handles] == [{"count": 5}] * 3


@case
async def unknown_jobs(connect):
    async with connect(token=TOKEN) as client:
        assert (await failure(client.subscribe("job_unknown"))).code == "JOB_NOT_FOUND"
        assert (await failure(client.cancel("job_unknown"))).code == "JOB_NOT_FOUND"


@case
async def a_lease_that_has_expired(connect):
    async with connect(token=TOKEN) as client:
        lease = {"fs.read": ["/a/**"]}
        assert (
            await failure(client.submit("read", {}, lease=lease, expires_at=1.0))
        ).code == "INVALID_REQUEST"


# -- leases


@case
async def what_a_lease_allows(connect):
    async with connect(token=TOKEN) as client:
        lease = {"fs.read": ["/a/**"]}
        assert await run(client, "read", {"path": "/a/b"}, lease=lease) == "read"
        error = await failure(run(client, "read", {"path": "/etc/passwd"}, lease=lease))
        assert (error.code, error.retryable) == ("PERMISSION_DENIED", False)
        late = {"path": "/a/b", "wait": 1500}
        error = await failure(run(client, "read", late, lease=lease, expires_at=later(1)))
        assert (error.code, error.retryable) == ("LEASE_EXPIRED", False)


@case
async def a_budget(connect):
    async with connect(token=TOKEN) as client:
        lease = {"tool.call": ["*"], "cost.budget": ["USD:1.00"]}
        handle = await client.submit("spend", {"calls": 9, "cost": 0.3}, lease=lease)
        assert handle.accepted.budget == {"USD": 1}
        error = await failure(run_to_end(handle))
        assert (error.code, error.retryable) == ("BUDGET_EXHAUSTED", False)


@case
async def tool_results_and_delegations(connect):
    """The error of a tool does not end a job; a refused delegation does not either; a child is a job of its own."""
    async with connect(token=TOKEN) as client:
        handle = await client.submit("tools", lease={"tool.call": ["*"]})
        results = [event.body async for event in handle.events() if event.kind == "tool_result"]
        assert results[0]["error"]["details"]["status"] == 404
        assert await handle.done == {}
        lease = {"agent.delegate": ["*"], "fs.read": ["/a/**"]}
        assert await run(client, "parent", {}, lease=lease) == "parent"
        wide = {"lease": {"fs.read": ["/**"]}}
        assert await run(client, "parent", wide, lease=lease) == "parent"


@case
async def credentials(connect):
    async with connect(token=TOKEN) as client:
        handle = await client.submit("echo", 1, lease={"model.use": ["fast/*"]})
        assert re.fullmatch("key-job_.*", handle.credentials[0]["value"])
        assert "key-job_" not in repr(handle)
        await handle.done


# -- other sessions


@case
async def following_a_job(connect):
    async with connect(token=TOKEN) as client, connect(token=TOKEN) as other:
        handle = await client.submit("ticks", {"count": 8, "pause": 60})
        watched = await other.subscribe(handle.job_id)
        assert (await failure(watched.cancel())).code == "PERMISSION_DENIED"
        assert handle.job_id in {job.job_id for job in await other.jobs(agent="ticks", status=["running"])}
        assert len(await other.jobs(limit=1)) == 1
        assert await messages(watched) == [f"tick {n}" for n in range(8)]
        assert await watched.done == await handle.done == {"count": 8}
    async with connect(token=TOKEN) as client, connect(token="other-token") as stranger:
        handle = await client.submit("ticks", {"count": 5, "pause": 50})
        assert handle.job_id not in {job.job_id for job in await stranger.jobs()}
        assert (await failure(stranger.subscribe(handle.job_id))).code == "PERMISSION_DENIED"
        assert await handle.done == {"count": 5}


SETTINGS = Settings(request_timeout=8.0)
