"""
The connections without a session: bounded in total and per address, so that silent ones cannot lock others out.

A connection is *silent* until its hello has arrived. When a bound is reached, the oldest silent connection is closed for
the new one: first of the same address, then of the address that has the most. A connection whose hello is being checked is
never closed for another one.
"""

from __future__ import annotations

from collections import Counter

from amends.arcp.runtime.limits import Limits
from amends.arcp.transports import Connection

__all__ = ["Handshakes", "Waiting", "address_of"]

_TRY_LATER = 1013


class Waiting:
    """One connection without a session."""

    __slots__ = ("address", "connection", "dropped")

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.address: str | None = address_of(connection.peer)
        self.dropped = False
        """Whether it was closed to make room for another one."""


class Handshakes:
    """The connections of one node that have no session yet."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._silent: dict[Waiting, None] = {}
        """In the order of their arrival."""
        self._per_address: Counter[str] = Counter()

    def __len__(self) -> int:
        return self._per_address.total()

    async def enter(self, connection: Connection) -> Waiting | None:
        """Add a connection, and close a silent one if there are too many. Returns None if there is no room."""
        new, address = Waiting(connection), address_of(connection.peer)
        dropped: Waiting | None = None
        crowded = self._per_address[address] >= self._limits.handshakes_per_address
        if crowded or len(self) >= self._limits.handshakes:
            dropped = self._oldest_silent(address if crowded else None)
            if dropped is None:
                return None
        if dropped is not None:
            dropped.dropped = True
            self.leave(dropped)
        self._per_address[address] += 1
        self._silent[new] = None
        if dropped is not None:
            await dropped.connection.close(_TRY_LATER, "")
        return new

    def spoke(self, one: Waiting) -> None:
        """Record that the first frame of a connection has arrived."""
        self._silent.pop(one, None)

    def leave(self, one: Waiting) -> None:
        """Remove a connection that has a session now, or has ended. A second call has no effect."""
        self._silent.pop(one, None)
        if one.address is not None:
            address, one.address = one.address, None
            self._per_address[address] -= 1
            if not self._per_address[address]:
                del self._per_address[address]

    def _oldest_silent(self, address: str | None) -> Waiting | None:
        silent = Counter(one.address for one in self._silent)
        if address is None and silent:
            address = silent.most_common(1)[0][0]
        return next((one for one in self._silent if one.address == address), None)


def address_of(peer: str) -> str:
    """
    Return the host of a peer's address; the port is left out.

    >>> address_of("192.0.2.1:5000"), address_of("2001:db8::1:5000"), address_of("memory")
    ('192.0.2.1', '2001:db8::1', 'memory')
    """
    host, colon, port = peer.rpartition(":")
    return host if colon and port.isdigit() else peer
