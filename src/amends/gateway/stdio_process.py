"""One MCP server that runs as a command and speaks JSON-RPC over its pipes, one message per line."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections import deque
from collections.abc import Callable

import msgspec

from amends.gateway.rpc import Message, read_members
from amends.logs import logger
from amends.proof import Claim, Proof, rests_on

__all__ = ["Gone", "StdioProcess", "Take"]

_log = logger("amends.gateway")

_LONGEST = 16 * 1024 * 1024
"""Bytes of one message."""
_KEPT = 100
"""Messages of the server that wait for a client to read them …"""
_KEPT_BYTES = 1024 * 1024
"""… and the largest of them."""

Take = Callable[[Message], None]


class Gone(Exception):
    """The process has ended."""


class _Pending:
    """A request that waits for its response."""

    __slots__ = ("future", "id", "seconds", "take", "timeout", "token")

    def __init__(
        self, id: msgspec.Raw, token: msgspec.Raw | None, take: Take | None, seconds: float | None
    ) -> None:
        self.future: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self.id = id
        """The client's id."""
        self.token = token
        """The client's progress token."""
        self.take = take
        """Takes messages about its progress."""
        self.seconds = seconds
        self.timeout: asyncio.Timeout | None = None

    def begin_anew(self) -> None:
        """Give the request its whole time again."""
        if self.seconds is not None and self.timeout is not None and not self.timeout.expired():
            self.timeout.reschedule(asyncio.get_running_loop().time() + self.seconds)


class StdioProcess:
    """
    A running server.

    Requests and progress tokens get numbers of our own, so that several clients can share it.
    """

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._pending: dict[bytes, _Pending] = {}
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

    async def request(
        self,
        message: Message,
        *,
        seconds: float | None = None,
        take: Take | None = None,
        cancellable: bool = False,
    ) -> Message:
        """
        Send a request, and return its response with the request's own id.

        Args:
            message: the request.
            seconds: how long it may take; messages about its progress begin it anew.
            take: takes messages about its progress.
            cancellable: send a cancellation to the process if the caller leaves, which ends a request of 2026-07-28.

        Raises:
            Gone: the process has ended; it is unknown whether it executed the request.
            TimeoutError: it did not answer in time; a cancellation was sent to the process.

        """
        if self.ended:
            raise Gone
        self._numbers += 1
        number = b"%d" % self._numbers
        sent, token = _with_number(message, msgspec.Raw(number))
        pending = self._pending[number] = _Pending(message["id"], token, take, seconds)
        try:
            async with asyncio.timeout(seconds) as pending.timeout:
                await self.send(sent)
                response = await pending.future
        except (TimeoutError, asyncio.CancelledError) as error:
            if cancellable or isinstance(error, TimeoutError):
                with contextlib.suppress(Gone):
                    self._write(_cancelled(msgspec.Raw(number)))
            raise
        finally:
            self._pending.pop(number, None)
        return {**response, "id": message["id"]}

    async def cancel(self, id: bytes) -> None:
        """Tell the server that a client does not wait for the response to its request any more."""
        for number, pending in self._pending.items():
            if bytes(pending.id) == id:
                await self.send(_cancelled(msgspec.Raw(number)))
                return

    async def send(self, message: Message) -> None:
        """Send a message that has no response, or one whose response is awaited elsewhere."""
        stdin = self._write(message)
        try:
            await stdin.drain()
        except (OSError, RuntimeError):
            raise Gone from None

    def _write(self, message: Message) -> asyncio.StreamWriter:
        stdin = self._process.stdin
        if self.ended or stdin is None:
            raise Gone
        try:
            stdin.write(msgspec.json.encode(message) + b"\n")
        except (OSError, RuntimeError):
            raise Gone from None
        return stdin

    async def _read(self) -> None:
        stdout = self._process.stdout
        assert stdout is not None
        try:
            while line := await stdout.readline():
                message = read_members(line)
                if message is not None:
                    self._take(message, len(line))
        except (ValueError, OSError):
            _log.warning("an MCP server sent a message of more than %d bytes", _LONGEST)
        finally:
            self._end()

    @rests_on(Claim.OURS, Proof.CORRELATED)
    def _take(self, message: Message, size: int) -> None:
        method = bytes(message.get("method", b""))
        if not method:
            found = self._pending.get(bytes(message.get("id", b"")))
            if found is not None and not found.future.done():
                found.future.set_result(message)
        elif method == b'"notifications/progress"':
            self._progress(message)
        elif (self.on_message is None or not self.on_message(message)) and size <= _KEPT_BYTES:
            self.waiting.append(message)

    def _progress(self, message: Message) -> None:
        """Pass a message about the progress of a request to its client, with the client's token."""
        params = read_members(bytes(message.get("params", b""))) or {}
        found = self._pending.get(bytes(params.get("progressToken", b"")))
        if found is None or found.token is None:
            return
        found.begin_anew()
        if found.take is not None:
            params["progressToken"] = found.token
            found.take({**message, "params": msgspec.Raw(msgspec.json.encode(params))})

    def _end(self) -> None:
        self.ended = True
        for pending in self._pending.values():
            if not pending.future.done():
                pending.future.set_exception(Gone())

    async def stop(self) -> None:
        """Close its input, then end it with its children."""
        self.ended = True
        if self._process.stdin is not None:
            with contextlib.suppress(OSError, RuntimeError):
                self._process.stdin.close()
        try:
            async with asyncio.timeout(2):
                await self._process.wait()
        except TimeoutError:
            pass
        finally:
            # It leads a group of its own: `uvx` and `npx` leave the server as their child.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
            await self._process.wait()
        self._reading.cancel()
        self._end()


def _with_number(message: Message, number: msgspec.Raw) -> tuple[Message, msgspec.Raw | None]:
    """Return a request with our number as its id and progress token, and the client's token."""
    sent = {**message, "id": number}
    if b"progressToken" not in bytes(message.get("params", b"")):
        return sent, None
    params = read_members(bytes(message["params"])) or {}
    meta = read_members(bytes(params.get("_meta", b""))) or {}
    token = meta.get("progressToken")
    if token is None:
        return sent, None
    params["_meta"] = msgspec.Raw(msgspec.json.encode({**meta, "progressToken": number}))
    return {**sent, "params": msgspec.Raw(msgspec.json.encode(params))}, token


def _cancelled(number: msgspec.Raw) -> Message:
    params = msgspec.json.encode({"requestId": number, "reason": "the client does not wait any more"})
    return {
        "jsonrpc": msgspec.Raw(b'"2.0"'),
        "method": msgspec.Raw(b'"notifications/cancelled"'),
        "params": msgspec.Raw(params),
    }
