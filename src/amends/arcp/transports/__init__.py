"""
Transports: WebSocket, an ASGI endpoint, stdio and in-memory. All implement one small protocol, `Connection`.

`memory` needs nothing, `stdio` and `asgi` only the standard library, `websocket` the extra `arcp`.
"""

from __future__ import annotations

from amends.arcp.transports.connection import Connection, ConnectionLost, Serves

__all__ = ["Connection", "ConnectionLost", "Serves"]
