"""
A runtime in a child process: one envelope per line on its stdin and stdout (v1.0, section 4.2).

    amends.arcp.connect(stdio.command("python", "agent.py"))       # the parent
    await stdio.serve(runtime)                                      # agent.py

While it serves, other output of the child goes to stderr, so that a stray `print` does not break the protocol. Lines that it
printed before are ignored.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from amends.arcp.transports.connection import Connection, ConnectionLost, Serves
from amends.arcp.wire.envelope import MAX_FRAME
from amends.logs import logger

__all__ = ["LineConnection", "command", "serve"]

_log = logger("amends.arcp")

_EXIT_TIMEOUT = 5.0
"""Seconds for a child to exit after its stdin was closed, and again after SIGTERM."""


class LineConnection(Connection):
    """A connection over lines of a reader and a writer."""

    noisy = True
    """Lines before the handshake may be output of other code of the process; a handshake ignores those that are not ARCP."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        *,
        peer: str = "stdio",
        on_close: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """`on_close` is awaited once, after the connection was closed."""
        self.peer = peer
        self._reader = reader
        self._writer = writer
        self._on_close = on_close
        self._closed = False
        self._reading: asyncio.Task[bytes] | None = None

    async def send(self, data: bytes) -> None:
        """Write one line, and wait while the other side is slow."""
        await self.send_all((data,))

    async def send_all(self, frames: Sequence[bytes]) -> None:
        """Write several lines at once."""
        if self._closed or self._writer.is_closing():
            raise ConnectionLost("the pipe is closed")
        try:
            self._writer.write(_lines(frames))
            await self._writer.drain()
        except (OSError, RuntimeError):
            raise ConnectionLost("the pipe is closed") from None

    def post(self, frames: Sequence[bytes]) -> bool:
        """Write lines at once, if the pipe is not full."""
        transport = self._writer.transport
        if self._closed or transport.is_closing() or transport.get_write_buffer_size() > _ROOM:
            return False
        self._writer.write(_lines(frames))
        return True

    async def receive(self) -> str | bytes | None:
        """The next line that is not empty, or None if the connection has ended."""
        while not self._closed:
            # In a task, which `close` can end: the reader must go on for what the other side still writes.
            self._reading = asyncio.ensure_future(self._reader.readuntil())
            try:
                line = await self._reading
            except asyncio.CancelledError:
                task = asyncio.current_task()
                if task is None or task.cancelling():
                    raise
                # `close` has ended the read, and no one has cancelled this task.
                return None
            except asyncio.IncompleteReadError as rest:
                # The last line may have no line end.
                return rest.partial.strip() or None
            except (asyncio.LimitOverrunError, OSError):
                await self.close(1009)
                return None
            if line := line.strip():
                return line
        return None

    async def close(self, code: int = 1000, reason: str = "") -> None:
        """Close the pipe, and wait for the other side to end."""
        if self._closed:
            return
        self._closed = True
        self._writer.close()
        try:
            async with asyncio.timeout(_EXIT_TIMEOUT):
                await self._writer.wait_closed()
        except (OSError, TimeoutError):
            pass
        if self._reading is not None:
            # Wakes the task that waits for a line.
            self._reading.cancel()
        if self._on_close is not None:
            await self._on_close()


_ROOM = 64 * 1024


def _lines(frames: Sequence[bytes]) -> bytes:
    return b"".join([frame + b"\n" for frame in frames])


def command(*argv: str, max_frame: int = MAX_FRAME, **options: Any) -> Callable[[], Awaitable[Connection]]:
    """
    Connect to a runtime in a child process, which is started for every connection and ends with it.

    Args:
        argv: the command and its arguments.
        max_frame: the most bytes of a line; a longer one closes the connection.
        options: further arguments of `asyncio.create_subprocess_exec` (`env`, `cwd` …).

    """

    async def start() -> Connection:
        try:
            child = await asyncio.create_subprocess_exec(
                *argv,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                limit=max_frame,
                **options,
            )
        except OSError:
            raise ConnectionLost(
                f"the command {argv[0]} cannot be started", reason="not_started", permanent=True
            ) from None
        if child.stdout is None or child.stdin is None:  # pragma: no cover - both are pipes, see above
            raise ConnectionLost("the command has no pipes")

        stdout = child.stdout

        async def on_close() -> None:
            discarding = asyncio.create_task(_discard(stdout))
            try:
                await _wait_for_exit(child)
            finally:
                discarding.cancel()

        return LineConnection(stdout, child.stdin, peer=f"process {child.pid}", on_close=on_close)

    return start


async def _discard(reader: asyncio.StreamReader) -> None:
    """Read what a child still writes, because it cannot exit while its pipe is full."""
    while await reader.read(_ROOM):
        pass


async def _wait_for_exit(child: asyncio.subprocess.Process) -> None:
    """Wait for a child whose stdin was closed; terminate and finally kill it if it does not exit."""
    for step in (None, child.terminate, child.kill):
        _log.debug("closing: waiting up to %g s for process %d to exit", _EXIT_TIMEOUT, child.pid)
        if step is not None:
            _log.info("process %d did not exit within %g s: it gets a signal", child.pid, _EXIT_TIMEOUT)
            try:
                step()
            except ProcessLookupError:
                pass
        try:
            async with asyncio.timeout(_EXIT_TIMEOUT):
                await child.wait()
        except TimeoutError:
            continue
        return


async def serve(runtime: Serves, *, max_frame: int = MAX_FRAME) -> None:
    """
    Serve a runtime on this process's stdin and stdout, until stdin ends.

    While it runs, `sys.stdout` writes to stderr, because stdout is reserved for the protocol.
    """
    loop = asyncio.get_running_loop()
    outgoing = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    printed, sys.stdout = sys.stdout, sys.stderr
    reader = asyncio.StreamReader(limit=max_frame)
    incoming: asyncio.BaseTransport | None = None
    try:
        incoming, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(os.dup(sys.stdin.fileno()), "rb", 0)
        )
        transport, protocol = await loop.connect_write_pipe(
            lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader()),
            os.fdopen(os.dup(outgoing), "wb", 0),
        )
        writer = asyncio.StreamWriter(transport, protocol, None, loop)
        connection = LineConnection(reader, writer)
        try:
            await runtime.serve(connection)
        finally:
            await connection.close()
    finally:
        if incoming is not None:
            incoming.close()
        sys.stdout = printed
        os.dup2(outgoing, sys.stdout.fileno())
        os.close(outgoing)
