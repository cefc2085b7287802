"""Interoperability with the TypeScript SDK in both directions (`make soak`): its example clients, and our client on its runtime."""

import asyncio

import pytest

from amends.arcp import connect
from amends.errors.base import FaultError
from tests.arcp.typescript.agents import EXAMPLES, TOKEN, runtime_for
from tests.arcp.typescript.sdk import checkout, example_server, run_client

pytestmark = pytest.mark.soak


@pytest.fixture(scope="module")
def sdk(tmp_path_factory):
    return checkout(tmp_path_factory.mktemp("typescript") / "sdk")


@pytest.mark.parametrize("example", EXAMPLES)
async def test_an_example_client_on_our_runtime(sdk, example):
    """It ends with exit 0."""
    runtime = runtime_for(example)
    async with runtime, runtime.listen(port=0) as listening:
        code, output = await run_client(sdk, example, listening.url)
    assert code == 0, output


async def end(client, agent, given=None, **job):
    """Submit a job; returns its result or the code of its failure, which must come within seconds."""
    return await code_of(run(client, agent, given, **job))


async def run(client, agent, given, **job):
    handle = await client.submit(agent, given, **job)
    return await handle.done


async def code_of(awaitable):
    try:
        return await asyncio.wait_for(awaitable, 10)
    except FaultError as error:
        return error.code


async def test_refusals_of_its_runtime(sdk):
    """Each is read at once."""
    async with example_server(sdk, "idempotent-retry") as url, connect(url, token=TOKEN) as client:
        assert await end(client, "unknown", {}) == "AGENT_NOT_AVAILABLE"
        assert await end(client, "Not A Name!", {}) == "INVALID_REQUEST"
        assert await end(client, "weekly-report@9", {}) == "AGENT_VERSION_NOT_AVAILABLE"
        first = await client.submit("weekly-report", {"week": 1}, idempotency_key="k")
        assert (await first.done)["week"] == 1
        again = await client.submit("weekly-report", {"week": 1}, idempotency_key="k")
        assert again.job_id == first.job_id
        assert await end(client, "weekly-report", {"week": 2}, idempotency_key="k") == "DUPLICATE_KEY"
        assert await code_of(client.subscribe("job_unknown")) == "JOB_NOT_FOUND"
        assert await code_of(client.cancel("job_unknown")) == "JOB_NOT_FOUND"
        expired = {"lease": {"fs.read": ["/a/**"]}, "expires_at": "2020-01-01T00:00:00Z"}
        assert await end(client, "weekly-report", {}, **expired) == "INVALID_REQUEST"
        assert isinstance(await client.jobs(), list)
        with pytest.raises(FaultError) as caught:
            await connect(url, token="wrong")
        assert caught.value.code == "UNAUTHENTICATED"


async def test_following_jobs_on_its_runtime(sdk):
    """A second session follows a job, may not cancel it, and gets its result."""
    async with (
        example_server(sdk, "subscribe") as url,
        connect(url, token=TOKEN) as client,
        connect(url, token=TOKEN) as other,
    ):
        handle = await client.submit("timer", {"ticks": 3, "tickMs": 100})
        watched = await other.subscribe(handle.job_id)
        assert await code_of(watched.cancel()) == "PERMISSION_DENIED"
        assert "log" in [event.kind async for event in watched.events()]
        assert await watched.done == await handle.done == {"ticks": 3}


async def test_the_ends_of_jobs_on_its_runtime(sdk):
    """Cancellation, time-out, chunks and progress."""
    async with example_server(sdk, "cancel") as url, connect(url, token=TOKEN) as client:
        handle = await client.submit("slow-walk", {})
        await handle.cancel()
        assert await code_of(run_to_end(handle)) == "CANCELLED"
        assert await end(client, "slow-walk", {}, max_runtime_sec=1) == "TIMEOUT"
    async with example_server(sdk, "result-chunk") as url, connect(url, token=TOKEN) as client:
        assert (await end(client, "report-builder", {"chunks": 5})).startswith("Section 1")
    async with example_server(sdk, "progress") as url, connect(url, token=TOKEN) as client:
        handle = await client.submit("indexer", {"total": 5, "tickMs": 1})
        assert [event.kind async for event in handle.events()].count("progress") == 5


async def run_to_end(handle):
    return await handle.done


async def test_delegations_and_credentials_on_its_runtime(sdk):
    """A child's messages disturb nothing, and credentials arrive."""
    async with example_server(sdk, "delegate") as url, connect(url, token=TOKEN) as client:
        lease = {"fs.read": ["/workspace/**"], "fs.write": ["/workspace/**"], "agent.delegate": ["*"]}
        assert (await end(client, "build", {"project": "p"}, lease=lease))["delegated_tests"]
    async with example_server(sdk, "provisioned-credentials") as url, connect(url, token=TOKEN) as client:
        handle = await client.submit("ask-model", {}, lease={"model.use": ["tier-fast/*"]})
        assert handle.credentials[0]["value"].startswith("mock-key-")
        await handle.done
