"""
The objects of the usual libraries, seen as plain values.

By duck type alone: nothing is imported, and an object that only looks like one of these answers None. Reading an
object runs its code, so every touch is guarded: whatever it raises, there is just nothing to see.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["plain"]


def plain(value: Any) -> tuple[str | None, Any]:
    """(via, plain value) of a library's object; via is None where the shape has to decide; (None, None) if unknown."""
    for via, look in _LOOKS:
        try:
            seen = look(value)
        except Exception:  # noqa: BLE001, S112 - a foreign object's property may raise anything
            continue
        if seen is not None:
            return via, seen
    return None, None


def _response(value: Any) -> Any:
    """An HTTP response: httpx, httpx2, requests, aiohttp, Starlette, urllib, Django, Flask."""
    status = getattr(value, "status_code", None) or getattr(value, "status", None)
    headers: Any = getattr(value, "headers", None)
    if type(status) is not int or not (isinstance(headers, Mapping) or hasattr(headers, "items")):
        return None
    return {"status": status, "headers": dict(headers.items()), "body": _content(value)}


def _content(value: Any) -> Any:
    """A body that is there already. One still on the wire is not fetched: that is the caller's to do."""
    if getattr(value, "_content", None) is False:
        # requests would fetch a streamed body when its content is looked at.
        return None
    # So does urllib3 with its data, and unlike the frameworks' responses it can be read like a file.
    names = ("content", "body", "_body", "text") if hasattr(value, "read") else _BODIES
    for name in names:
        try:
            found = getattr(value, name, None)
        except Exception:  # noqa: BLE001, S112 - httpx raises for a body not read yet
            continue
        if isinstance(found, str | bytes | bytearray):
            return bytes(found) if isinstance(found, bytearray) else found
    return None


_BODIES = ("content", "body", "_body", "data", "text")


def _either(value: Any, name: str, older: str) -> Any:
    """An attribute by its present name; the older one is not touched where there is one, because it may warn."""
    return getattr(value, name) if hasattr(value, name) else getattr(value, older, None)


def _tool_result(value: Any) -> Any:
    """A CallToolResult of the MCP SDK (1.x and 2.x spellings) or of FastMCP's client."""
    failed = _either(value, "is_error", "isError")
    if type(failed) is not bool:
        # Before anything else is looked at: the content of a streamed response would be fetched.
        return None
    content = getattr(value, "content", None)
    if not isinstance(content, list | tuple):
        return None
    structured = _either(value, "structured_content", "structuredContent")
    items = [
        item
        if isinstance(item, dict)
        else {"type": getattr(item, "type", None), "text": getattr(item, "text", None)}
        for item in content
    ]
    return {"isError": failed, "structuredContent": structured, "content": items}


def _rpc_error(value: Any) -> Any:
    """An MCPError, or any exception or object with a JSON-RPC code, message and data."""
    inner = getattr(value, "error", None)
    holder: Any = inner if type(getattr(inner, "code", None)) is int else value
    code = getattr(holder, "code", None)
    if type(code) is not int or not hasattr(holder, "data") or not hasattr(holder, "message"):
        return None
    return {"jsonrpc": "2.0", "error": {"code": code, "message": holder.message, "data": holder.data}}


def _process(value: Any) -> Any:
    """A CompletedProcess or CalledProcessError."""
    code = getattr(value, "returncode", None)
    if type(code) is not int or not hasattr(value, "stdout"):
        return None
    return {"exit": code, "stdout": _text(value.stdout), "stderr": _text(value.stderr)}


def _timed_out(value: Any) -> Any:
    """A TimeoutExpired: no exit code, and a command that may go on."""
    if not hasattr(value, "cmd") or not hasattr(value, "timeout") or hasattr(value, "returncode"):
        return None
    return {"exit": None, "stdout": _text(getattr(value, "stdout", None)), "stderr": "", "timed_out": True}


def _text(stream: Any) -> str:
    if isinstance(stream, bytes):
        return stream.decode("utf-8", "replace")
    return stream if isinstance(stream, str) else ""


def _protobuf(value: Any) -> Any:
    """An A2A 1.0 message: it carries its own descriptor, and its library is loaded already."""
    if not hasattr(value, "DESCRIPTOR"):
        return None
    from google.protobuf.json_format import MessageToDict  # type: ignore[import-untyped,unused-ignore]

    return MessageToDict(value)


def _model(value: Any) -> Any:
    """A pydantic model: A2A 0.3 types, or anything else that dumps itself."""
    dump: Callable[..., Any] | None = getattr(value, "model_dump", None)
    if not callable(dump) or isinstance(value, type):
        return None
    seen = dump(mode="json", by_alias=True, exclude_none=True)
    return seen if isinstance(seen, dict) else None


def _mapping(value: Any) -> Any:
    """Any other kind of mapping than a dict."""
    return dict(value) if isinstance(value, Mapping) else None


_LOOKS: tuple[tuple[str | None, Callable[[Any], Any]], ...] = (
    (None, _mapping),
    ("mcp", _tool_result),
    ("a2a", _protobuf),
    ("cli", _process),
    ("cli", _timed_out),
    ("http", _response),
    ("jsonrpc", _rpc_error),
    (None, _model),
)
