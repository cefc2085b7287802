"""The agents used in the runtime's tests; each does one thing."""

from __future__ import annotations

import asyncio
import time

from amends import errors as everyday
from amends.arcp import errors
from amends.errors import FaultError


async def echo(input, ctx):
    """Returns its input."""
    return input


async def raising(input, ctx):
    """Raises an ARCP error of a code, with details."""
    raise errors.ARCPError(
        input["code"], "as raised", details=input.get("details"), retryable=input.get("retryable")
    )


async def everyday_error(input, ctx):
    """Raises an error of another vocabulary."""
    raise everyday.RateLimitedError("slow down", retry_after=3)


async def crashing(input, ctx):
    """Raises an exception whose text must not reach a client."""
    raise ValueError("password=hunter2")


async def exiting(input, ctx):
    """Tries to end the process."""
    raise SystemExit(3)


async def waiting(input, ctx):
    """Waits until it is cancelled."""
    await ctx.status("waiting")
    await asyncio.Event().wait()


async def stubborn(input, ctx):
    """Ignores its cancellation."""
    await ctx.status("waiting")
    until = time.monotonic() + input["seconds"]
    while time.monotonic() < until:
        try:
            await asyncio.sleep(0.01)
        except asyncio.CancelledError:
            await ctx.log("no")
    await ctx.log("late")
    return "too late"


async def swallowing(input, ctx):
    """Returns normally when it is cancelled."""
    try:
        await ctx.status("waiting")
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        return "as if nothing had happened"


async def talking(input, ctx):
    """Reports an event of every kind."""
    await ctx.log("a line", level="warn")
    await ctx.thought("hm")
    await ctx.status("working", "on it")
    await ctx.metric("rows", 3, "rows", {"table": "t"})
    await ctx.progress(1, 2, units="files", message="half")
    await ctx.artifact("arcp://a", "text/plain", byte_size=3, sha256="00")
    await ctx.event("x-vendor.note", {"n": 1})
    call = await ctx.tool_call("search", {"q": 1})
    await ctx.tool_result(call, {"hits": 2})
    return {"run": ctx.run, "trace": ctx.trace, "agent": ctx.agent, "principal": ctx.principal}


async def counting(input, ctx):
    """Emits numbered lines, with a pause after each if requested."""
    for number in range(input["count"]):
        await ctx.log(f"{number} {'x' * input.get('size', 0)}")
        if input.get("pause") is not None:
            await asyncio.sleep(input["pause"])
    return input["count"]


async def streaming(input, ctx):
    """Streams its input as text or bytes."""
    async with ctx.result_chunks() as result:
        for piece in input["pieces"]:
            await result.write(piece.encode() if input.get("binary") else piece)
    return "a summary"


async def yielding(input, ctx):
    """Streams its result by yielding."""
    for piece in input["pieces"]:
        yield piece


async def trying(input, ctx):
    """Requests authority, and continues without it."""
    refused = []
    for capability, target in input["wants"]:
        try:
            ctx.authorize(capability, target)
        except FaultError as error:
            refused.append(error.code)
    return refused


async def calling(input, ctx):
    """Calls a tool that fails; the job continues (R7)."""
    call = await ctx.tool_call("fetch", {"url": "u"}, call_id="c1")
    await ctx.tool_result(
        call, error=errors.InvalidRequestError("404 from upstream", details={"status": 404, "url": "u"})
    )
    await ctx.tool_result("c2", error={"code": "NOT_OURS", "message": "m", "retryable": True})
    return "alive"


async def spending(input, ctx):
    """Spends its budget, then requests authority."""
    for amount in input["amounts"]:
        await ctx.metric("cost.inference", amount, "USD")
    ctx.authorize("tool.call", "search")
    return ctx.budget


async def expiring(input, ctx):
    """Works beyond the end of its lease, and ignores the error."""
    while True:
        try:
            ctx.authorize("fs.read", "/w/a")
        except errors.LeaseExpiredError:
            return "unimpressed"
        await asyncio.sleep(0.02)


async def delegating(input, ctx):
    """Delegates its work, and returns the outcome."""
    try:
        result = await ctx.delegate(
            input["agent"], input.get("input"), lease=input.get("lease"), expires_at=input.get("expires_at")
        )
    except FaultError as error:
        return {"code": error.code, "details": error.details, "budget": ctx.budget}
    return {"result": result if not isinstance(result, bytes) else result.decode(), "budget": ctx.budget}


async def flaky(input, ctx):
    """Fails with a code in its first runs."""
    if ctx.run <= input["fails"]:
        raise errors.ARCPError(
            input.get("code", "INTERNAL_ERROR"), f"run {ctx.run}", details={"run": ctx.run}
        )
    await ctx.log(f"run {ctx.run}")
    return {"run": ctx.run}


AGENTS = {
    "echo": echo,
    "raising": raising,
    "everyday": everyday_error,
    "crashing": crashing,
    "exiting": exiting,
    "waiting": waiting,
    "stubborn": stubborn,
    "swallowing": swallowing,
    "talking": talking,
    "counting": counting,
    "streaming": streaming,
    "yielding": yielding,
    "trying": trying,
    "calling": calling,
    "spending": spending,
    "expiring": expiring,
    "delegating": delegating,
    "flaky": flaky,
}


def register(runtime, **more):
    """Register all agents of this module."""
    for name, function in AGENTS.items():
        runtime.register_agent(name, function, **more)
    return runtime
