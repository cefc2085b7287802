"""
The store of a middleware: given open, which stays its giver's, or opened by its URL and closed with the application.

It is opened when it is first needed, on the event loop that needs it, and closed when the server says that the
application ends (ASGI's lifespan). A server without lifespans never says so: `close` is for its owner then.
"""

from __future__ import annotations

import asyncio

from amends.http.asgi import App, Message, Receive, Scope, Send
from amends.stores import Store, StoreClosedError
from amends.stores import open as open_store

__all__ = ["Storage"]


class Storage:
    """One store, and who closes it."""

    def __init__(self, where: Store | str) -> None:
        self._where = where
        self._opened: Store | None = None
        self._opening: asyncio.Lock | None = None
        self._over = False

    async def get(self) -> Store:
        """
        The store, opened now if it has to be.

        Raises:
            StoreError: it cannot be opened, or was closed.

        """
        if not isinstance(self._where, str):
            return self._where
        if self._opened is None:
            self._opening = self._opening or asyncio.Lock()
            async with self._opening:
                if self._over:
                    # Opened again by a straggler, it would be closed by nobody.
                    raise StoreClosedError(self._where)
                if self._opened is None:
                    self._opened = await open_store(self._where)
        return self._opened

    async def close(self) -> None:
        """Close what was opened here, for good or until the application begins another life."""
        self._over = True
        async with self._opening or asyncio.Lock():
            opened, self._opened, self._opening = self._opened, None, None
        if opened is not None:
            await opened.close()

    async def lifespan(self, app: App, scope: Scope, receive: Receive, send: Send) -> None:
        """An application's life, with the store closed at its end, before the server is told that all is done."""
        if not isinstance(self._where, str):
            await app(scope, receive, send)
            return
        self._over = asked = False

        async def listening() -> Message:
            nonlocal asked
            asked = True
            return await receive()

        async def telling(message: Message) -> None:
            if message["type"].startswith("lifespan.shutdown."):
                await self.close()
            await send(message)

        try:
            await app(scope, listening, telling)
        except Exception:
            # One that has not even asked knows nothing of lifespans, which is allowed; the server then asks us.
            if asked:
                raise
            await _alone(receive, telling)
        finally:
            await self.close()


async def _alone(receive: Receive, send: Send) -> None:
    """The protocol for an application that does not speak it."""
    while True:
        kind = (await receive())["type"]
        await send({"type": f"{kind}.complete"})
        if kind == "lifespan.shutdown":
            return
