"""An ARCP runtime with one agent, and a client that gets typed errors. Run: python examples/arcp_job.py"""

import asyncio
from typing import Any

from amends.arcp import Runtime, connect
from amends.arcp.errors import ARCPError, PermissionDeniedError

runtime = Runtime(tokens={"secret": "alice"})


async def report(input: Any, ctx: Any) -> dict[str, Any]:
    await ctx.progress(1, total=2)
    if input["week"] > 53:
        raise PermissionDeniedError("You may not read this week", details={"week": input["week"]})
    return {"week": input["week"], "sold": 17}


runtime.register_agent("weekly-report", report)


async def main() -> None:
    async with runtime, connect(runtime, token="secret") as client:
        handle = await client.submit("weekly-report", {"week": 19}, idempotency_key="report-19")
        print(await handle.done)
        again = await client.submit("weekly-report", {"week": 19}, idempotency_key="report-19")
        print(again.job_id == handle.job_id)
        try:
            await (await client.submit("weekly-report", {"week": 99})).done
        except ARCPError as error:
            print(error.code, error.details)


asyncio.run(main())
# > {'week': 19, 'sold': 17}
# > True
# > PERMISSION_DENIED {'week': 99}
