"""
`adcp`'s MCP server and client as a program. It imports nothing but `adcp` and its dependencies, so that it can run in a
separate environment.

The first line of its standard output is the URL of the server. For each line of its standard input,
`{"url": …, "errors": [error, …]}`, the client calls `get_products` of the server at that URL once for each error, with
the error as the `brief`, and the program writes one line with what the client read.
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
    """Raises the error that the request describes."""

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


def start_server():
    """Start the server in a thread, and return its URL."""
    listener = socket.create_server(("127.0.0.1", 0))
    app = create_mcp_server(Handler()).streamable_http_app()
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="on", ws="none"))
    threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True).start()
    until = time.monotonic() + 60
    while not server.started and time.monotonic() < until:
        time.sleep(0.01)
    return f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"


async def read_errors(url, errors):
    """What the client reads, error by error."""
    adapter = MCPAdapter(AgentConfig(id="ours", agent_uri=url, protocol=Protocol.MCP, timeout=60))
    read = []
    try:
        for error in errors:
            try:
                result = await adapter.get_products({"brief": json.dumps(error), "buying_mode": "brief"})
            except ADCPError as exc:
                # The client raises two codes as exceptions.
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
    print(start_server(), file=out, flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        print(json.dumps(asyncio.run(read_errors(**request)), default=str), file=out, flush=True)


if __name__ == "__main__":
    main()
