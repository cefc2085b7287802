"""A TCP relay on loopback that can lose a response: it aborts the caller's connection before passing it on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

__all__ = ["relay"]


async def relay(port: int, should_lose: Callable[[], bool]) -> asyncio.Server:
    """
    Listen on a free port and relay every connection to `port`.

    `should_lose` is called whenever the service has sent data, before that is passed on. If it returns True, the caller's
    connection is aborted instead.
    """

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        upstream_reader, upstream = await asyncio.open_connection("127.0.0.1", port)
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(_pass_on(reader, upstream))
                tasks.create_task(_pass_on(upstream_reader, writer, should_lose))
        except* OSError:
            pass  # one side closed its connection
        finally:
            upstream.close()
            writer.close()

    return await asyncio.start_server(serve, "127.0.0.1", 0)


async def _pass_on(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, should_lose: Callable[[], bool] | None = None
) -> None:
    while data := await reader.read(65536):
        if should_lose is not None and should_lose():
            writer.transport.abort()
            raise ConnectionAbortedError
        writer.write(data)
        await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()
