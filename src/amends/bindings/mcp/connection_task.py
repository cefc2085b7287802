"""
One connection, held open by a task of its own.

The SDK's client and its transports keep task groups open while they are connected, and a transport that breaks cancels
the task that entered it. With a task per connection, that task is not the caller's: a connection can be abandoned when
it takes too long, it can break without cancelling its user, and closing it takes a bounded time.
"""

from __future__ import annotations

import asyncio
import sys
from types import TracebackType

import anyio
import mcp
from mcp import ClientSession

from amends.bindings.mcp.responses import LOG
from amends.bindings.mcp.sdk_internals import is_closed

__all__ = ["ConnectionTask"]

_CANCELLED = 15.0
"""
Seconds that a cancelled connection may take to end: the SDK shields its last messages from cancellation, and stops a
child process in several steps.
"""


class ConnectionTask:
    """Enters and leaves a client of the SDK in one task. Create it inside a running event loop."""

    def __init__(self, client: mcp.Client, closing: float) -> None:
        """
        Args:
            client: a client that was not entered yet.
            closing: seconds for a normal close, before the task is cancelled.

        """
        self.client = client
        self.broken = False
        """Set when the task has ended, or when a call found that the connection is lost."""
        self._closing = closing
        self._close = asyncio.Event()
        self._ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._scope = anyio.CancelScope()
        self.session: ClientSession | None = None
        self._task = asyncio.create_task(self._run(), name="amends.mcp connection")

    @property
    def alive(self) -> bool:
        """Whether the connection is usable, as far as is known before a call."""
        return not (self.broken or is_closed(self.session))

    async def wait_open(self, timeout: float | None) -> None:  # noqa: ASYNC109 - a connection that is late is ended
        """
        Wait until the connection is open.

        Raises:
            TimeoutError: it was not open in time, and has been ended.
            Exception: what the SDK raised while connecting.

        """
        try:
            async with asyncio.timeout(timeout):
                await asyncio.shield(self._ready)
        except BaseException:
            if not self._ready.done() or self._ready.cancelled() or self._ready.exception() is None:
                await self._end()
            raise

    async def close(self) -> None:
        """Close the connection; cancel its task if it takes too long."""
        self._close.set()
        await asyncio.wait({self._task}, timeout=self._closing)
        await self._end()

    async def _end(self) -> None:
        if not self._task.done():
            # Not `Task.cancel`, which would break the shields with which the SDK stops a child process.
            self._scope.cancel()
            await asyncio.wait({self._task}, timeout=_CANCELLED)
        self._task.cancel()

    async def _run(self) -> None:
        try:
            with self._scope:
                await self._hold_open()
        finally:
            self.broken = True
        if not self._ready.done():
            self._ready.set_exception(ConnectionError())
            self._ready.exception()

    async def _hold_open(self) -> None:
        try:
            await self.client.__aenter__()
        except Exception as exc:  # noqa: BLE001 - `wait_open` raises it
            if not self._ready.done():
                self._ready.set_exception(exc)
                # Retrieved here, because nothing is waiting any more if `wait_open` was cancelled.
                self._ready.exception()
            return
        self.session = self.client.session
        if not self._ready.done():
            self._ready.set_result(None)
        try:
            await self._close.wait()
        except BaseException:
            # The transport broke, or `_end` cancelled the scope.
            await self._leave(*sys.exc_info())
            raise
        await self._leave(None, None, None)

    async def _leave(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self.client.__aexit__(kind, exc, trace)
        except Exception as error:  # noqa: BLE001 - the connection is over, and no caller waits for it
            LOG.debug("closing a connection raised %s", type(error).__name__)
