"""Connect a nats-py client within a time limit, and leave no connection behind if that fails."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nats.aio.client import Client

__all__ = ["connect"]

_PAUSE = 0.05
_CLOSE_TIMEOUT = 0.5


async def connect(settings: dict[str, Any], within: float) -> Client:
    """
    Connect with nats-py's settings.

    Raises:
        TimeoutError: no server accepted the connection within `within` seconds.
        OSError: the connection failed.
        nats.errors.Error: the server rejected it.
    """
    from nats.aio.client import Client

    client = Client()
    task = asyncio.ensure_future(client.connect(**settings))
    try:
        await asyncio.wait({task}, timeout=within)
    finally:
        await _cancel(task)
        if task.cancelled() or task.exception() is not None:
            # nats-py leaves a connection open if it is cancelled during the handshake; with TLS, its close may not return.
            with contextlib.suppress(Exception):
                async with asyncio.timeout(_CLOSE_TIMEOUT):
                    await client.close()
    if task.cancelled():
        raise TimeoutError
    task.result()
    return client


async def _cancel(task: asyncio.Task[None]) -> None:
    """
    Cancel the task until it has ended.

    Before Python 3.12, a cancellation in the same turn as a refused connection is lost, and nats-py would retry forever.
    """
    while not task.done():
        task.cancel()
        await asyncio.wait({task}, timeout=_PAUSE)
