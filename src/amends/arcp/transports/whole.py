"""
Read whole text frames directly from the stream; the websockets library reads everything else.

Nearly all frames of ARCP peers are small, unfragmented text frames. The library's parser, which supports frames that are
split anywhere, needs a dozen calls and as many objects for one. A frame that begins where the library expects one, and that
is complete, therefore goes directly to the receiver. From the first other frame on (a fragment, a ping, a close, a frame
that is too large or invalid), the library parses the rest of the data.
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
except ImportError:  # pragma: no cover - websockets without its C extension
    from websockets.utils import apply_mask

if TYPE_CHECKING:
    from websockets.asyncio.connection import Connection as _Base
else:
    _Base = object

__all__ = ["ClientSide", "ServerSide"]

_TEXT = 0x81
_MASKED = 0x80
_TWO_BYTES = 126
# The code that the library's parser is suspended in while it waits for the first byte of a frame.
_WAITING = StreamReader.at_eof.__code__


class _Whole(_Base):
    """A connection of the library that reads whole text frames itself."""

    _masked: int

    def __init__(self, *given: Any, longest: int, **named: Any) -> None:
        """Takes the library's arguments; `longest` is its `max_size`."""
        super().__init__(*given, **named)
        self._longest = longest

    def data_received(self, data: bytes) -> None:
        """Handle bytes of any number of frames, and of parts of frames."""
        if data[0] == _TEXT and _between_messages(self.protocol):
            data = self._taken(data)
        if data:
            super().data_received(data)

    def _taken(self, data: bytes) -> bytes:
        """Deliver the whole text frames at the beginning, and return the rest of the data."""
        begin, end = 0, len(data)
        while end - begin > 2 and data[begin] == _TEXT:
            size, start = data[begin + 1] ^ self._masked, begin + 2
            if size == _TWO_BYTES:
                size, start = int.from_bytes(data[start : start + 2], "big"), start + 2
            elif size > _TWO_BYTES:
                # Wrongly masked or unmasked, or larger than any frame that comes in one piece.
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
    """The server's side: received frames are masked."""

    _masked = _MASKED


class ClientSide(_Whole, ClientConnection):
    """The client's side: received frames are not masked."""

    _masked = 0


def _between_messages(protocol: Any) -> bool:
    """Whether the library expects a new message; False also if its version does not expose that."""
    if protocol.state is not State.OPEN or protocol.extensions or protocol.debug:
        return False
    waiting = getattr(protocol, "parser", None)
    while (inner := getattr(waiting, "gi_yieldfrom", None)) is not None:
        waiting = inner
    return getattr(waiting, "gi_code", None) is _WAITING and getattr(protocol, "current_size", 0) is None
