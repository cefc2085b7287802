"""
An A2A agent behind the gateway, over JSON-RPC or REST, 0.3 and 1.0.

Methods that change nothing are repeated, and so are errors that say that nothing was executed. Tasks, parts and error
details pass unchanged.
"""

from __future__ import annotations

from amends.gateway.mcp import McpUpstream

__all__ = ["A2aUpstream"]


class A2aUpstream(McpUpstream):
    """Forwards to one agent."""

    def target(self, rest: str) -> str:
        """Return the address of a path: the agent's card is at the root of its server, the rest below its address."""
        if rest.startswith("/.well-known/"):
            return self.origin + rest
        return self.config.url if not rest else self.base + rest
