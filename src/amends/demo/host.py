"""
The process of the demo's services: `python -m amends.demo.host --seed 7`.

It writes JSON lines to stdout: first the endpoints, then every call it receives. It reads the commands `reset` and
`tally` from stdin. It exits when stdin closes, so it does not outlive its parent.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
import secrets
import socket
import sys
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

import msgspec

from amends.demo.agents import Endpoints
from amends.demo.call_record import Call, CurrentRecord
from amends.demo.scenario import make_scenario
from amends.demo.services import charge, menu, table, web
from amends.demo.services.relay import relay

if TYPE_CHECKING:
    from starlette.types import ASGIApp

__all__ = ["main"]


def write_line(kind: str, value: object) -> None:
    """Write one line of JSON to the parent process."""
    sys.stdout.buffer.write(msgspec.json.encode({kind: value}) + b"\n")
    sys.stdout.buffer.flush()


@contextlib.asynccontextmanager
async def serving(app: ASGIApp, listening: socket.socket | None = None) -> AsyncIterator[int]:
    """Serve an ASGI application on the given socket, or on a free loopback port. Yield the port."""
    import uvicorn

    listening = listening or socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(app, log_config=None, lifespan="auto", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    running = asyncio.create_task(server.serve(sockets=[listening]))
    try:
        yield listening.getsockname()[1]
    finally:
        server.should_exit = True
        await running


async def host(seed: int) -> None:
    """Run all services until stdin closes."""

    def write_call(call: Call) -> None:
        write_line("call", call)

    current = CurrentRecord(make_scenario(seed), write_call)
    token = secrets.token_urlsafe()
    async with contextlib.AsyncExitStack() as stack:
        web_port = await stack.enter_async_context(serving(web.app(current)))
        mcp_port = await stack.enter_async_context(serving(table.server(current).streamable_http_app()))
        a2a_port = await stack.enter_async_context(menu.serving(current, serving))
        arcp_port = await stack.enter_async_context(charge.serving(current, token))
        shop = await relay(web_port, lambda: current.record.take_lost_response("order"))
        bank = await relay(arcp_port, lambda: current.record.take_lost_response("charge"))
        stack.callback(shop.close)
        stack.callback(bank.close)
        write_line(
            "endpoints",
            Endpoints(
                http=f"http://127.0.0.1:{_port(shop)}",
                mcp=f"http://127.0.0.1:{mcp_port}/mcp",
                a2a=f"http://127.0.0.1:{a2a_port}",
                arcp=f"ws://127.0.0.1:{_port(bank)}/arcp",
                token=token,
            ),
        )
        await _run_commands(current)


def _port(server: asyncio.Server) -> int:
    return int(server.sockets[0].getsockname()[1])


async def _run_commands(current: CurrentRecord) -> None:
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), sys.stdin
    )
    while line := await reader.readline():
        if line == b"reset\n":
            current.reset()
        write_line("tally", current.record.tallies)


def main() -> None:
    """Parse the arguments and run the services."""
    parser = argparse.ArgumentParser(description="Run the flaky services of `amends try`.")
    parser.add_argument("--seed", type=int, default=0)
    logging.disable(logging.CRITICAL)  # the planned failures are reported as calls on stdout
    asyncio.run(host(parser.parse_args().seed))


if __name__ == "__main__":
    main()
