"""
Whole text frames, taken from the stream as they come; everything else is the library's to read.

Nearly all that ARCP's peers send is small text frames, each in one piece. The library's parser, which is ready for a frame
to break off anywhere, takes a dozen calls and as many objects for one. So a frame that begins where the library waits
for one, and is all there, goes straight to those who receive. What is left of the data, from the first frame on that is anything
else, goes the usual way: fragments, pings, closes, frames that are too large, or none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from websockets.asyncio.client import ClientConnection
from websockets.asyncio.server import ServerConnection
from websockets.frames import Frame, Opcode
from websockets.protocol import State
from websockets.streams import StreamReader

try:
    from websockets.speedups import apply_mask
except ImportError:  # pragma: no cover - where the library was installed without its extension
    from websockets.utils import apply_mask

if TYPE_CHECKING:
    from websockets.asyncio.connection import Connection as _Base
else:
    _Base = object

__all__ = ["ClientSide", "ServerSide"]

_TEXT = 0x81
_MASKED = 0x80
_TWO_BYTES = 126
# What the library's parser is at while it waits for the first byte of a frame.
_WAITING = StreamReader.at_eof.__code__


class _Whole(_Base):
    """A connection of the library's that reads whole text frames itself."""

    _masked: int

    def __init__(self, *given: Any, longest: int, **named: Any) -> None:
        """As the library says; `longest` is its `max_size`."""
        super().__init__(*given, **named)
        self._longest = longest

    def data_received(self, data: bytes) -> None:
        """Bytes of any number of frames, and of parts of them."""
        if data[0] == _TEXT and _between_messages(self.protocol):
            data = self._taken(data)
        if data:
            super().data_received(data)

    def _taken(self, data: bytes) -> bytes:
        """Hand on the whole text frames at the beginning, and return what follows them."""
        begin, end = 0, len(data)
        while end - begin > 2 and data[begin] == _TEXT:
            size, start = data[begin + 1] ^ self._masked, begin + 2
            if size == _TWO_BYTES:
                size, start = int.from_bytes(data[start : start + 2], "big"), start + 2
            elif size > _TWO_BYTES:
                # Masked where it must not be, or the other way round; or larger than any that comes in one piece.
                break
            if self._masked:
                start += 4
            stop = start + size
            if stop > end or size > self._longest:
                break
            payload = data[start:stop]
            if self._masked:
                payload = apply_mask(payload, data[start - 4 : start])
            self.recv_messages.put(Frame(Opcode.TEXT, payload))
            begin = stop
        return data[begin:]


class ServerSide(_Whole, ServerConnection):
    """A server's: frames come masked."""

    _masked = _MASKED


class ClientSide(_Whole, ClientConnection):
    """A client's: they do not."""

    _masked = 0


def _between_messages(protocol: Any) -> bool:
    """Whether the library expects a new message; False also where a version of it does not let that be seen."""
    if protocol.state is not State.OPEN or protocol.extensions or protocol.debug:
        return False
    waiting = getattr(protocol, "parser", None)
    while (inner := getattr(waiting, "gi_yieldfrom", None)) is not None:
        waiting = inner
    return getattr(waiting, "gi_code", None) is _WAITING and getattr(protocol, "current_size", 0) is None
