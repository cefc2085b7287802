"""
The gateway: a proxy that passes failures on unchanged, repeats what is safe, and records what happened.

    $ amends gateway https://api.example.com
    $ amends gateway gateway.toml
    $ amends gateway --mcp -- uvx some-mcp-server

It forwards HTTP, MCP, A2A and the APIs of language models to the upstreams of its configuration, and to no other address.
`Gateway` is the ASGI application; `amends.gateway.server` runs it with uvicorn.
"""

from __future__ import annotations

from amends.gateway.app import Gateway
from amends.gateway.config import GatewayConfig, UpstreamConfig
from amends.gateway.config_file import ConfigError, Problem, read_config

__all__ = ["ConfigError", "Gateway", "GatewayConfig", "Problem", "UpstreamConfig", "read_config"]
