"""
`adcp`'s own MCP side, as a program: its server, and its client. Needs nothing but `adcp`, so that it can have an
environment of its own.

It says the address of its server in the first line of its standard output. Each line of its standard input,
`{"url": …, "errors": [error, …]}`, is answered with one line: what its client found when it called `get_products` of the
server there once for each error, which the request names in its `brief`.
"""

import asyncio
import json
import logging
import socket
import sys
import threading
import time

import uvicorn
from adcp.decisioning.types import AdcpError
from adcp.exceptions import ADCPError
from adcp.protocols.mcp import MCPAdapter
from adcp.server.base import ADCPHandler
from adcp.server.serve import create_mcp_server
from adcp.types.core import AgentConfig, Protocol


class Handler(ADCPHandler):
    """Raises what the request names."""

    advertised_tools = {"get_products"}

    async def get_products(self, params, context=None):
        brief = params["brief"] if isinstance(params, dict) else params.brief
        error = json.loads(brief)
        raise AdcpError(
            error["code"],
            message=error["message"],
            recovery=error["recovery"],
            retry_after=error["retry_after"],
        )


def served():
    """The address of its server, which ends with the process."""
    listener = socket.create_server(("127.0.0.1", 0))
    app = create_mcp_server(Handler()).streamable_http_app()
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="on", ws="none"))
    threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True).start()
    until = time.monotonic() + 60
    while not server.started and time.monotonic() < until:
        time.sleep(0.01)
    return f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"


async def found(url, errors):
    """What its client reads, error by error."""
    adapter = MCPAdapter(AgentConfig(id="ours", agent_uri=url, protocol=Protocol.MCP, timeout=60))
    read = []
    try:
        for error in errors:
            try:
                result = await adapter.get_products({"brief": json.dumps(error), "buying_mode": "brief"})
            except ADCPError as exc:
                # Two codes are raised, typed, by its client itself.
                read.append({"raised": type(exc).__name__, **dict(getattr(exc, "errors", [{}])[0] or {})})
            else:
                read.append(result.adcp_error or {"error": result.error})
    finally:
        await adapter.close()
    return read


def main():
    logging.disable(logging.CRITICAL)
    out = sys.stdout
    sys.stdout = sys.stderr
    print(served(), file=out, flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        print(json.dumps(asyncio.run(found(**asked)), default=str), file=out, flush=True)


if __name__ == "__main__":
    main()
