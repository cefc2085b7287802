"""
MCP tool results (S4): `structuredContent.adcp_error`, the same object as JSON text, and the payload layer.

`isError` must be exactly true; a successful result whose text happens to be an error's JSON is a success (A16.4).
"""

from __future__ import annotations

from typing import Any

import msgspec

from amends.carriers import jsonrpc
from amends.carriers.layers import KEY, envelope_error, payload_error, truthy
from amends.carriers.reading import FAILED, NOT_FAILED, Reading
from amends.core.fault import Fault, Origin
from amends.core.wire import Unreadable, read_strict
from amends.dialects import adcp

__all__ = ["STRUCTURED_SINCE", "read", "result", "write"]

STRUCTURED_SINCE = "2025-06-18"
"""The first protocol version whose results have `structuredContent` (design section 8)."""

_STRUCTURED = Origin("adcp", "structuredContent")
_TEXT = Origin("adcp", "text_fallback")


def read(result: Any, within: int | None = None) -> Reading:
    """
    The reading of a tools/call result, bare or in its JSON-RPC response.

    `within` is the size of the document it was read from, where that is known.
    """
    if result.__class__ is not dict:
        return NOT_FAILED
    if ("jsonrpc" in result or "error" in result) and jsonrpc.is_response(result):
        if result.get("error") is not None:
            return jsonrpc.read(result)
        result = result.get("result")
        if result.__class__ is not dict:
            return NOT_FAILED
    failed = result.get("isError") is True
    structured = result.get("structuredContent")
    if failed:
        if structured.__class__ is dict:
            error: Any = structured.get(KEY)
            if error.__class__ is dict or truthy(error):  # the usual case first
                if not adcp.valid(error, within):
                    return FAILED
                return Reading(True, adcp.fault_of(error, _STRUCTURED), "structuredContent", error, True)
        found = _from_text(result.get("content"))
        if found is not None:
            return found
    return payload_error(structured, failed=failed, finished=not failed) or (FAILED if failed else NOT_FAILED)


def _from_text(content: Any) -> Reading | None:
    """The first text item that is JSON and has a truthy `adcp_error` decides."""
    if content.__class__ is not list:
        return None
    for item in content:
        if item.__class__ is not dict or item.get("type") != "text":
            continue
        text = item.get("text")
        if text.__class__ is not str or "{" not in text:
            # Prose: not worth a parser's error.
            continue
        try:
            parsed = read_strict(text)
        except Unreadable:
            continue
        if parsed.__class__ is dict and truthy(parsed.get(KEY)):
            return envelope_error(parsed[KEY], _TEXT)
    return None


def write(fault: Fault, *, protocol: str = STRUCTURED_SINCE, sentence: str | None = None) -> dict[str, Any]:
    """
    An `isError` result that says `fault` (A2).

    Args:
        fault: in the adcp vocabulary, or any other where both sides agreed on it.
        protocol: the negotiated version; older ones than STRUCTURED_SINCE get the text alone.
        sentence: one terse sentence for people and models, as a second text item.

    """
    return result(adcp.encode(fault), protocol=protocol, sentence=sentence)


def result(
    error: dict[str, Any],
    *,
    parts: list[dict[str, Any]] | None = None,
    protocol: str = STRUCTURED_SINCE,
    sentence: str | None = None,
) -> dict[str, Any]:
    """
    The same from an error object that is there already.

    Args:
        error: what failed as a whole.
        parts: the failures it is made of, for the payload layer: those of several upstreams (A18).
        protocol: the negotiated version.
        sentence: for people and models.

    """
    said = {KEY: error} if parts is None else {KEY: error, "errors": parts}
    content = [{"type": "text", "text": msgspec.json.encode(said).decode()}]
    if sentence:
        content.append({"type": "text", "text": sentence})
    written: dict[str, Any] = {"content": content, "isError": True}
    if protocol >= STRUCTURED_SINCE:
        # A5: a fatal failure fills both layers.
        written["structuredContent"] = {KEY: error, "errors": [error] if parts is None else parts}
    return written
