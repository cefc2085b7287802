"""
Text frames of RFC 6455, written and read without the library's own steps per frame; the library does everything else.

Nearly all data of a connection are unfragmented, uncompressed text frames. If the library reads the three frames of an echo
job, the job takes 165 µs of CPU instead of 131 (bench/arcp.py).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from os import urandom
from struct import Struct

from websockets.asyncio.client import ClientConnection
from websockets.asyncio.connection import Connection
from websockets.asyncio.server import ServerConnection
from websockets.exceptions import ConnectionClosed

__all__ = ["ClientSocket", "FrameSocket", "ServerSocket", "text_frame"]

_TEXT = 0x81
"""The first byte of a text frame that is a whole message, without extensions."""
_KEEPALIVE = frozenset({0x89, 0x8A})
"""The first bytes of pings and pongs."""
_MASKED = 0x80
_two_bytes = Struct("!BBH").pack
_eight_bytes = Struct("!BBQ").pack
_HEAD_END = b"\r\n\r\n"
_SMALLEST_READ, _LARGEST_READ = 16 * 1024, 256 * 1024
"""Bytes that are read from the network at once; the buffer grows if more arrive."""
_QUEUED = 64 * 1024
"""Bytes of unread frames above which nothing is read from the network."""
_OVERHEAD = 64
"""Bytes of a queued frame beside its data."""


def text_frame(data: bytes, *, masked: bool) -> bytes:
    r"""
    Encode a message as a text frame, unfragmented and without extensions; a client's frames are `masked` (5.3), with an unpredictable key.

    >>> text_frame(b"hello", masked=False)
    b'\x81\x05hello'
    """
    size = len(data)
    bit = _MASKED if masked else 0
    if size < 126:
        head = bytes((_TEXT, bit | size))
    elif size < 65536:
        head = _two_bytes(_TEXT, bit | 126, size)
    else:
        head = _eight_bytes(_TEXT, bit | 127, size)
    if not masked:
        return head + data
    key = urandom(4)
    return b"".join((head, key, _mask(data, key)))


def _mask(data: bytes, key: bytes) -> bytes:
    """XOR with the repeated key, as one number: faster than a loop over the bytes. Also removes the mask."""
    size = len(data)
    repeated = int.from_bytes((key * (size // 4 + 1))[:size], "little")
    return (int.from_bytes(data, "little") ^ repeated).to_bytes(size, "little")


class FrameSocket(Connection, asyncio.BufferedProtocol):
    """
    A connection of the library that reads text frames itself, after `read_frames` was called.

    Pings and pongs are passed to the library. From the first other frame on (closing, fragmented, compressed, too large or
    malformed) the library gets all data: it reads or refuses them.

    A protocol without a buffer of its own gets 256 KiB of new memory for every read, which takes up to 15 µs.
    """

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start with the handshake, which the library reads."""
        self._buffer = memoryview(bytearray(_SMALLEST_READ))
        self._only_handshake: bool | None = None
        """Whether the library has received the head of the handshake and nothing else; None before that."""
        self.direct = False
        """Whether text frames are read here and may be written to the transport: the connection is open and only has such frames."""
        self._limit = 0
        """The most bytes of a frame; 0 while the library reads all data."""
        self._masked = isinstance(self, ServerConnection)
        self._partial = bytearray()
        self._missing = 0
        """How many bytes are missing at least until `_partial` contains a frame."""
        self._frames: deque[bytes] = deque()
        self._queued = 0
        self._paused = self._discards = False
        self._waiter: asyncio.Future[bool] | None = None
        self._take: Callable[[bytes], bool] | None = None
        super().connection_made(transport)

    def read_frames(self, limit: int) -> None:
        """Read text frames of up to `limit` bytes from now on, if the library has received nothing but the handshake."""
        if self._only_handshake:
            self._limit = limit
            self.direct = True

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return the buffer for the next read."""
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Take the data of one read."""
        data = bytes(self._buffer[:nbytes])
        if nbytes == len(self._buffer) < _LARGEST_READ:
            self._buffer = memoryview(bytearray(2 * nbytes))
        self.data_received(data)

    def data_received(self, data: bytes) -> None:
        """Queue the text frames of the data, and pass everything else to the library."""
        if not self._limit:
            first = self._only_handshake is None
            self._only_handshake = first and data.find(_HEAD_END) == len(data) - len(_HEAD_END)
            super().data_received(data)
            return
        if self._missing > 0:
            self._partial += data
            self._missing -= len(data)
            if self._missing > 0:
                return
            data = bytes(self._partial)
            self._partial.clear()
        self._split(data)
        if self._queued > _QUEUED and not self._paused:
            self._paused = True
            self.transport.pause_reading()

    def _split(self, data: bytes) -> None:
        at = end = 0
        size = len(data)
        while size - at >= 2:
            # If the head is not complete, these are lower bounds, and `end` is behind the data.
            length, begin = data[at + 1] & ~_MASKED, at + 2
            if length >= 126:
                begin += 2 if length == 126 else 8
                length = int.from_bytes(data[at + 2 : begin], "big")
            masked = data[at + 1] >= _MASKED
            if masked:
                begin += 4
            end = begin + length
            readable = masked == self._masked and length <= self._limit
            if readable and data[at] == _TEXT:
                if end > size:
                    break
                frame = data[begin:end]
                self._add(_mask(frame, data[begin - 4 : begin]) if masked else frame)
            elif readable and data[at] in _KEEPALIVE and length < 126:
                if end > size:
                    break
                super().data_received(data[at:end])
            else:
                self._leave_to_library()
                super().data_received(data[at:])
                return
            at = end
        if at < size:
            self._partial += data[at:]
            self._missing = max(1, end - size)

    def _add(self, frame: bytes) -> None:
        """Pass a frame to the function of a task that waits in `receive_into`, or queue it."""
        if self._discards:
            return
        if self._take is None:
            self._frames.append(frame)
            self._queued += len(frame) + _OVERHEAD
            self._wake(refused=False)
            return
        try:
            # Without a switch to the task, an echo job takes 12 µs less (bench/arcp.py).
            if not self._take(frame):
                self._wake(refused=True)
        except Exception as error:  # noqa: BLE001 - the waiting task raises it
            self._wake(refused=False, error=error)

    # -- receiving; only one task may do so

    async def receive_frame(self) -> bytes | None:
        """Return the next frame, or None if the connection has ended."""
        while not self._frames:
            if not self._limit:
                return await self._receive_from_library()
            await self._wait(None)
        return self._next()

    async def receive_into(self, take: Callable[[bytes], bool]) -> bool:
        """Pass every frame to a function until that returns False. Returns False if the connection has ended."""
        while True:
            while self._frames:
                if not take(self._next()):
                    return True
            if self._limit:
                if await self._wait(take):
                    return True
            elif (frame := await self._receive_from_library()) is None:
                return False
            elif not take(frame):
                return True

    def _next(self) -> bytes:
        frame = self._frames.popleft()
        if not self._frames:
            self._resume()
        return frame

    async def _receive_from_library(self) -> bytes | None:
        try:
            return await self.recv(decode=False)
        except ConnectionClosed:
            return None

    async def _wait(self, take: Callable[[bytes], bool] | None) -> bool:
        """Wait until something has changed. Returns whether `take` returned False."""
        self._take = take
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            return await self._waiter
        finally:
            self._take = None

    def _wake(self, *, refused: bool, error: Exception | None = None) -> None:
        """End `_wait`."""
        self._take = None
        if self._waiter is not None and not self._waiter.done():
            if error is None:
                self._waiter.set_result(refused)
            else:
                self._waiter.set_exception(error)

    # -- the end

    async def close(self, code: int = 1000, reason: str = "") -> None:
        """Close the connection. Unread frames are discarded, so that the other side's confirmation behind them is read."""
        self.direct = False
        self._discards = True
        self._frames.clear()
        self._resume()
        await super().close(code, reason)

    def connection_lost(self, exc: Exception | None) -> None:
        """Wake the receiving task."""
        super().connection_lost(exc)
        self._leave_to_library()

    def _leave_to_library(self) -> None:
        self._limit = 0
        self.direct = False
        self._wake(refused=False)

    def _resume(self) -> None:
        self._queued = 0
        if self._paused:
            self._paused = False
            if not self.transport.is_closing():
                self.transport.resume_reading()


class ServerSocket(FrameSocket, ServerConnection):
    """The server's side of a connection."""


class ClientSocket(FrameSocket, ClientConnection):
    """The client's side of a connection."""
