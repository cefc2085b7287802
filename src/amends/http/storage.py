"""
The store of a middleware: an open store that the caller owns, or one that is opened by its URL.

A store given by its URL is opened on first use, on the event loop that uses it, and closed at the end of the
application's ASGI lifespan. With a server that does not send lifespan events, the owner calls `close`.
"""

from __future__ import annotations

import asyncio

from amends.http.asgi_types import App, Message, Receive, Scope, Send
from amends.stores import Store, StoreClosedError
from amends.stores import open as open_store

__all__ = ["Storage"]


class Storage:
    """Opens a store on first use and closes it, unless it was given open."""

    def __init__(self, where: Store | str) -> None:
        self._where = where
        self._opened: Store | None = None
        self._opening: asyncio.Lock | None = None
        self._closed = False

    async def get(self) -> Store:
        """
        Return the store, and open it if necessary.

        Raises:
            StoreError: the store cannot be opened, or was closed.

        """
        if not isinstance(self._where, str):
            return self._where
        if self._opened is None:
            self._opening = self._opening or asyncio.Lock()
            async with self._opening:
                if self._closed:
                    # A late request must not open the store again: nothing would close it.
                    raise StoreClosedError(self._where)
                if self._opened is None:
                    self._opened = await open_store(self._where)
        return self._opened

    async def close(self) -> None:
        """Close the store if it was opened here. A new lifespan may open it again."""
        self._closed = True
        async with self._opening or asyncio.Lock():
            opened, self._opened, self._opening = self._opened, None, None
        if opened is not None:
            await opened.close()

    async def lifespan(self, app: App, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the application's lifespan, and close the store before the shutdown is confirmed to the server."""
        if not isinstance(self._where, str):
            await app(scope, receive, send)
            return
        self._closed = received = False

        async def receive_event() -> Message:
            nonlocal received
            received = True
            return await receive()

        async def send_event(message: Message) -> None:
            if message["type"].startswith("lifespan.shutdown."):
                await self.close()
            await send(message)

        try:
            await app(scope, receive_event, send_event)
        except Exception:
            # ASGI allows an application to refuse lifespans by raising; then the events are answered here.
            if received:
                raise
            await _confirm_events(receive, send_event)
        finally:
            await self.close()


async def _confirm_events(receive: Receive, send: Send) -> None:
    """Confirm every lifespan event, for an application that does not support lifespans."""
    while True:
        kind = (await receive())["type"]
        await send({"type": f"{kind}.complete"})
        if kind == "lifespan.shutdown":
            return
