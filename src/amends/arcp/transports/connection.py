"""The interface of a transport: frames in order in both directions, with back-pressure and an end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

__all__ = ["Connection", "ConnectionLost", "Serves", "Take"]

Take = Callable[[str | bytes], bool]
"""Takes a frame, without waiting. Returns whether it takes the next one too."""


class ConnectionLost(ConnectionError):
    """
    The connection is gone, or could not be opened. The message contains no text of the network or of the peer.

    >>> ConnectionLost("the connection was refused", reason="refused").reason
    'refused'
    """

    def __init__(
        self,
        message: str = "the connection is gone",
        *,
        reason: str = "unreachable",
        permanent: bool = False,
        retry_after: float | None = None,
        details: dict[str, object] | None = None,
    ) -> None:
        """
        Create the exception.

        Args:
            message: what happened, for people.
            reason: the same as a fixed name, for programs.
            permanent: another attempt cannot succeed before something is changed, such as the URL.
            retry_after: the server asked to wait this many seconds.
            details: further facts, such as a status.

        """
        super().__init__(message)
        self.reason = reason
        self.permanent = permanent
        self.retry_after = retry_after
        self.details = details or {}


class Connection(Protocol):
    """
    One connection. A single task receives; any task may send.

    A frame larger than the transport's limit closes the connection on the receiving side (1009) instead of being read.

    >>> import asyncio
    >>> from amends.arcp.transports.memory import pair
    >>> async def example():
    ...     here, there = pair()
    ...     await here.send(b"{}")
    ...     return await there.receive()
    >>> asyncio.run(example())
    b'{}'
    """

    peer: str
    """The address of the other side, for logs."""

    async def send(self, data: bytes) -> None:
        """
        Send one frame, and wait while the other side is slow.

        Raises:
            ConnectionLost: the connection is gone.

        """

    async def send_all(self, frames: Sequence[bytes]) -> None:
        """
        Send several frames in order, with one write if the transport can.

        Raises:
            ConnectionLost: the connection is gone; it is unknown how many frames were sent.

        """

    def post(self, frames: Sequence[bytes]) -> bool:
        """
        Send frames at once, without waiting, if there is room.

        Returns False, and sends nothing, if it would have to wait or if the connection is gone; `send_all` then waits or
        raises.
        """

    async def receive(self) -> str | bytes | None:
        """The next frame, or None if the connection has ended."""

    async def receive_into(self, take: Take) -> bool:
        """
        Pass every frame to a function until that returns False. Returns False if the connection has ended.

        A transport may call the function as soon as a frame arrives, before the task that waits here runs again.
        """
        while (frame := await self.receive()) is not None:
            if not take(frame):
                return True
        return False

    async def close(self, code: int = 1000, reason: str = "") -> None:
        """Close the connection; a second call has no effect. Returns within seconds, whatever the other side does."""


class Serves(Protocol):
    """
    An object that serves connections: a runtime, or an object around one. `connect` takes it as its target.

        class Logged:
            async def serve(self, connection: Connection) -> None:
                logging.info("%s connected", connection.peer)
                await runtime.serve(connection)

        async with runtime, connect(Logged(), token="...") as client:
            ...
    """

    async def serve(self, connection: Connection) -> None:
        """Serve one connection until it ends."""
