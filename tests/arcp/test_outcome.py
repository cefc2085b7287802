"""What a failed run or tool call tells its client: wait, actor and tries survive, and details stay whole."""

import pytest

from amends import Policy, arecover, extract
from amends.arcp import connect
from amends.chain import relay
from amends.core.enums import Actor, Executed
from amends.errors import FaultError, RateLimitedError, ServiceUnavailableError
from amends.errors.arcp import InternalError, InvalidRequestError
from tests.arcp.raw import connected

TOKEN = "alice-token"


@pytest.mark.parametrize(
    "error",
    [
        RateLimitedError("slow down", retry_after=2),
        ServiceUnavailableError("away", retry_after=2.5, actor="provider", executed="maybe"),
        InvalidRequestError("no", details={"field": "a"}, actor="user"),
    ],
)
async def test_a_wait_and_an_actor_survive(begin, error):
    """They travel in `details.amends`; a client of an own runtime restores them and removes the member."""
    runtime = await begin()

    async def failing(input, ctx):
        raise error

    runtime.register_agent("failing", failing)
    async with connect(runtime, token=TOKEN, own=True) as client:
        with pytest.raises(FaultError) as caught:
            await (await client.submit("failing")).done
    fault, raised = caught.value.fault, error.fault
    assert (fault.retry_after, fault.actor, fault.executed) == (
        raised.retry_after,
        raised.actor,
        raised.executed,
    )
    assert "amends" not in (fault.details or {})


async def test_a_failed_call_inside_an_agent_may_have_had_an_effect(begin):
    """M3: whatever the called service says, the agent may have done something before; `relay` declares that it did not."""
    runtime = await begin()
    refused = FaultError.from_fault(
        extract({"code": "RATE_LIMITED", "message": "Later", "retry_after": 2}, "adcp")
    )
    assert refused.fault.executed is Executed.NO

    async def calling(input, ctx):
        raise relay(refused) if input["relay"] else refused

    runtime.register_agent("upstream", calling)
    async with connect(runtime, token=TOKEN, own=True) as client:
        for relayed, executed in ((False, Executed.MAYBE), (True, Executed.NO)):
            with pytest.raises(FaultError) as caught:
                await (await client.submit("upstream", {"relay": relayed})).done
            assert caught.value.fault.executed is executed


async def test_plain_errors_carry_nothing_beside_them(begin):
    """R4: if a reader assumes the same without it, `details` are exactly as raised."""
    raw = await connected(await begin())
    for code in ("INTERNAL_ERROR", "INVALID_REQUEST", "TIMEOUT", "PERMISSION_DENIED"):
        end = await raw.run("raising", {"code": code, "details": {"a": 1}})
        assert end["payload"]["details"] == {"a": 1}
        assert "details" not in (await raw.run("raising", {"code": code}))["payload"]
    await raw.close()


async def test_retries_do_not_multiply(begin):
    """The agent made three calls, so a client that allows three makes no further one."""
    runtime = await begin()
    calls = []
    policy = Policy(attempts=3)

    async def failing(input, ctx):
        async def call():
            calls.append(1)
            raise ServiceUnavailableError("away", executed="no", retry_after=0.01)

        return await arecover(call, policy=policy)

    runtime.register_agent("failing", failing)
    async with connect(runtime, token=TOKEN) as client:
        with pytest.raises(FaultError):
            await client.submit_with_recovery("failing", policy=policy)
    assert len(calls) <= 4


class Foreign(Exception):
    """An exception whose text must not leave."""


@pytest.mark.parametrize(
    "error", [Foreign("password=hunter2"), Foreign, RateLimitedError("slow", retry_after=2)]
)
async def test_a_tool_result_with_an_exception(begin, error):
    """Any exception is accepted; the text of a foreign one is not sent."""
    runtime = await begin()

    async def agent(input, ctx):
        call = await ctx.tool_call("search")
        await ctx.tool_result(call, error=error)
        return "done"

    runtime.register_agent("agent", agent)
    raw = await connected(runtime)
    end = await raw.run("agent")
    assert end["payload"]["result"] == "done"
    (event,) = raw.events(end["job_id"], "tool_result")
    found = event["payload"]["body"]["error"]
    assert found["code"] == "INTERNAL_ERROR"
    assert isinstance(found["retryable"], bool)
    assert "hunter2" not in str(raw.seen)
    await raw.close()


async def test_one_value_that_is_not_json_does_not_drop_the_others(begin):
    """Neither in the details of a job's error nor in those of a tool result."""
    runtime = await begin()
    details = {"kept": 1, "odd": object(), "deep": {"also": "kept", "odd": {1, 2}}}

    async def agent(input, ctx):
        call = await ctx.tool_call("search")
        await ctx.tool_result(call, error=InternalError("no", details=details))
        await ctx.tool_result(call, error={"code": "X", "message": "m", "details": details})
        raise InternalError("no", details=details)

    runtime.register_agent("agent", agent)
    raw = await connected(runtime)
    end = await raw.run("agent")
    bodies = [event["payload"]["body"]["error"] for event in raw.events(end["job_id"], "tool_result")]
    for error in (*bodies, end["payload"]):
        assert error["details"]["kept"] == 1
        assert error["details"]["deep"]["also"] == "kept"
    await raw.close()


def test_the_enums_are_read():
    """The values on the wire are those of the Fault."""
    assert {member.value for member in Executed} == {"no", "maybe", "yes"}
    assert Actor("provider") is Actor.PROVIDER
