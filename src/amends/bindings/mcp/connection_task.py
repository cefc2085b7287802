"""
One connection in a task of its own.

The SDK's client and its transports keep task groups open for as long as they are connected, and a transport that
breaks cancels the task that entered it. Here that task is ours: a connection can be given up when it takes too long,
dies without taking its user along, and is closed within bounds, whatever the other side does.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import anyio

from amends.bindings.mcp.responses import LOG

__all__ = ["Link"]

_CANCELLED = 15.0
"""Seconds for a connection that was given up to end: the SDK shields last messages, and stops a program step by step."""


class Link:
    """A connection: `enter` and `leave` run in one task, and between them it stands."""

    def __init__(
        self, enter: Callable[[], Awaitable[Any]], leave: Callable[..., Awaitable[Any]], closing: float
    ) -> None:
        self._enter, self._leave, self._closing = enter, leave, closing
        self._close = asyncio.Event()
        self._ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._scope = anyio.CancelScope()
        self._task = asyncio.create_task(self._live(), name="amends.mcp connection")
        self.dispatcher: Any = None
        """The SDK's, which knows when nobody listens any more: a call then would fail without having been sent."""
        self.lost = False
        """Set when it has ended, or a call found out that nobody is there any more."""

    @property
    def alive(self) -> bool:
        """Whether calls can be made on it, as far as anybody knows."""
        return not (self.lost or getattr(self.dispatcher, "_closed", False))

    async def opened(self, within: float | None) -> None:
        """
        Wait until the connection stands.

        Raises:
            TimeoutError: when it does not in time; it has been given up then.
            Exception: what kept it from standing.

        """
        try:
            async with asyncio.timeout(within):
                await asyncio.shield(self._ready)
        except BaseException:
            if not self._ready.done() or self._ready.cancelled() or self._ready.exception() is None:
                await self._end()
            raise

    async def close(self) -> None:
        """Take the connection down, politely at first."""
        self._close.set()
        await asyncio.wait({self._task}, timeout=self._closing)
        await self._end()

    async def _end(self) -> None:
        if not self._task.done():
            # Not the task's own cancel, which breaks the shields that keep a program from being left behind.
            self._scope.cancel()
            await asyncio.wait({self._task}, timeout=_CANCELLED)
        self._task.cancel()

    async def _live(self) -> None:
        try:
            with self._scope:
                await self._stand()
        finally:
            self.lost = True
        if not self._ready.done():
            self._ready.set_exception(ConnectionError())
            self._ready.exception()

    async def _stand(self) -> None:
        try:
            await self._enter()
        except Exception as exc:  # noqa: BLE001 - it belongs to whoever waits for the connection
            if not self._ready.done():
                self._ready.set_exception(exc)
                # Somebody who has stopped waiting does not ask for it.
                self._ready.exception()
            return
        if not self._ready.done():
            self._ready.set_result(None)
        try:
            await self._close.wait()
        except BaseException:
            # The transport broke, or we are being ended.
            await self._left(*sys.exc_info())
            raise
        await self._left(None, None, None)

    async def _left(self, *exc: Any) -> None:
        try:
            await self._leave(*exc)
        except Exception as error:  # noqa: BLE001 - nobody is left who could act on it
            LOG.debug("a connection ended with %s", type(error).__name__)
