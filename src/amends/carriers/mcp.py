"""
MCP tool results with AdCP errors (S4): `structuredContent.adcp_error`, the same as JSON text, and the payload layer.

`isError` must be exactly true: a successful result whose text is the JSON of an error is a success (A16.4).
"""

from __future__ import annotations

from typing import Any

import msgspec

from amends.carriers import detection
from amends.core.fault import Fault
from amends.core.reading import Reading
from amends.dialects import adcp, record
from amends.dialects.adcp import KEY, parts_beside

__all__ = ["STRUCTURED_SINCE", "read", "result", "write"]

STRUCTURED_SINCE = "2025-06-18"
"""The first protocol version whose results have `structuredContent` (design section 8)."""


def read(result: Any) -> Reading:
    """
    Read a tools/call result, bare or in its JSON-RPC response.

    The result need not be plain: it may be large, so only what is looked at is converted.
    """
    return detection.read(result, tasks=False)


def write(fault: Fault, *, protocol: str = STRUCTURED_SINCE, sentence: str | None = None) -> dict[str, Any]:
    """
    Return an `isError` result with `fault` (A2).

    Args:
        fault: in the adcp vocabulary, or in another one that both sides agreed on.
        protocol: the negotiated version. Versions before STRUCTURED_SINCE get the text alone.
        sentence: one terse sentence for people and models, as a second text item.

    """
    parts = [adcp.encode_alone(part) for part in parts_beside(fault)]
    return result(
        adcp.encode_alone(fault),
        parts=parts or None,
        protocol=protocol,
        sentence=sentence,
        meta=record.beside(fault),
    )


def result(
    error: dict[str, Any],
    *,
    parts: list[dict[str, Any]] | None = None,
    protocol: str = STRUCTURED_SINCE,
    sentence: str | None = None,
    structured: bool = True,
    meta: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """
    Return the same from an encoded error object.

    Args:
        error: the error of the whole call.
        parts: the errors of several upstreams that it consists of, for the payload layer (A18).
        protocol: the negotiated version.
        sentence: for people and models.
        structured: False for text alone.
        meta: what travels beside the error (`amends.dialects.record`).

    """
    document = {KEY: error} if parts is None else {KEY: error, "errors": parts}
    content = [{"type": "text", "text": msgspec.json.encode(document).decode()}]
    if sentence:
        content.append({"type": "text", "text": sentence})
    written: dict[str, Any] = {"content": content, "isError": True}
    if meta:
        written["_meta"] = meta
    if structured and protocol >= STRUCTURED_SINCE:
        # A5: a fatal failure fills both layers.
        written["structuredContent"] = {KEY: error, "errors": [error] if parts is None else parts}
    return written
