"""
Encode a text frame of RFC 6455, unfragmented and without extensions: the only kind this package sends on an open connection.

The websockets library needs five calls and an object for each frame, which matters for many small messages.
"""

from __future__ import annotations

from os import urandom
from struct import Struct

__all__ = ["text_frame"]

_TEXT = 0x81
_MASKED = 0x80
_two_bytes = Struct("!BBH").pack
_eight_bytes = Struct("!BBQ").pack


def text_frame(data: bytes, *, masked: bool) -> bytes:
    r"""
    Encode a message as a frame; a client's frames are `masked` (5.3), with an unpredictable key.

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
    return head + key + _mask(data, key)


def _mask(data: bytes, key: bytes) -> bytes:
    """XOR with the repeated key, as one number: faster than a loop over the bytes."""
    size = len(data)
    repeated = key * (size // 4) + key[: size % 4]
    return (int.from_bytes(data, "little") ^ int.from_bytes(repeated, "little")).to_bytes(size, "little")
