"""Servers on the SSE transport of the oldest protocols."""

from contextlib import contextmanager

from mcp.server import Server
from mcp.server.mcpserver import MCPServer
from mcp.server.sse import SseServerTransport
from starlette.applications import Starlette
from starlette.routing import Mount, Route
from tests.http.serving import serve


@contextmanager
def sse_served(server):
    """Serve a server of any kind, and yield its URL."""
    with serve(_app(server), lifespan="on", timeout_keep_alive=600) as url:
        yield f"{url}/sse"


def _app(server):
    if isinstance(server, MCPServer):
        return server.sse_app()
    if isinstance(server, Server):
        return _low_level(server)
    return server.http_app(transport="sse")


def _low_level(server):
    """The same application as `MCPServer.sse_app()` makes."""
    transport = SseServerTransport("/messages/")

    class Events:
        async def __call__(self, scope, receive, send):
            async with transport.connect_sse(scope, receive, send) as streams:
                await server.run(*streams, server.create_initialization_options())

    return Starlette(routes=[Route("/sse", Events()), Mount("/messages/", app=transport.handle_post_message)])
