"""The send queue of a session: the messages of one turn of the loop are sent together and in order."""

from __future__ import annotations

import asyncio
from typing import Any

from amends.arcp.transports.connection import Connection, ConnectionLost
from amends.arcp.wire import MAX_FRAME, Envelope, write
from amends.errors.arcp import InvalidRequestError

__all__ = ["Outbox"]


class Outbox:
    """The sending side of a session. Messages that a lost connection took are not kept; pending requests are repeated."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._frames: list[bytes] = []
        self._flushing = False
        self._tasks: set[asyncio.Task[Any]] = set()
        self.connection: Connection | None = None
        self.last_sent = 0.0
        """The time of the last sent message, by the loop's clock."""

    def attach(self, connection: Connection) -> None:
        """Use this connection from now on."""
        self.connection = connection
        self.last_sent = self._loop.time()
        self._frames = []

    def drop(self) -> None:
        """Detach from the connection and close it in the background."""
        connection, self.connection = self.connection, None
        if connection is not None:
            self._keep(asyncio.create_task(connection.close()))

    def post(self, message: Envelope, *, alone: bool = False) -> None:
        """
        Send a message together with all others of this turn of the loop; at once if it is `alone`.

        Raises:
            InvalidRequestError: the message is larger than a frame may be; sending it would end the connection.
            TypeError, ValueError: the message cannot be encoded as JSON.

        """
        frame = write(message)
        if len(frame) > MAX_FRAME:
            details = {"bytes": len(frame), "limit": MAX_FRAME}
            raise InvalidRequestError("The message is larger than a frame may be", details=details)
        self._frames.append(frame)
        if not self._flushing:
            if alone:
                self._flush()
            else:
                self._flushing = True
                self._loop.call_soon(self._flush)

    async def close(self) -> None:
        """Cancel pending writes."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _flush(self) -> None:
        frames, self._frames = self._frames, []
        connection = self.connection
        self.last_sent = self._loop.time()
        self._flushing = connection is not None and not connection.post(frames)
        if connection is not None and self._flushing:
            self._keep(asyncio.create_task(self._write(connection, frames)))

    async def _write(self, connection: Connection, frames: list[bytes]) -> None:
        try:
            while frames:
                await connection.send_all(frames)
                frames, self._frames = self._frames, []
        except ConnectionLost:
            # The reading task sees the loss too, and resumes the session.
            self._frames = []
        finally:
            self._flushing = False

    def _keep(self, task: asyncio.Task[Any]) -> None:
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
