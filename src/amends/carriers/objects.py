"""
Convert the response objects of common libraries into plain values.

Objects are recognised by their attributes; no library is imported. Reading an attribute runs code of the object, so
every access is guarded: an object whose attributes raise is not recognised.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from amends.core.text import decoded
from amends.core.wire import as_dict

__all__ = ["read_object"]


def read_object(value: Any) -> tuple[str | None, Any]:
    """
    Return (via, value) of a library's object.

    `via` is None if the value's shape has to decide; both are None for an unknown object.
    """
    for via, convert in _CONVERTERS:
        try:
            found = convert(value)
        except Exception:  # noqa: BLE001, S112 - a foreign object's property may raise anything
            continue
        if found is not None:
            return via, found
    return None, None


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _response(value: Any) -> Any:
    """Read an HTTP response of httpx, httpx2, requests, aiohttp, Starlette, urllib, Django or Flask."""
    status = getattr(value, "status_code", None) or getattr(value, "status", None)
    headers: Any = getattr(value, "headers", None)
    if not _is_int(status) or not (isinstance(headers, Mapping) or hasattr(headers, "items")):
        return None
    return {"status": status, "headers": dict(headers.items()), "body": _content(value)}


def _content(value: Any) -> Any:
    """Return a body that was received already. Never fetches one: that is left to the caller."""
    if getattr(value, "_content", None) is False:
        # requests fetches a streamed body when `content` is read.
        return None
    # urllib3 fetches it when `data` is read. Its responses have `read`; those of the frameworks do not.
    names = ("content", "body", "_body", "text") if hasattr(value, "read") else _BODIES
    for name in names:
        try:
            found = getattr(value, name, None)
        except Exception:  # noqa: BLE001, S112 - httpx raises for a body that was not read yet
            continue
        if isinstance(found, str | bytes | bytearray):
            return bytes(found) if isinstance(found, bytearray) else found
    return None


_BODIES = ("content", "body", "_body", "data", "text")


def _either(value: Any, name: str, older: str) -> Any:
    """Return an attribute by its current name, else by its older one, which may emit a warning."""
    return getattr(value, name) if hasattr(value, name) else getattr(value, older, None)


def _tool_result(value: Any) -> Any:
    """Read a CallToolResult of the MCP SDK (1.x and 2.x names) or of FastMCP's client."""
    failed = _either(value, "is_error", "isError")
    if not isinstance(failed, bool):
        # Checked before `content`, which would fetch the body of a streamed HTTP response.
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
    meta = getattr(value, "meta", None)
    return {"isError": failed, "structuredContent": structured, "content": items, "_meta": meta}


def _rpc_error(value: Any) -> Any:
    """Read an MCPError, or any exception or object with a JSON-RPC code, message and data."""
    inner = getattr(value, "error", None)
    holder: Any = inner if _is_int(getattr(inner, "code", None)) else value
    code = getattr(holder, "code", None)
    if not _is_int(code) or not hasattr(holder, "data") or not hasattr(holder, "message"):
        return None
    return {"jsonrpc": "2.0", "error": {"code": code, "message": holder.message, "data": holder.data}}


def _process(value: Any) -> Any:
    """Read a CompletedProcess or CalledProcessError."""
    code = getattr(value, "returncode", None)
    if not _is_int(code) or not hasattr(value, "stdout"):
        return None
    return {"exit": code, "stdout": _text(value.stdout), "stderr": _text(value.stderr)}


def _close(value: Any) -> Any:
    """Read a ConnectionClosed of websockets, or its close frame."""
    frame = getattr(value, "rcvd", None) if hasattr(value, "rcvd_then_sent") else value
    code, reason = getattr(frame, "code", None), getattr(frame, "reason", None)
    if (
        not type(frame).__module__.startswith("websockets.")
        or not _is_int(code)
        or not isinstance(reason, str)
    ):
        return None
    return {"close_code": code, "reason": reason}


def _timed_out(value: Any) -> Any:
    """Read a TimeoutExpired: it has no exit code, and the command may still run."""
    if not hasattr(value, "cmd") or not hasattr(value, "timeout") or hasattr(value, "returncode"):
        return None
    return {"exit": None, "stdout": _text(getattr(value, "stdout", None)), "stderr": "", "timed_out": True}


def _text(stream: Any) -> str:
    return decoded(stream) if isinstance(stream, (str, bytes)) else ""


def _protobuf(value: Any) -> Any:
    """Read an A2A 1.0 protobuf message. It has a descriptor, and its library is imported already."""
    if not hasattr(value, "DESCRIPTOR"):
        return None
    from google.protobuf.json_format import MessageToDict  # type: ignore[import-untyped,unused-ignore]

    return MessageToDict(value)


def _model(value: Any) -> Any:
    """Read a pydantic model, as A2A 0.3 types are."""
    dump: Callable[..., Any] | None = getattr(value, "model_dump", None)
    if not callable(dump) or isinstance(value, type):
        return None
    dumped = dump(mode="json", by_alias=True, exclude_none=True)
    return dumped if isinstance(dumped, dict) else None


def _mapping(value: Any) -> Any:
    """Read a mapping that is not a dict."""
    return as_dict(value) if isinstance(value, Mapping) else None


_CONVERTERS: tuple[tuple[str | None, Callable[[Any], Any]], ...] = (
    (None, _mapping),
    ("mcp", _tool_result),
    ("a2a", _protobuf),
    ("cli", _process),
    ("cli", _timed_out),
    ("http", _response),
    ("jsonrpc", _rpc_error),
    ("websocket", _close),
    (None, _model),
)
