"""
What ARCP peers say to each other: envelopes, their payloads, ids, times, features.

PURE but for `ids` and `times`, which roll dice and read the clock because every frame needs a fresh id. A reader is
total and liberal: any bytes give an `Envelope` or a `Malformed`, unknown members are ignored, nulls count as absent,
numbers may be strings. A writer is strict: what is absent is left out, and times are UTC.
"""

from __future__ import annotations

from amends.arcp.wire.envelope import (
    MAX_FRAME,
    VERSION,
    Envelope,
    Malformed,
    envelope,
    payload_of,
    read,
    write,
)
from amends.arcp.wire.features import FEATURES, negotiated
from amends.arcp.wire.ids import message_id, new_id
from amends.arcp.wire.messages import MESSAGES, Message, read_payload
from amends.arcp.wire.times import now_text, seconds_of, text_of

__all__ = [
    "FEATURES",
    "MAX_FRAME",
    "MESSAGES",
    "VERSION",
    "Envelope",
    "Malformed",
    "Message",
    "envelope",
    "message_id",
    "negotiated",
    "new_id",
    "now_text",
    "payload_of",
    "read",
    "read_payload",
    "seconds_of",
    "text_of",
    "write",
]
