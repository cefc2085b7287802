"""
MCP servers and clients on the official SDK.

    from amends.bindings.mcp import guard

    guard(server)                       # an MCPServer or a low-level Server: failures are answered with AdCP errors

    from amends.bindings.mcp import Client

    async with Client(url) as client:   # in place of mcp.Client: typed errors, bounded recovery
        await client.call_tool("buy", {"id": 7})

`reject` answers requests before they are dispatched, for rate limits, missing credentials or a service that is down.
`task_response` maps tasks of the tasks extension to the states of the agent error contract.
`HttpRecorder` wraps an HTTP client for transports of your own, so that status and `Retry-After` reach the error.
"""

from __future__ import annotations

try:
    import mcp as _mcp  # noqa: F401
except ImportError as missing:
    raise ImportError("amends.bindings.mcp needs an extra: pip install 'amends[mcp]'") from missing

from amends.serving.versions import require

require("mcp", at_least=(2, 3), below=3, binding="amends.bindings.mcp", extra="mcp")

from amends.bindings.mcp.client import Client  # noqa: E402 - after the check of the version
from amends.bindings.mcp.guard import guard  # noqa: E402
from amends.bindings.mcp.http_recorder import HttpRecorder  # noqa: E402
from amends.bindings.mcp.reject import Incoming, Rejection, reject  # noqa: E402
from amends.bindings.mcp.task_response import task_response  # noqa: E402

__all__ = ["Client", "HttpRecorder", "Incoming", "Rejection", "guard", "reject", "task_response"]
