"""The agents that the example clients of the TypeScript SDK submit jobs to, for our runtime."""

import asyncio
from contextlib import suppress

from amends.arcp import Credential, Limits, Runtime
from amends.errors.arcp import ARCPError, PermissionDeniedError

TOKEN = "demo-token"


async def tool_call(ctx, tool, args, *, call_id):
    """Report a call of a tool that the example's lease may not name: then it is denied, and the agent goes on."""
    with suppress(PermissionDeniedError):
        await ctx.tool_call(tool, args, call_id=call_id)
    return call_id


async def echo(given, ctx):
    return {"echo": given}


async def data_analyzer(given, ctx):
    await ctx.status("fetching")
    await ctx.log("12,408 rows loaded")
    await ctx.thought("Outlier in column 'revenue' row 4421")
    await ctx.metric("rows", 12_408, "row")
    await tool_call(ctx, "stats.summarize", {"column": "revenue"}, call_id="c1")
    await ctx.tool_result("c1", {"mean": 348.12})
    await ctx.artifact("arcp://artifacts/report.html", "text/html", byte_size=38_291)
    return {"outliers": 3}


async def report(given, ctx):
    return {"week": given}


async def versions_one(given, ctx):
    return {"handler": "v1", "result": "v1 result"}


async def versions_two(given, ctx):
    return {"handler": "v2", "result": "v2 result"}


async def slow_task(given, ctx):
    await ctx.status("running")
    await asyncio.sleep(given.get("durationMs", 30_000) / 1000)
    return {"done": True}


async def timer(given, ctx):
    await ctx.status("running")
    for number in range(given["ticks"]):
        await ctx.log(f"tick {number}")
        await asyncio.sleep(given["tickMs"] / 1000)
    return {"ticks": given["ticks"]}


async def chatty(given, ctx):
    for number in range(given["count"]):
        await ctx.metric("tick", number, "count")
    return {"emitted": given["count"]}


async def ask_model(given, ctx):
    return {"modelLease": ctx.lease.get("model.use", [])}


async def web_research(given, ctx):
    for number in range(given.get("iterations", 8)):
        call = await tool_call(ctx, "search.web", {"query": number}, call_id=f"call_{number}")
        ctx.authorize("tool.call", "search.web", call_id=call)
        await ctx.metric("cost.search", given.get("perCallUSD", 0.3), "USD")
        await ctx.tool_result(call, {"hits": 10})
    return {}


async def build(given, ctx):
    await ctx.status("compiling")
    project = given["project"]
    lease = {
        "fs.read": [f"/workspace/{project}/**"],
        "fs.write": [f"/workspace/{project}/test-output/**"],
    }
    try:
        await ctx.delegate("test", {"suite": "all"}, lease=lease)
    except ARCPError as error:
        await ctx.log(f"refused: {error.code}", "warn")
    return {"project": project, "delegated_tests": True}


async def suite(given, ctx):
    await ctx.log("127/127 passed")
    return {"passed": 127, "failed": 0}


async def slow_walk(given, ctx):
    await ctx.status("walking")
    for number in range(60):
        await ctx.metric("step", number, "count")
        await asyncio.sleep(0.1)
    return {}


async def long_indexer(given, ctx):
    for number in range(20):
        call = await tool_call(ctx, "fs.read", {"part": number}, call_id=f"call_{number}")
        ctx.authorize("fs.read", f"/workspace/index/part-{number}.txt", call_id=call)
        await ctx.tool_result(call, {"bytes": 1024})
        await asyncio.sleep(given.get("tickMs", 1000) / 1000)
    return {}


async def reader(given, ctx):
    for number, path in enumerate(("/workspace/myapp/src/auth/handler.ts", "/etc/passwd"), 1):
        call = await tool_call(ctx, "fs.read", {"path": path}, call_id=f"c{number}")
        try:
            ctx.authorize("fs.read", path, call_id=call)
        except PermissionDeniedError:
            continue
        await ctx.tool_result(call, {"path": path})
    return {"reviewed": ["/workspace/myapp/src/auth/handler.ts"]}


async def indexer(given, ctx):
    total = given.get("total", 100)
    for number in range(1, total + 1):
        await ctx.progress(number, total, units="files")
    return {"indexed": total}


async def report_builder(given, ctx):
    for number in range(1, given.get("chunks", 30) + 1):
        yield f"Section {number}: {'lorem ipsum ' * 8}\n"


async def counter(given, ctx):
    for number in range(1, given.get("steps", 8) + 1):
        await ctx.metric("step", number, "count")
    return {"steps": given.get("steps", 8)}


async def render_job(given, ctx):
    frames = given.get("frames", 4)
    for number in range(1, frames + 1):
        await ctx.log(f"rendered frame {number}")
        body = {"percent": round(100 * number / frames), "eta_seconds": frames - number}
        await ctx.event("x-vendor.acme.progress", body)
    return {"frames": frames, "format": "mp4"}


async def parent(given, ctx):
    await tool_call(ctx, "catalog.lookup", given, call_id="call_lookup")
    await ctx.tool_result("call_lookup", {"price_usd": 42})
    try:
        await ctx.delegate("child", given)
    except ARCPError as error:
        await ctx.log(f"refused: {error.code}", "warn")
    return {"ok": True}


class Provider:
    """Issues a credential for every job with models."""

    async def issue(self, grant):
        models = grant.lease.get("model.use", [])
        constraints = {"allowed_models": list(models)}
        credential = Credential(
            id=f"{grant.job_id}-llm",
            value=f"key-{grant.job_id}",
            endpoint="http://localhost/mock-llm/v1",
            constraints=constraints,
        )
        return [credential] if models else []

    async def revoke(self, job_id, ids):
        pass


# example → its agents; examples with a server of their own (bun, express, fastify, stdio) are left out
EXAMPLES = {
    "ack-backpressure": {"chatty": chatty},
    "agent-versions": {"code-refactor@1.0.0": versions_one, "code-refactor@2.0.0": versions_two},
    "cancel": {"slow-walk": slow_walk},
    "cost-budget": {"web-research": web_research},
    "custom-auth": {"echo": echo},
    "delegate": {"build": build, "test": suite},
    "heartbeat": {"echo": echo},
    "idempotent-retry": {"weekly-report": report, "different-agent": report},
    "lease-expires-at": {"long-indexer": long_indexer},
    "lease-violation": {"code-refactor": reader},
    "list-jobs": {"slow-task": slow_task},
    "progress": {"indexer": indexer},
    "provisioned-credentials": {"ask-model": ask_model},
    "result-chunk": {"report-builder": report_builder},
    "resume": {"counter": counter},
    "submit-and-stream": {"data-analyzer": data_analyzer},
    "subscribe": {"timer": timer},
    "tracing": {"parent": parent, "child": echo},
    "vendor-extensions": {"render-job": render_job},
}


def _principal(token):
    return "demo" if token == TOKEN or (token.startswith("alice.") and ".0." not in token) else None


def runtime_for(example):
    """Our runtime with the agents of an example."""
    limits = Limits(drain=0.0, cancel_grace=1.0, heartbeat=5.0)
    runtime = Runtime(authenticate=_principal, limits=limits, credentials=Provider())
    for reference, function in EXAMPLES[example].items():
        name, _, version = reference.partition("@")
        default = version == "2.0.0" or None
        runtime.register_agent(name, function, version=version or "1.0.0", default=default)
    return runtime
