"""
Clients of other agents and servers that stay open between calls.

A client's async context must be left in the asyncio task that entered it, but calls come from any task. Each client is therefore
opened, kept open and closed by an asyncio task of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Generic, TypeVar

__all__ = ["PersistentClient"]

_CONNECT_SECONDS = 15.0

C = TypeVar("C")


class PersistentClient(Generic[C]):
    """One client that is opened on first use, and opened again after it was closed or dropped."""

    def __init__(self, make: Callable[[], AbstractAsyncContextManager[C]]) -> None:
        """
        Args:
            make: returns an unopened client.
        """
        self._make = make
        self._current: _OpenClient[C] | None = None

    async def get(self) -> C:
        """Return the open client. Raises what opening it raises; TimeoutError if that takes too long."""
        current = self._current
        if current is None or not current.alive:
            current = self._current = _OpenClient(self._make)
        try:
            return await current.wait_open()
        except Exception:
            # Not for a CancelledError: other callers may wait for the same client.
            current.stop()
            if self._current is current:
                self._current = None
            raise

    def drop(self, client: C | None = None) -> None:
        """Close the client without waiting. If `client` is given, only that one: another may be open by now."""
        current = self._current
        if current is not None and (client is None or current.has_opened(client)):
            self._current = None
            current.stop()

    async def close(self) -> None:
        """Close the client, and wait a limited time for that."""
        current = self._current
        self.drop()
        if current is not None:
            await current.wait_closed()


class _OpenClient(Generic[C]):
    """One client and the asyncio task that keeps it open. Created on the event loop that uses it."""

    def __init__(self, make: Callable[[], AbstractAsyncContextManager[C]]) -> None:
        self._make = make
        self._loop = asyncio.get_running_loop()
        self._opened: asyncio.Future[C] = self._loop.create_future()
        self._stop = asyncio.Event()
        self._task = self._loop.create_task(self._keep_open())

    @property
    def alive(self) -> bool:
        """Whether the client can be used on the running event loop."""
        return not self._task.done() and self._loop is asyncio.get_running_loop()

    def has_opened(self, client: C) -> bool:
        """Whether this is the given client."""
        opened = self._opened
        return opened.done() and opened.exception() is None and opened.result() is client

    async def wait_open(self) -> C:
        """Return the client once it is open. Raises what opening it raises; TimeoutError if that takes too long."""
        async with asyncio.timeout(_CONNECT_SECONDS):
            return await asyncio.shield(self._opened)

    def stop(self) -> None:
        """Start to close the client; stop opening it if it is not open yet."""
        with contextlib.suppress(RuntimeError):  # the event loop is closed, and the client with it
            self._loop.call_soon_threadsafe(self._request_stop)

    def _request_stop(self) -> None:
        self._stop.set()
        if not self._opened.done():
            self._task.cancel()

    async def wait_closed(self) -> None:
        """Wait a limited time until the client is closed."""
        if self._loop is asyncio.get_running_loop():
            await asyncio.wait([self._task], timeout=_CONNECT_SECONDS)

    async def _keep_open(self) -> None:
        try:
            async with self._make() as client:
                self._opened.set_result(client)
                await self._stop.wait()
        except BaseException as exc:
            if not self._opened.done():
                error = exc if isinstance(exc, Exception) else ConnectionError("interrupted")
                self._opened.set_exception(error)
                self._opened.exception()  # retrieved, so that asyncio does not log it when there is no caller
            if not isinstance(exc, Exception):
                raise
