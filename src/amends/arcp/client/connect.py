"""How to reach a runtime: by URL, in this process, as a child, or over a connection of your own."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator
from types import TracebackType
from typing import Any
from weakref import WeakKeyDictionary

from amends.arcp.client.client import Client
from amends.arcp.client.handshake import Dial, Ticket
from amends.arcp.client.settings import Settings
from amends.arcp.transports.connection import Connection, ConnectionLost, Serves

__all__ = ["Connecting", "connect"]


class Connecting:
    """A client about to be: `async with` opens and closes it; `await` opens it, and closing is yours."""

    def __init__(self, make: Callable[[], Client], ticket: Ticket | None, runtime: Any) -> None:
        self._client: Client | None = None
        self._ticket = ticket
        # A runtime of this process that nobody has started is started for as long as it has clients.
        self._runtime = runtime
        # Made on the loop it will live on, not where `connect` was called.
        self._make = make

    def __await__(self) -> Generator[Any, None, Client]:
        """Open the session."""
        return self._opened().__await__()

    async def _opened(self) -> Client:
        if self._runtime is not None and not self._runtime.running:
            raise RuntimeError(
                "start the runtime first, `async with runtime:`, or open the client with `async with`"
            )
        self._client = self._make()
        await self._client.open(self._ticket)
        return self._client

    async def __aenter__(self) -> Client:
        """Open the session."""
        if self._runtime is None:
            return await self._opened()
        await _borrow(self._runtime)
        try:
            return await self._opened()
        except BaseException:
            await _give_back(self._runtime)
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        try:
            if self._client is not None:
                await self._client.close()
        finally:
            if self._runtime is not None:
                await _give_back(self._runtime)


_BORROWED: WeakKeyDictionary[Any, int] = WeakKeyDictionary()
"""How many clients a runtime has that was started for them."""


async def _borrow(runtime: Any) -> None:
    if runtime in _BORROWED:
        _BORROWED[runtime] += 1
    elif not runtime.running:
        _BORROWED[runtime] = 1
        try:
            await runtime.start()
        except BaseException:
            del _BORROWED[runtime]
            raise


async def _give_back(runtime: Any) -> None:
    left = _BORROWED.get(runtime, 0) - 1
    if left > 0:
        _BORROWED[runtime] = left
    elif left == 0:
        del _BORROWED[runtime]
        # Nobody is left who could wait for its jobs.
        await runtime.stop(drain=0.0)


def connect(
    target: str | Serves | Callable[[], Awaitable[Connection]],
    *,
    token: str | None = None,
    ticket: Ticket | None = None,
    settings: Settings | None = None,
    transport: dict[str, Any] | None = None,
    **bounds: Any,
) -> Connecting:
    """
    A session about to be opened, for `async with`.

    Args:
        target: `wss://host/arcp`; a `Runtime` in this process, which `async with` starts if nobody has, and stops
            with its last client; or a function that gives a fresh `Connection`, as
            `amends.arcp.transports.stdio.command` does.
        token: the bearer token.
        ticket: go on with a session that `client.detach()` left, instead of opening one.
        settings: bounds on waiting, memory and resuming.
        transport: options of `amends.arcp.transports.websocket.dial`, for a URL.
        bounds: single members of `Settings`, for a short word.

    Raises:
        FaultError: UNAUTHENTICATED and whatever else the runtime refuses with; HEARTBEAT_LOST when nobody is there.
        ImportError: for a URL without the extra `arcp`.

    """
    chosen = settings or Settings()
    if bounds:
        from msgspec.structs import replace

        chosen = replace(chosen, **bounds)
    dial = _dial(target, transport or {})
    return Connecting(lambda: Client(dial, token, chosen), ticket, _startable(target))


def _startable(target: Any) -> Any:
    return target if hasattr(target, "running") and hasattr(target, "start") else None


def _dial(target: Any, options: dict[str, Any]) -> Dial:
    if isinstance(target, str):
        from amends.arcp.transports import websocket

        return lambda: websocket.dial(target, **options)
    if hasattr(target, "serve"):
        return _within(target)
    if callable(target):
        return target  # type: ignore[no-any-return]
    raise TypeError("a runtime is reached by URL, by a Runtime, or by a function that gives a Connection")


def _within(runtime: Serves) -> Dial:
    """A runtime of this process, over memory."""
    serving: set[asyncio.Task[None]] = set()

    async def dial() -> Connection:
        from amends.arcp.transports.memory import pair

        if not getattr(runtime, "running", True):
            raise ConnectionLost("the runtime was stopped")
        near, far = pair()
        task = asyncio.create_task(runtime.serve(far))
        # A task that nobody holds may be collected while it runs.
        serving.add(task)
        task.add_done_callback(serving.discard)
        return near

    return dial
