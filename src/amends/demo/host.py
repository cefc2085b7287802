"""
The services' process: `python -m amends.demo.host --seed 7`.

It says on its standard output where everything is, then every call that arrives; it is told on its standard input to
`reset` or to `tally`. When its input ends it ends, so nothing is left behind whatever happens to its parent.
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
from typing import Any

import msgspec

from amends.demo.agents import Places
from amends.demo.call_record import Call, Scene
from amends.demo.scenario import tell
from amends.demo.services import charge, menu, table, web
from amends.demo.services.relay import relay

__all__ = ["main"]


def say(kind: str, value: Any) -> None:
    """One line of JSON to whoever started us."""
    sys.stdout.buffer.write(msgspec.json.encode({kind: value}) + b"\n")
    sys.stdout.buffer.flush()


@contextlib.asynccontextmanager
async def serving(app: Any, listening: socket.socket | None = None) -> AsyncIterator[int]:
    """An ASGI application on loopback: on a socket that is there, or on a free port."""
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
    """Run all services until the input ends."""

    def watch(call: Call) -> None:
        say("call", call)

    scene = Scene(tell(seed), watch)
    token = secrets.token_urlsafe()
    async with contextlib.AsyncExitStack() as stack:
        web_port = await stack.enter_async_context(serving(web.app(scene)))
        mcp_port = await stack.enter_async_context(serving(table.server(scene).streamable_http_app()))
        a2a_port = await stack.enter_async_context(menu.serving(scene, serving))
        arcp_port = await stack.enter_async_context(charge.serving(scene, token))
        shop = await relay(web_port, lambda: scene.world.cuts("order"))
        bank = await relay(arcp_port, lambda: scene.world.cuts("charge"))
        stack.callback(shop.close)
        stack.callback(bank.close)
        say(
            "places",
            Places(
                http=f"http://127.0.0.1:{_port(shop)}",
                mcp=f"http://127.0.0.1:{mcp_port}/mcp",
                a2a=f"http://127.0.0.1:{a2a_port}",
                arcp=f"ws://127.0.0.1:{_port(bank)}/arcp",
                token=token,
            ),
        )
        await _obey(scene)


def _port(server: asyncio.Server) -> int:
    return int(server.sockets[0].getsockname()[1])


async def _obey(scene: Scene) -> None:
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), sys.stdin
    )
    while line := await reader.readline():
        if line == b"reset\n":
            scene.reset()
        say("tally", scene.world.tallies)


def main() -> None:
    """Read the arguments and run."""
    parser = argparse.ArgumentParser(description="The flaky services of `amends try`.")
    parser.add_argument("--seed", type=int, default=0)
    logging.disable(logging.CRITICAL)  # their failures are the show, told by the calls
    asyncio.run(host(parser.parse_args().seed))


if __name__ == "__main__":
    main()
