"""Connect to a runtime: by URL, in this process, as a child process, or over your own connection."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Sequence
from types import TracebackType
from typing import Any
from weakref import WeakKeyDictionary

from amends.arcp.client.client import Client
from amends.arcp.client.dial import dial_of
from amends.arcp.client.handshake import Ticket
from amends.arcp.client.settings import Settings
from amends.arcp.transports.connection import Connection, Serves
from amends.core.wrong_calls import explains_wrong_calls, refuse_unknown
from amends.foreign.trust import is_own_address

__all__ = ["ConnectContext", "connect"]


class ConnectContext:
    """The result of `connect`: `async with` opens and closes a client; `await` opens one that the caller closes."""

    def __init__(self, make: Callable[[], Client], ticket: Ticket | None, runtime: Any) -> None:
        self._client: Client | None = None
        self._ticket = ticket
        # A runtime of this process that is not running is started for as long as it has clients.
        self._runtime = runtime
        # The client is created on the event loop that it will use, not where `connect` was called.
        self._make = make

    def __await__(self) -> Generator[Any, None, Client]:
        """Open the session."""
        return self._open().__await__()

    async def _open(self) -> Client:
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
            return await self._open()
        await _start_for_client(self._runtime)
        try:
            return await self._open()
        except BaseException:
            await _stop_after_client(self._runtime)
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the session."""
        try:
            if self._client is not None:
                await self._client.close()
        finally:
            if self._runtime is not None:
                await _stop_after_client(self._runtime)


_CLIENTS: WeakKeyDictionary[Any, int] = WeakKeyDictionary()
"""The number of clients of each runtime that was started for its clients."""


async def _start_for_client(runtime: Any) -> None:
    if runtime in _CLIENTS:
        _CLIENTS[runtime] += 1
    elif not runtime.running:
        _CLIENTS[runtime] = 1
        try:
            await runtime.start()
        except BaseException:
            del _CLIENTS[runtime]
            raise


async def _stop_after_client(runtime: Any) -> None:
    left = _CLIENTS.get(runtime, 0) - 1
    if left > 0:
        _CLIENTS[runtime] = left
    elif left == 0:
        del _CLIENTS[runtime]
        # Without clients no caller can wait for its jobs.
        await runtime.stop(drain=0.0)


@explains_wrong_calls
def connect(
    target: str | Sequence[str] | Serves | Callable[[], Awaitable[Connection]],
    *,
    token: str | None = None,
    ticket: Ticket | None = None,
    settings: Settings | None = None,
    transport: dict[str, Any] | None = None,
    **bounds: Any,
) -> ConnectContext:
    """
    Open a session with a runtime, for use with `async with`.

        async with connect("wss://agents.example/arcp", token="…") as client:
            handle = await client.submit("summarise", {"url": "…"})
            print(await handle.done)

    Args:
        target: `wss://host/arcp`; a list of the URLs of nodes that share a store, of which any can open and resume the session;
            a `Runtime` in this process, which `async with` starts if it is not running, and stops
            with its last client; or a function that returns a new `Connection`, such as
            `amends.arcp.transports.stdio.command`.
        token: the bearer token.
        ticket: continue the session that `client.detach()` left, instead of opening a new one.
        settings: limits on waiting, memory and resuming.
        transport: options of `amends.arcp.transports.websocket.dial`, for a URL.
        bounds: single members of `Settings`, as a shortcut.

    Raises:
        FaultError: UNAUTHENTICATED or another error of the runtime; HEARTBEAT_LOST if it cannot be reached, with the cause
            in its message and as `details["reason"]`, and the cause of each address in `details["addresses"]`.
        ImportError: the target is a URL and the extra `arcp` is not installed.

    """
    chosen = settings or Settings()
    if bounds:
        from msgspec.structs import replace

        refuse_unknown("connect", bounds, (*_OPTIONS, *Settings.__struct_fields__))

        chosen = replace(chosen, **bounds)
    if not chosen.own and is_own_address(target):
        from msgspec.structs import replace

        chosen = replace(chosen, own=True)
    dial = dial_of(target, transport or {})
    return ConnectContext(lambda: Client(dial, token, chosen), ticket, _startable(target))


_OPTIONS = ("token", "ticket", "settings", "transport")


def _startable(target: Any) -> Any:
    return target if hasattr(target, "running") and hasattr(target, "start") else None
