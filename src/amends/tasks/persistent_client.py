"""
Clients of other agents and servers, kept open between calls.

A client's scopes must be left in the task that entered them, and calls come from anywhere: so a task of its own opens each
client, holds it, and closes it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

__all__ = ["Kept"]

_CONNECT_SECONDS = 15.0


class Kept:
    """One client: opened when it is first asked for, and anew once it is gone."""

    def __init__(self, make: Callable[[], Any]) -> None:
        """
        Args:
            make: makes an unopened client.
        """
        self._make = make
        self._held: _Held | None = None

    async def client(self) -> Any:
        """The open client. Raises what opening it did."""
        held = self._held
        if held is None or not held.alive:
            held = self._held = _Held(self._make)
        try:
            return await held.ready()
        except Exception:
            # Not where only this caller is cancelled: others may be waiting for the same client.
            held.stop()
            if self._held is held:
                self._held = None
            raise

    def drop(self, client: Any = None) -> None:
        """Let go of it; of this very client, if one is named: another may be open by now."""
        held = self._held
        if held is not None and (client is None or held.holds(client)):
            self._held = None
            held.stop()

    async def close(self) -> None:
        """Close it, and wait for that for a while."""
        held = self._held
        self.drop()
        if held is not None:
            await held.ended()


class _Held:
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

    def holds(self, client: Any) -> bool:
        """Whether it is this client that is held open."""
        opened = self._opened
        return opened.done() and opened.exception() is None and opened.result() is client

    async def ready(self) -> Any:
        """The open client. Raises what opening it did, and TimeoutError when that takes too long."""
        return await asyncio.wait_for(asyncio.shield(self._opened), _CONNECT_SECONDS)

    def stop(self) -> None:
        """Close it, in its own time; give up opening it, where it is not open yet."""
        with contextlib.suppress(RuntimeError):  # its loop is closed, and everything on it
            self._loop.call_soon_threadsafe(self._stopped)

    def _stopped(self) -> None:
        self._stop.set()
        if not self._opened.done():
            self._task.cancel()

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
