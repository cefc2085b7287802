"""
MCP tool results with AdCP errors (S4): `structuredContent.adcp_error`, the same as JSON text, and the payload layer.

`isError` must be exactly true: a successful result whose text is the JSON of an error is a success (A16.4).
"""

from __future__ import annotations

from typing import Any

import msgspec

from amends.carriers import jsonrpc
from amends.carriers.layers import KEY, beside, envelope_error, payload_error
from amends.carriers.reading import FAILED, NOT_FAILED, Reading
from amends.core import travel
from amends.core.fault import Fault, Origin
from amends.core.wire import Unreadable, as_dict, plain, read_strict
from amends.dialects import adcp
from amends.dialects.members import text, truthy

__all__ = ["STRUCTURED_SINCE", "read", "result", "write"]

STRUCTURED_SINCE = "2025-06-18"
"""The first protocol version whose results have `structuredContent` (design section 8)."""

_STRUCTURED = Origin("adcp", "structuredContent")
_TEXT = Origin("adcp", "text_fallback")


def read(result: Any, within: int | None = None) -> Reading:
    """
    Read a tools/call result, bare or in its JSON-RPC response.

    The result need not be plain: it may be large, so only what is looked at is converted.

    Args:
        result: the result.
        within: size in bytes of the document that it was parsed from, if it was.

    """
    found = as_dict(result)
    if found is None:
        return NOT_FAILED
    if jsonrpc.is_response(found):
        if found.get("error") is not None:
            return jsonrpc.read(plain(found))
        found = as_dict(found.get("result"))
        if found is None:
            return NOT_FAILED
    reading: Reading | None
    failed = found.get("isError") is True
    structured = as_dict(found.get("structuredContent"))
    if failed:
        error = None if structured is None else structured.get(KEY)
        if truthy(error):
            reading = envelope_error(error, _STRUCTURED, within=within)
        else:
            reading = _from_text(plain(found.get("content")))
        if reading is not None:
            return beside(reading, found.get("_meta"))
    reading = payload_error(plain(structured), failed=failed, finished=not failed)
    return reading or (FAILED if failed else NOT_FAILED)


def _from_text(content: Any) -> Reading | None:
    """Read the first text item that is JSON with a truthy `adcp_error`."""
    if not isinstance(content, list):
        return None
    for item in content:
        if not isinstance(item, dict) or text(item.get("type")) != "text":
            continue
        content_text = text(item.get("text"))
        # A text without a brace is prose and need not be parsed.
        if content_text is None or "{" not in content_text:
            continue
        try:
            parsed = read_strict(content_text)
        except Unreadable:
            continue
        if isinstance(parsed, dict) and truthy(parsed.get(KEY)):
            return envelope_error(parsed[KEY], _TEXT)
    return None


def write(fault: Fault, *, protocol: str = STRUCTURED_SINCE, sentence: str | None = None) -> dict[str, Any]:
    """
    Return an `isError` result with `fault` (A2).

    Args:
        fault: in the adcp vocabulary, or in another one that both sides agreed on.
        protocol: the negotiated version. Versions before STRUCTURED_SINCE get the text alone.
        sentence: one terse sentence for people and models, as a second text item.

    """
    return result(adcp.encode(fault), protocol=protocol, sentence=sentence, meta=travel.write(fault))


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
        meta: what travels beside the error (`amends.core.travel`).

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
