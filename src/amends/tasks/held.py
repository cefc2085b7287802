"""A client held open by a task of its own: its scopes must be left where they were entered; calls come from anywhere."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

__all__ = ["Held"]

_CONNECT_SECONDS = 15.0


class Held:
    """One open client and the task that holds it open. Made on the event loop it is used on."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self._loop = asyncio.get_running_loop()
        self._opened: asyncio.Future[Any] = self._loop.create_future()
        self._stop = asyncio.Event()
        self._task = self._loop.create_task(self._hold())

    @property
    def alive(self) -> bool:
        """Whether it can still be used, here."""
        return not self._task.done() and self._loop is asyncio.get_running_loop()

    async def ready(self) -> Any:
        """The open client. Raises what opening it did."""
        return await asyncio.wait_for(asyncio.shield(self._opened), _CONNECT_SECONDS)

    def stop(self) -> None:
        """Close it, in its own time."""
        self._loop.call_soon_threadsafe(self._stop.set)

    async def ended(self) -> None:
        """Wait until it is closed, for a while."""
        if self._loop is asyncio.get_running_loop():
            await asyncio.wait([self._task], timeout=_CONNECT_SECONDS)

    async def _hold(self) -> None:
        try:
            async with self._make() as client:
                self._opened.set_result(client)
                await self._stop.wait()
        except BaseException as exc:
            if not self._opened.done():
                known = exc if isinstance(exc, Exception) else ConnectionError("interrupted")
                self._opened.set_exception(known)
                self._opened.exception()  # heard, also when nobody waits any more
            if not isinstance(exc, Exception):
                raise
