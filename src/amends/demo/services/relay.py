"""A relay on loopback that can lose an answer: it breaks the caller's connection when told to, and keeps the service's."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

__all__ = ["relay"]


async def relay(port: int, cuts: Callable[[], bool]) -> asyncio.Server:
    """
    Listen on a free port and pass everything on to `port`, until `cuts` says that an answer is to be lost.

    It is asked whenever the service has said something, before that is passed on.
    """

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        upstream_reader, upstream = await asyncio.open_connection("127.0.0.1", port)
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(_pass_on(reader, upstream))
                tasks.create_task(_pass_on(upstream_reader, writer, cuts))
        except* OSError:
            pass  # either side went away: nothing is left to pass on
        finally:
            upstream.close()
            writer.close()

    return await asyncio.start_server(serve, "127.0.0.1", 0)


async def _pass_on(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, cuts: Callable[[], bool] | None = None
) -> None:
    while data := await reader.read(65536):
        if cuts is not None and cuts():
            writer.transport.abort()
            raise ConnectionAbortedError
        writer.write(data)
        await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()
