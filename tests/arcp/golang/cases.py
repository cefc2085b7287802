"""Cases of our client on a runtime of the Go SDK (server.go). Each takes a function that opens a client."""

import asyncio

import pytest

from amends import Policy
from amends.arcp import Settings
from amends.errors.base import FaultError

CASES = []
TOKEN = "token"


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


@case
async def a_result(connect):
    """Its payload has it in `output`."""
    async with connect(token=TOKEN) as client:
        given = {"a": [1, 2.5, None, "ü"], "b": {}}
        assert await run(client, "echo", given) == given


@case
async def no_result(connect):
    async with connect(token=TOKEN) as client:
        assert await run(client, "nothing") is None


@case
async def events(connect):
    async with connect(token=TOKEN) as client:
        handle = await client.submit("talk")
        assert [event.kind async for event in handle.events()] == ["log", "progress", "status", "metric"]
        assert await handle.done == "done"


@case
async def a_result_in_chunks(connect):
    async with connect(token=TOKEN) as client:
        assert await run(client, "stream") == 5 * "xxxxxxxxxx\n"


@case
async def failures(connect):
    async with connect(token=TOKEN) as client:
        error = await failure(run(client, "denied"))
        assert (error.code, error.retryable) == ("PERMISSION_DENIED", False)
        error = await failure(run(client, "broken"))
        assert (error.code, error.retryable) == ("INTERNAL_ERROR", True)
        assert await run(client, "echo", 1) == 1


@case
async def a_time_out(connect):
    """It writes `retryable: false`, which is obeyed, though S5's table has TIMEOUT as retryable."""
    async with connect(token=TOKEN) as client:
        error = await failure(run(client, "slow", max_runtime_sec=1))
        assert (error.code, error.retryable) == ("TIMEOUT", False)


@case
async def a_cancellation(connect):
    async with connect(token=TOKEN) as client:
        handle = await client.submit("slow")
        await anext(aiter(handle.events()))
        await handle.cancel()
        assert (await failure(run_to_end(handle))).code == "CANCELLED"


async def run_to_end(handle):
    return await handle.done


@case
async def refusals(connect):
    """It sends them as `session.error`, which ends no session of its."""
    async with connect(token=TOKEN) as client:
        assert (await failure(client.submit("nobody"))).code == "AGENT_NOT_AVAILABLE"
        assert (await failure(client.submit("Not A Name!"))).code == "INVALID_REQUEST"
        assert (await failure(client.submit("echo@9"))).code == "AGENT_VERSION_NOT_AVAILABLE"
        assert (await failure(client.subscribe("job_unknown"))).code == "JOB_NOT_FOUND"
        assert (await failure(client.cancel("job_unknown"))).code == "JOB_NOT_FOUND"
        assert await run(client, "echo", 1) == 1


@case
async def keys(connect):
    """It sends the end of a job only once, so a repeated key of an ended job has no result: JOB_NOT_FOUND, and it happened."""
    async with connect(token=TOKEN) as client:
        handles = await asyncio.gather(*(client.submit("ticks", idempotency_key="k1") for _ in range(3)))
        assert len({handle.job_id for handle in handles}) == 1
        assert [await handle.done for handle in handles] == [10, 10, 10]
        assert (await failure(client.submit("ticks", 2, idempotency_key="k1"))).code == "DUPLICATE_KEY"


@case
async def following_a_job(connect):
    async with connect(token=TOKEN) as client, connect(token=TOKEN) as other:
        handle = await client.submit("ticks")
        watched = await other.subscribe(handle.job_id)
        assert len([event async for event in watched.events()]) == 10
        assert await watched.done == await handle.done == 10


@case
async def a_lease(connect):
    async with connect(token=TOKEN) as client:
        assert await run(client, "rogue", lease={"fs.read": ["/a/**"]}) == "denied"
        error = await failure(client.submit("echo", 1, lease={"fs.read": ["/a/**"]}, expires_at=1.0))
        assert error.code == "INVALID_REQUEST"


@case
async def jobs_in_turn(connect):
    async with connect(token=TOKEN) as client:
        handles = [await client.submit("echo", number) for number in range(20)]
        assert [await handle.done for handle in handles] == list(range(20))


@case
async def a_lost_connection(connect):
    """The session is resumed, and the job goes on."""
    async with connect(token=TOKEN) as client:
        session = client.session_id
        handle = await client.submit("ticks")
        await anext(aiter(handle.events()))
        client._session._outbox.connection._connection._socket.transport.abort()
        assert await handle.done == 10
        assert client.session_id == session


@case
async def recovery(connect):
    async with connect(token=TOKEN) as client:
        trying = client.submit_with_recovery("broken", policy=Policy(attempts=2))
        assert (await failure(trying)).code == "INTERNAL_ERROR"


SETTINGS = Settings(request_timeout=8.0)
NOT_RECORDED = {"a_lost_connection", "recovery"}
"""Cases that need a socket, or send what differs between runs."""
