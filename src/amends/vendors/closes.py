"""
WebSocket close codes: the registered ones, and those from 4000 on, which each service defines for itself.

The same number may mean "connect again" on one socket and "give up" on another, so a number of a service counts only if
the service is known. The reason is prose and never decides, unless all of it is one code word.
"""

from __future__ import annotations

import re

from amends.core.fault import Fault
from amends.core.meanings import (
    BAD_KEY,
    FORBIDDEN,
    INTERNAL,
    INVALID,
    LOST,
    OVERLOADED,
    TIMEOUT,
    TOO_LARGE,
    UNAVAILABLE,
    Meaning,
)
from amends.vendors.evidence import Evidence
from amends.vendors.meaning import by_words
from amends.vendors.reading import build
from amends.vendors.registry import index, is_service

__all__ = ["REGISTERED", "read_close"]

REGISTERED: dict[int, Meaning] = {
    1001: LOST,
    1002: INVALID,
    1003: INVALID,
    1005: LOST,
    1006: LOST,
    1007: INVALID,
    1008: FORBIDDEN,
    1009: TOO_LARGE,
    1010: INVALID,
    1011: INTERNAL,
    1012: UNAVAILABLE,
    1013: OVERLOADED,
    1014: UNAVAILABLE,
    3000: BAD_KEY,
    3003: FORBIDDEN,
    3008: TIMEOUT,
}
"""RFC 6455 and IANA's registry of close codes. 1000 is a normal end."""

_WORD = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:[-_.][A-Za-z0-9]+)+")


def read_close(code: int, reason: str = "", vendor: str | None = None) -> Fault | None:
    """
    Return the fault of a closed socket, or None for a normal end (1000) and for numbers that are no close codes.

    Args:
        code: the close code.
        reason: the text of the close frame.
        vendor: the service, by its name.

    >>> read_close(4004, "Authentication failed.", "discord").code
    'UNAUTHENTICATED'
    >>> read_close(1000) is None
    True

    """
    if not 1000 < code < 5000:
        return None
    known = index()
    sender = None if vendor is None else known.vendors[vendor]
    kind = None if sender is None else sender.closes.get(code)
    word = str(code)
    if _WORD.fullmatch(reason[:129]):
        # `NET-0001` (Deepgram), `invalid_request_error.invalid_api_key` (OpenAI): the last part is the most specific.
        found = by_words([*reversed(reason.split(".")), reason], None, sender, known)
        if found is not None:
            kind, word = found
    # A number of the protocol is the service's own code word; one of its text may be another service's.
    evidence = Evidence(proved=kind is None or is_service(vendor))
    if kind is None:
        kind = REGISTERED.get(code, LOST)
    evidence.message = reason[:_LONGEST]
    return build(kind, None, evidence, vendor, word, None, None, "close")


_LONGEST = 123
"""Bytes that a close frame has room for (RFC 6455, section 5.5)."""
