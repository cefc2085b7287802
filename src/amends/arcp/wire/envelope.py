"""
The envelope of every message (section 5). Reading never raises.

The payload stays undecoded until its type is known: most frames are read by their type alone, and a payload is decoded once,
into the struct of its type. `read` checks size and depth first.

Ids of messages, jobs and sessions are ULIDs, which sort by time and are the only form that every published peer accepts. A
message id only has to be unique, and every frame needs one: it consists of a time, a random number per process and a counter.
Ids of jobs and sessions have 64 random bits, so that one id does not help to guess another.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import lru_cache
from itertools import count
from math import isfinite
from secrets import randbits
from time import time_ns
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from amends.core import wire as documents

__all__ = [
    "MAX_FRAME",
    "VERSION",
    "Envelope",
    "Malformed",
    "Seq",
    "envelope",
    "message_id",
    "new_id",
    "payload_of",
    "read",
    "read_lenient",
    "write",
]

VERSION = "1.1"
"""The version that is written in `arcp`. Any 1.x is read: the protocol requires unknown members to be ignored."""

MAX_FRAME = 4 * 1024 * 1024
"""The most bytes of a frame. Section 14 limits a chunk to 1 MB; base64 and the envelope need less than twice that."""

Seq = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
"""A sequence number (v1.0, section 5.2: a signed 64-bit integer)."""

if TYPE_CHECKING:
    Payload = Any
else:
    # Undecoded when read; any value when written, because the encoder uses values and not annotations.
    Payload = msgspec.Raw


class Envelope(msgspec.Struct, omit_defaults=True, gc=False):
    """One message. `payload` is undecoded when read (see `payload_of`), and any JSON value when written."""

    arcp: str
    id: str
    type: str
    session_id: str | None = None
    trace_id: str | None = None
    job_id: str | None = None
    event_seq: Seq | None = None
    payload: Payload = msgspec.Raw(b"{}")


class Malformed(msgspec.Struct, frozen=True, gc=False):
    """A frame that is not an envelope. The reason never contains text of the frame."""

    reason: str
    id: str | None = None
    """The frame's id if it has a readable one, so that an answer can refer to it."""


_EMPTY = msgspec.Raw(b"{}")
_decode = msgspec.json.Decoder(Envelope, strict=False).decode
_decode_object = msgspec.json.Decoder(dict[str, object]).decode
_encode = msgspec.json.Encoder().encode

write: Callable[[Envelope], bytes] = _encode
"""
Encode a message as a frame, in UTF-8 and on one line.

Raises:
    TypeError, ValueError: the payload is not a JSON value.

"""

_TOO_LARGE = Malformed("the frame is too large")
_TOO_DEEP = Malformed("the frame is nested too deeply")
_NO_JSON = Malformed("the frame is not a JSON object")


def envelope(
    type: str,
    payload: object = _EMPTY,
    *,
    session_id: str | None = None,
    job_id: str | None = None,
    event_seq: int | None = None,
    trace_id: str | None = None,
    id: str | None = None,
) -> Envelope:
    """Create a message with a new id."""
    return Envelope(VERSION, id or message_id(), type, session_id, trace_id, job_id, event_seq, payload)


def read(data: str | bytes | bytearray, *, limit: int = MAX_FRAME) -> Envelope | Malformed:
    """Decode a frame of any bytes."""
    # A string of n characters has at least n bytes.
    if len(data) > limit:
        return _TOO_LARGE
    try:
        message = _decode(data)
    except RecursionError:
        return _TOO_DEEP
    except (msgspec.DecodeError, UnicodeError):
        return _read_again(data)
    if len(data) > 2 * documents.MAX_DEPTH and _brackets(data) > documents.MAX_DEPTH and _deep(data):
        return _TOO_DEEP
    version = message.arcp
    return message if version == VERSION or version.split(".", 1)[0] == "1" else _other_version(message)


def payload_of(message: Envelope) -> dict[str, object] | None:
    """The payload as an object, or None if it is not one."""
    payload = message.payload
    if not isinstance(payload, msgspec.Raw):
        return payload if isinstance(payload, dict) else None
    try:
        return _decode_object(payload)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        pass
    try:
        value = read_lenient(bytes(payload))
    except documents.Unreadable:
        return None
    return value if isinstance(value, dict) else None


def read_lenient(data: str | bytes | bytearray) -> Any:
    """
    Read a document that strict JSON rejects, as plain JSON values; `TOO_DEEP` if it is nested too deeply.

    Python's own writer emits NaN and lone surrogates, and a result must not be lost because of them: numbers that are not
    finite become null, lone surrogates become U+FFFD. Submissions are not read like this.

    Raises:
        Unreadable: it is not a JSON document at all.

    """
    value = documents.read(data)
    return value if value is documents.TOO_DEEP else _clean(value)


def _other_version(message: Envelope) -> Malformed:
    return Malformed("the frame has another version of the protocol", message.id[:64])


def _brackets(data: str | bytes | bytearray) -> int:
    if isinstance(data, str):
        return data.count("{") + data.count("[")
    return data.count(b"{") + data.count(b"[")


def _deep(data: str | bytes | bytearray) -> bool:
    """Whether a readable document is nested too deeply."""
    try:
        return documents.read(data) is documents.TOO_DEEP
    except documents.Unreadable:
        return False


def _read_again(data: str | bytes | bytearray) -> Envelope | Malformed:
    """Read a frame that strict JSON or the types rejected."""
    try:
        value = read_lenient(data)
    except documents.Unreadable:
        return _NO_JSON
    if value is documents.TOO_DEEP:
        return _TOO_DEEP
    if not isinstance(value, dict):
        return _NO_JSON
    given = value.get("id")
    id = given[:64] if isinstance(given, str) else None
    try:
        message = _decode(_encode(value))
    except msgspec.ValidationError as error:
        # msgspec's message names the member and the types, which are ours, and not the value.
        return Malformed(f"the envelope does not fit its schema: {error}", id)
    if message.type == "job.submit":
        # A job must not run with another input than the one that was sent: `read_payload` refuses this one.
        message.payload = msgspec.Raw(b"")
    return message


def _clean(value: object) -> Any:
    """The value with only valid Unicode and finite numbers. The depth is already limited."""
    if isinstance(value, str):
        return (
            value if value.isascii() else value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        )
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, dict):
        return {_clean(name): _clean(item) for name, item in value.items()}
    return [_clean(item) for item in value] if isinstance(value, list) else value


# Crockford's base 32, which omits I, L, O and U. Decimal and hexadecimal digits are valid in it.
_DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_PAIRS = [high + low for high in _DIGITS for low in _DIGITS]


@lru_cache(maxsize=1)
def _timestamp(now: int) -> str:
    """The first ten digits of an id: milliseconds. Cached, because ids of the same millisecond share them."""
    pairs = _PAIRS
    return (
        f"{pairs[now >> 40 & 1023]}{pairs[now >> 30 & 1023]}{pairs[now >> 20 & 1023]}"
        f"{pairs[now >> 10 & 1023]}{pairs[now & 1023]}"
    )


class _Messages:
    """The generator of this process's message ids."""

    __slots__ = ("_count", "_random")

    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        self._random = f"{randbits(32):08X}"
        self._count = count()

    def __call__(self) -> str:
        return f"{_timestamp(time_ns() // 1_000_000)}{self._random}{next(self._count) % 100_000_000:08d}"


message_id = _Messages()
"""Return a new message id."""

# A forked child must not repeat its parent's ids.
if hasattr(os, "register_at_fork"):  # pragma: no branch - every platform we run tests on has it
    os.register_at_fork(after_in_child=message_id.renew)


def new_id(prefix: str) -> str:
    """
    An id that cannot be guessed: `job_01J…`.

    >>> len(new_id("job"))
    30
    """
    return f"{prefix}_{_timestamp(time_ns() // 1_000_000)}{os.urandom(8).hex().upper()}"
