"""One MCP server that runs as a command and speaks JSON-RPC over its pipes, one message per line."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Callable

import msgspec

__all__ = ["Gone", "Message", "StdioProcess", "read_members"]

_log = logging.getLogger("amends.gateway")

_LONGEST = 16 * 1024 * 1024
"""Bytes of one message."""
_KEPT = 100
"""Messages of the server that wait for a client to read them."""

Message = dict[str, msgspec.Raw]
_decoder = msgspec.json.Decoder(Message)


def read_members(line: bytes) -> Message | None:
    """Return the members of a JSON object, each as it was written; None if it is none."""
    try:
        return _decoder.decode(line)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None


class Gone(Exception):
    """The process has ended."""


class StdioProcess:
    """A running server. Requests get ids of our own, so that several clients can share it."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._pending: dict[bytes, asyncio.Future[Message]] = {}
        self._numbers = 0
        self.waiting: deque[Message] = deque(maxlen=_KEPT)
        self.on_message: Callable[[Message], bool] | None = None
        """Takes a message that the server sent by itself; returns False if there is no client to take it."""
        self.ended = False
        self._reading = asyncio.ensure_future(self._read())

    @classmethod
    async def start(cls, command: tuple[str, ...]) -> StdioProcess:
        """
        Start the command.

        Raises:
            OSError: it cannot be started.

        """
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=_LONGEST,
            start_new_session=True,
        )
        return cls(process)

    async def request(self, message: Message) -> Message:
        """
        Send a request, and return its response with the request's own id.

        Raises:
            Gone: the process has ended; it is unknown whether it executed the request.

        """
        if self.ended:
            raise Gone
        self._numbers += 1
        number = b"%d" % self._numbers
        future = self._pending[number] = asyncio.get_running_loop().create_future()
        try:
            await self.send({**message, "id": msgspec.Raw(number)})
            response = await future
        finally:
            self._pending.pop(number, None)
        return {**response, "id": message["id"]}

    async def send(self, message: Message) -> None:
        """Send a message that has no response, or one whose response is awaited elsewhere."""
        stdin = self._process.stdin
        if self.ended or stdin is None:
            raise Gone
        try:
            stdin.write(msgspec.json.encode(message) + b"\n")
            await stdin.drain()
        except (OSError, RuntimeError):
            raise Gone from None

    async def _read(self) -> None:
        stdout = self._process.stdout
        assert stdout is not None
        try:
            while True:
                line = await stdout.readline()
                if not line:
                    break
                message = read_members(line)
                if message is None:
                    continue
                if "method" not in message:
                    future = self._pending.get(bytes(message.get("id", msgspec.Raw(b""))))
                    if future is not None and not future.done():
                        future.set_result(message)
                elif self.on_message is None or not self.on_message(message):
                    self.waiting.append(message)
        except (ValueError, OSError):
            _log.warning("an MCP server sent a message of more than %d bytes", _LONGEST)
        finally:
            self._end()

    def _end(self) -> None:
        self.ended = True
        for future in self._pending.values():
            if not future.done():
                future.set_exception(Gone())

    async def stop(self) -> None:
        """Close its input, then end it."""
        self.ended = True
        if self._process.stdin is not None:
            with contextlib.suppress(OSError, RuntimeError):
                self._process.stdin.close()
        with contextlib.suppress(ProcessLookupError):
            try:
                async with asyncio.timeout(2):
                    await self._process.wait()
            except TimeoutError:
                self._process.kill()
                await self._process.wait()
        self._reading.cancel()
        self._end()
