"""What a transport is: frames in order, both ways, with back-pressure and an end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

__all__ = ["Connection", "ConnectionLost", "Serves"]


class ConnectionLost(ConnectionError):
    """The other side is gone. Says nothing more: what the network said is not for the wire."""


class Connection(Protocol):
    """
    One connection. A single task receives; any task may send.

    A frame larger than the transport's limit ends the connection on the receiving side (1009) instead of being read.
    """

    peer: str
    """Who is at the other end, for logs."""

    async def send(self, data: str | bytes) -> None:
        """
        Hand one frame over, waiting while the other side is slow.

        Raises:
            ConnectionLost: when nobody is there any more.

        """

    async def send_all(self, frames: Sequence[str | bytes]) -> None:
        """
        Hand several frames over in order, in one go where the transport can.

        Raises:
            ConnectionLost: when nobody is there any more; how many frames left is unknown.

        """

    def post(self, frames: Sequence[str | bytes]) -> bool:
        """
        Hand frames over at once, without waiting, where there is room.

        False: nothing was taken, because somebody has to wait or because the other side is gone; `send_all` tells.
        """

    async def receive(self) -> str | bytes | None:
        """The next frame, or None when there will be no more."""

    async def close(self, code: int = 1000, reason: str = "") -> None:
        """End the connection; once is as good as twice. Returns within seconds, whatever the other side does."""


class Serves(Protocol):
    """What transports serve: a runtime."""

    async def serve(self, connection: Connection) -> None:
        """Run one connection to its end."""
