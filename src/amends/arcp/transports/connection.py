"""The interface of a transport: frames in order in both directions, with back-pressure and an end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

__all__ = ["Connection", "ConnectionLost", "Serves"]


class ConnectionLost(ConnectionError):
    """The connection is gone. The message contains no text of the network, which must not be sent to a peer."""


class Connection(Protocol):
    """
    One connection. A single task receives; any task may send.

    A frame larger than the transport's limit closes the connection on the receiving side (1009) instead of being read.
    """

    peer: str
    """The address of the other side, for logs."""

    async def send(self, data: str | bytes) -> None:
        """
        Send one frame, and wait while the other side is slow.

        Raises:
            ConnectionLost: the connection is gone.

        """

    async def send_all(self, frames: Sequence[str | bytes]) -> None:
        """
        Send several frames in order, with one write if the transport can.

        Raises:
            ConnectionLost: the connection is gone; it is unknown how many frames were sent.

        """

    def post(self, frames: Sequence[str | bytes]) -> bool:
        """
        Send frames at once, without waiting, if there is room.

        Returns False, and sends nothing, if it would have to wait or if the connection is gone; `send_all` then waits or
        raises.
        """

    async def receive(self) -> str | bytes | None:
        """The next frame, or None if the connection has ended."""

    async def close(self, code: int = 1000, reason: str = "") -> None:
        """Close the connection; a second call has no effect. Returns within seconds, whatever the other side does."""


class Serves(Protocol):
    """An object that serves connections: a runtime."""

    async def serve(self, connection: Connection) -> None:
        """Serve one connection until it ends."""
