"""
The envelope around every message (section 5), read without ever raising.

The payload stays bytes until somebody knows what it is: most frames are read by their type alone, and a payload is
decoded once, into the struct of its type. `read` bounds size and depth before anything is looked at.
"""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from amends.arcp.wire.ids import message_id
from amends.core import wire as documents

__all__ = [
    "MAX_FRAME",
    "VERSION",
    "Envelope",
    "Malformed",
    "Seq",
    "cleaned",
    "envelope",
    "payload_of",
    "read",
    "write",
]

VERSION = "1.1"
"""What we write in `arcp`. Any 1.x is read: the protocol asks that unknown members be ignored, not versions."""

MAX_FRAME = 4 * 1024 * 1024
"""Bytes of one frame. Section 14 caps a chunk at 1 MB; base64 and the envelope around it need less than twice that."""

Seq = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
"""A sequence number (v1.0, section 5.2: a signed 64-bit integer)."""

if TYPE_CHECKING:
    Payload = Any
else:
    # Undecoded while reading; writing takes any value, because the encoder looks at values and not at annotations.
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
    """A frame that is no envelope. Says why in our words, never in the frame's."""

    reason: str
    id: str | None = None
    """The frame's id where it has a readable one, so that an answer can name it."""


_EMPTY = msgspec.Raw(b"{}")
_decode = msgspec.json.Decoder(Envelope, strict=False).decode
_decode_object = msgspec.json.Decoder(dict[str, Any]).decode
_encode = msgspec.json.Encoder().encode

_TOO_LARGE = Malformed("the frame is too large")
_TOO_DEEP = Malformed("the frame is nested too deep")
_NO_JSON = Malformed("the frame is no JSON object")


def envelope(
    type: str,
    payload: Any = _EMPTY,
    *,
    session_id: str | None = None,
    job_id: str | None = None,
    event_seq: int | None = None,
    trace_id: str | None = None,
    id: str | None = None,
) -> Envelope:
    """A new message with an id of its own."""
    return Envelope(VERSION, id or message_id(), type, session_id, trace_id, job_id, event_seq, payload)


def write(message: Envelope) -> bytes:
    """
    The frame of a message, in UTF-8 and on one line.

    Raises:
        TypeError, ValueError: when the payload is no JSON value; that is the writer's mistake.

    """
    return _encode(message)


def read(data: str | bytes | bytearray, *, limit: int = MAX_FRAME) -> Envelope | Malformed:
    """The message in a frame, whatever bytes it has."""
    # A text of n characters has at least n bytes.
    if len(data) > limit:
        return _TOO_LARGE
    try:
        message = _decode(data)
    except RecursionError:
        return _TOO_DEEP
    except (msgspec.DecodeError, UnicodeError):
        return _forgiving(data)
    if len(data) > 2 * documents.MAX_DEPTH and _brackets(data) > documents.MAX_DEPTH and _deep(data):
        return _TOO_DEEP
    return message if message.arcp[:1] == "1" and message.arcp[1:2] in {"", "."} else _foreign(message)


def payload_of(message: Envelope) -> dict[str, Any] | None:
    """The payload as an object, or None when it is none."""
    payload = message.payload
    if payload.__class__ is not msgspec.Raw:
        return payload if payload.__class__ is dict else None
    try:
        return _decode_object(payload)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        pass
    try:
        value = cleaned(bytes(payload))
    except documents.Unreadable:
        return None
    return value if value.__class__ is dict else None


def cleaned(data: str | bytes | bytearray) -> Any:
    """
    The value of a document that strict JSON refuses, made of JSON's own values; `TOO_DEEP` where it is.

    Python's own writer lets NaN and lone surrogates through, and a result must not be lost over them: numbers that
    are none become null, halves of characters become U+FFFD.

    Raises:
        Unreadable: when it is no document at all.

    """
    value = documents.read(data)
    return value if value is documents.TOO_DEEP else _clean(value)


def _foreign(message: Envelope) -> Malformed:
    return Malformed("the frame speaks another version of the protocol", message.id[:64])


def _brackets(data: Any) -> int:
    curly, square = ("{", "[") if data.__class__ is str else (b"{", b"[")
    count: int = data.count(curly) + data.count(square)
    return count


def _deep(data: str | bytes | bytearray) -> bool:
    """Whether a readable document is nested too deep."""
    try:
        return documents.read(data) is documents.TOO_DEEP
    except documents.Unreadable:
        return False


def _forgiving(data: str | bytes | bytearray) -> Envelope | Malformed:
    """Read again what strict JSON or the types refused."""
    try:
        value = cleaned(data)
    except documents.Unreadable:
        return _NO_JSON
    if value is documents.TOO_DEEP:
        return _TOO_DEEP
    if value.__class__ is not dict:
        return _NO_JSON
    given = value.get("id")
    id = given[:64] if given.__class__ is str else None
    try:
        return _decode(_encode(value))
    except msgspec.ValidationError as error:
        # msgspec names the member and the types, both ours; the value is not shown.
        return Malformed(f"the envelope does not fit: {error}", id)


def _clean(value: Any) -> Any:
    """The value with every text in Unicode and every number finite. Depth is known to be bounded here."""
    kind = value.__class__
    if kind is str:
        return (
            value if value.isascii() else value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        )
    if kind is float:
        return value if isfinite(value) else None
    if kind is dict:
        return {_clean(name): _clean(item) for name, item in value.items()}
    return [_clean(item) for item in value] if kind is list else value
