"""The demo's ARCP runtime: one agent that takes a deposit."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from amends.demo.call_record import CurrentRecord

if TYPE_CHECKING:
    from amends.arcp import Context

__all__ = ["serving"]


@contextlib.asynccontextmanager
async def serving(current: CurrentRecord, token: str) -> AsyncIterator[int]:
    """Serve the runtime on a free port. Yield the port."""
    from amends.arcp import Runtime
    from amends.arcp.transports.websocket import serve

    async def deposit(input: object, ctx: Context) -> object:
        current.record.record_call("charge")
        current.record.record_effect("charge")
        await asyncio.sleep(0.05)  # so that job.accepted is sent before job.result
        return {"receipt": f"D-{current.record.tallies['charge'].effects}"}

    runtime = Runtime(tokens={token: "guest"})
    runtime.register_agent("deposit", deposit, version="1")
    async with runtime, serve(runtime, "127.0.0.1", 0) as server:
        yield server.port
