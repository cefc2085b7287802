"""How to reach a runtime: by URL, in this process, as a child, or over a connection of your own."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator
from types import TracebackType
from typing import Any

from amends.arcp.client.client import Client
from amends.arcp.client.handshake import Dial
from amends.arcp.client.link import Ticket
from amends.arcp.client.settings import Settings
from amends.arcp.transports.connection import Connection, Serves

__all__ = ["Connecting", "connect"]


class Connecting:
    """A client about to be: `async with` opens and closes it; `await` opens it, and closing is yours."""

    def __init__(self, make: Callable[[], Client], ticket: Ticket | None) -> None:
        self._client: Client | None = None
        self._ticket = ticket
        # Made on the loop it will live on, not where `connect` was called.
        self._make = make

    def __await__(self) -> Generator[Any, None, Client]:
        """Open the session."""
        return self._opened().__await__()

    async def _opened(self) -> Client:
        self._client = self._make()
        await self._client.open(self._ticket)
        return self._client

    async def __aenter__(self) -> Client:
        """Open the session."""
        return await self._opened()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        if self._client is not None:
            await self._client.close()


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
        target: `wss://host/arcp`; a `Runtime` in this process; or a function that gives a fresh `Connection`, as
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
    return Connecting(lambda: Client(dial, token, chosen), ticket)


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

        near, far = pair()
        task = asyncio.create_task(runtime.serve(far))
        # A task that nobody holds may be collected while it runs.
        serving.add(task)
        task.add_done_callback(serving.discard)
        return near

    return dial
