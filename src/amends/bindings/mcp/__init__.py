"""
MCP servers and clients on the official SDK.

    from amends.bindings.mcp import guard

    guard(server)                       # an MCPServer or a low-level Server: failures are answered with AdCP errors

    from amends.bindings.mcp import Client

    async with Client(url) as client:   # in place of mcp.Client: typed errors, bounded recovery
        await client.call_tool("buy", {"id": 7})

`reject` answers requests before they are dispatched, for rate limits, missing credentials or a service that is down.
`task_response` maps tasks of the tasks extension to the states of the agent error contract.
Version 1 of the SDK has `guard` (without `effects=`) and `Client`; the rest needs version 2.
`HttpRecorder` wraps an HTTP client for transports of your own, so that status and `Retry-After` reach the error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

try:
    import mcp as _mcp  # noqa: F401
except ImportError as missing:
    raise ImportError("amends.bindings.mcp needs an extra: pip install 'amends[mcp]'") from missing

from amends.serving.versions import require

require("mcp", at_least=(1, 24), below=3, binding="amends.bindings.mcp", extra="mcp")

from amends.bindings.mcp.http_recorder import HttpRecorder  # noqa: E402 - after the check of the version
from amends.bindings.mcp.sdk_types import VERSION_1  # noqa: E402

if TYPE_CHECKING or not VERSION_1:
    from amends.bindings.mcp.client import Client
    from amends.bindings.mcp.guard import guard
    from amends.bindings.mcp.reject import Incoming, Rejection, reject
    from amends.bindings.mcp.task_response import task_response
else:
    from amends.bindings.mcp.version_1 import Client, guard

    def __getattr__(name: str) -> object:
        if name not in __all__:
            raise AttributeError(name)
        raise ImportError(
            f"amends.bindings.mcp.{name} needs version 2 of the MCP SDK: pip install 'mcp>=2.3'"
        )


__all__ = ["Client", "HttpRecorder", "Incoming", "Rejection", "guard", "reject", "task_response"]
