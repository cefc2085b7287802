"""What is on its way out: the messages of one turn of the loop leave together, in order, and wait where they must."""

from __future__ import annotations

import asyncio
from typing import Any

from amends.arcp.transports.connection import Connection, ConnectionLost
from amends.arcp.wire import MAX_FRAME, Envelope, write
from amends.errors.arcp import InvalidRequestError

__all__ = ["Outbox"]


class Outbox:
    """The sending side of a session. What a lost connection took is not kept: whoever needs an answer asks again."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._frames: list[bytes] = []
        self._flushing = False
        self._tasks: set[asyncio.Task[Any]] = set()
        self.connection: Connection | None = None
        self.spoke = 0.0
        """When something was sent last, by the loop's clock."""

    def attach(self, connection: Connection) -> None:
        """Send over this connection from now on."""
        self.connection = connection
        self.spoke = self._loop.time()
        self._frames = []

    def drop(self) -> None:
        """Be done with the connection; it is closed on the side."""
        connection, self.connection = self.connection, None
        if connection is not None:
            self._keep(asyncio.create_task(connection.close()))

    def post(self, message: Envelope, *, alone: bool = False) -> None:
        """
        Send a message with whatever else this turn of the loop sends, or at once where it is likely to be `alone`.

        Raises:
            InvalidRequestError: for a message that no frame may hold; sending it would cost the connection.
            TypeError, ValueError: for one that is no JSON.

        """
        frame = write(message)
        if len(frame) > MAX_FRAME:
            details = {"bytes": len(frame), "limit": MAX_FRAME}
            raise InvalidRequestError("The message is larger than a frame may be", details=details)
        self._frames.append(frame)
        if self._flushing:
            return
        self._flushing = True
        if alone:
            self._flush()
        else:
            self._loop.call_soon(self._flush)

    async def close(self) -> None:
        """Give up what still waits."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _flush(self) -> None:
        frames, self._frames = self._frames, []
        connection = self.connection
        self.spoke = self._loop.time()
        if connection is None or connection.post(frames):
            self._flushing = False
        else:
            self._keep(asyncio.create_task(self._write(connection, frames)))

    async def _write(self, connection: Connection, frames: list[bytes]) -> None:
        try:
            while frames:
                await connection.send_all(frames)
                frames, self._frames = self._frames, []
        except ConnectionLost:
            # Whoever reads sees it too, and goes back to the session.
            self._frames = []
        finally:
            self._flushing = False

    def _keep(self, task: asyncio.Task[Any]) -> None:
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
