"""What agents report: every body fits its kind, and a wrong value is refused where it is given."""

import pytest

from amends.arcp import Runtime, connect
from amends.errors.arcp import InvalidRequestError


async def reported(agent):
    """Run an agent; returns its result and the bodies of its events by kind."""
    runtime = Runtime(tokens={"t": "alice"})
    runtime.register_agent("agent", agent)
    async with runtime, connect(runtime, token="t") as client:
        handle = await client.submit("agent")
        bodies = {event.kind: event.body async for event in handle.events()}
        return await handle.done, bodies


async def test_text_members_are_text():
    """Also if an agent passes another value, such as an exception or an enum's member."""

    async def agent(given, ctx):
        await ctx.log(ValueError("five"))
        await ctx.thought(5)
        await ctx.status(None)

    _, bodies = await reported(agent)
    assert bodies["log"] == {"level": "info", "message": "five"}
    assert bodies["thought"] == {"text": "5"}
    assert bodies["status"] == {"phase": "None"}


@pytest.mark.parametrize(
    ("values", "field"),
    [((float("nan"),), "current"), (("x",), "current"), ((1, float("inf")), "total"), ((True,), "current")],
)
async def test_progress_is_a_number(values, field):
    async def agent(given, ctx):
        try:
            await ctx.progress(*values)
        except InvalidRequestError as error:
            return error.details

    result, bodies = await reported(agent)
    assert result == {"field": field}
    assert "progress" not in bodies


async def test_progress_is_not_negative():
    async def agent(given, ctx):
        with pytest.raises(ValueError, match="negative"):
            await ctx.progress(-1)
        await ctx.progress(0, 2, units="files", message="none")

    _, bodies = await reported(agent)
    assert bodies["progress"] == {"current": 0, "total": 2, "units": "files", "message": "none"}


async def test_the_error_of_a_tool_says_whether_it_is_retryable():
    """By its code if the agent does not say; what JSON has not is replaced, and the rest stays."""

    async def agent(given, ctx):
        await ctx.tool_result(
            "c1", error={"code": "TIMEOUT", "message": "m", "details": {"a": 1, "b": object()}}
        )

    _, bodies = await reported(agent)
    error = bodies["tool_result"]["error"]
    assert (error["code"], error["retryable"], error["details"]["a"]) == ("TIMEOUT", True, 1)


async def test_wrong_calls():
    """They say what is wanted."""

    async def agent(given, ctx):
        for call, error in (
            (ctx.event("note", {}), ValueError),
            (ctx.tool_result("c", error={"message": "m"}), TypeError),
            (ctx.rotate_credential("none"), ValueError),
        ):
            with pytest.raises(error):
                await call
        return [ctx.run, ctx.agent, ctx.cancelled, ctx.parent_job_id, ctx.credentials, ctx.streamed]

    result, _ = await reported(agent)
    assert result == [1, "agent@1.0.0", False, None, [], None]
