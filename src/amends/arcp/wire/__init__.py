"""
The messages of ARCP: envelopes, payloads, ids, times and features.

PURE except for new ids and times, which use randomness and the clock because every frame needs them. Reading is total
and lenient: any bytes give an `Envelope` or a `Malformed`, unknown members are ignored, null counts as absent, numbers may
be strings. Writing is strict: absent members are omitted, and times are in UTC.
"""

from __future__ import annotations

from amends.arcp.wire.envelope import (
    MAX_FRAME,
    VERSION,
    Envelope,
    Malformed,
    envelope,
    message_id,
    new_id,
    payload_of,
    read,
    write,
)
from amends.arcp.wire.features import FEATURES, STEPS, negotiate
from amends.arcp.wire.messages import MESSAGES, Message, read_payload
from amends.arcp.wire.times import now_text, seconds_of, text_of

__all__ = [
    "FEATURES",
    "MAX_FRAME",
    "MESSAGES",
    "STEPS",
    "VERSION",
    "Envelope",
    "Malformed",
    "Message",
    "envelope",
    "message_id",
    "negotiate",
    "new_id",
    "now_text",
    "payload_of",
    "read",
    "read_payload",
    "seconds_of",
    "text_of",
    "write",
]
