"""The ARCP runtime: one agent that takes a deposit."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

from amends.demo.call_record import Scene

__all__ = ["serving"]


@contextlib.asynccontextmanager
async def serving(scene: Scene, token: str) -> AsyncIterator[int]:
    """The runtime on a free port."""
    from amends.arcp import Runtime
    from amends.arcp.transports.websocket import serve

    async def deposit(input: Any, ctx: Any) -> Any:
        scene.world.call("charge")
        scene.world.effect("charge")
        await asyncio.sleep(0.05)  # long enough for its events to be on their way one by one
        return {"receipt": f"D-{scene.world.tallies['charge'].effects}"}

    runtime = Runtime(tokens={token: "guest"})
    runtime.register_agent("deposit", deposit, version="1")
    async with runtime, serve(runtime, "127.0.0.1", 0) as server:
        yield server.port
