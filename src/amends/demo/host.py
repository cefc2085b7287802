"""Serves an ASGI application on loopback, in the event loop of the caller."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.types import ASGIApp

__all__ = ["serving"]


@contextlib.asynccontextmanager
async def serving(app: ASGIApp, listening: socket.socket | None = None) -> AsyncIterator[int]:
    """Serve an ASGI application on the given socket, or on a free loopback port. Yield the port."""
    import uvicorn

    listening = listening or socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(app, log_config=None, lifespan="auto", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    running = asyncio.create_task(server.serve(sockets=[listening]))
    try:
        yield listening.getsockname()[1]
    finally:
        server.should_exit = True
        await running
