"""amends itself, through its public names, with the default policy and one Upstream per process."""

from contextlib import AbstractContextManager
from typing import Any

import amends
from amends.recovery import current_operation
from amends.recovery.clock import CLOCK
from bench.recovery.clock import VirtualLoop
from bench.recovery.run import Call, Contender, Perform, Process
from bench.recovery.wire import Response


def _clocks(loop: VirtualLoop) -> AbstractContextManager[Any]:
    """Patch the library's clock. It sleeps with asyncio, which needs no patch."""
    return CLOCK.using(now=loop.time)


def _client(process: Process) -> Perform:
    upstream = amends.Upstream("service", refresh=process.refresh)

    async def perform(call: Call) -> Response:
        async def once() -> dict[str, Any]:
            operation = current_operation()
            response = await call.send(operation.key if operation else None)
            return {"status": response.status, "headers": response.headers, "body": ""}

        answer = await amends.arecover(
            once,
            upstream=upstream,
            operation=amends.Operation(name="things", read_only=call.method == "GET", keyed=call.keyed),
            examine=True,
        )
        return Response(answer["status"])

    return perform


AMENDS = Contender("amends", "arecover(…, upstream=Upstream(…)), default policy", _client, clocks=_clocks)
