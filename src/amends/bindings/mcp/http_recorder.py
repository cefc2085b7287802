"""
What happened on the HTTP below MCP, kept for the call it happened to.

The SDK's client turns any status from 400 into one JSON-RPC error without data, and lets a lost connection end the
whole session. A `HttpRecorder` stands in for the HTTP client: failures come back as JSON-RPC errors of the one request
they belong to, with the Fault in `data`, so nothing else is disturbed and nothing is forgotten. Notifications that
fail are dropped, as the protocol has it; what is not MCP passes through.
"""

from __future__ import annotations

from secrets import token_hex
from types import TracebackType
from typing import Any, Self

import httpx2
import msgspec
from msgspec.structs import replace

from amends.carriers.extraction import extract
from amends.carriers.layers import KEY as STRUCTURED
from amends.core.enums import Executed
from amends.core.fault import Fault, Origin
from amends.foreign import from_exception

__all__ = ["EXPIRED", "KEY", "HttpRecorder", "failure_in", "transport_fault"]

KEY = f"amends/{token_hex(8)}"
"""Where `data` holds what was witnessed. Nobody outside this process knows the word, so nobody can say it."""

EXPIRED = "expired"
"""Said of a session the server has forgotten: the next attempt begins a new one."""

_ERROR_LIMIT = 64 * 1024
_JSON_LIMIT = 64 * 1024 * 1024
"""A larger answer is taken for garbage: it would all have to be held in memory."""
_COURTESY = 3.0
"""Seconds for what nobody waits for: notifications, and ending a session."""
_SESSION = "mcp-session-id"
_OURS = frozenset({"content-encoding", "content-length", "transfer-encoding"})


def transport_fault(exc: BaseException) -> Fault:
    """A failure on the way as the caller sees it: with an origin, so that passing it on translates it."""
    fault = from_exception(exc)
    return fault if fault.origin is not None else replace(fault, origin=Origin("mcp", None, "transport"))


def _lost(executed: Executed = Executed.MAYBE) -> Fault:
    return replace(transport_fault(ConnectionResetError()), executed=executed)


def failure_in(data: Any) -> tuple[Fault, bool] | None:
    """What a HttpRecorder put into the `data` of a JSON-RPC error, and whether the session has to begin anew."""
    kept = data.get(KEY) if isinstance(data, dict) else None
    if not isinstance(kept, dict):
        return None
    return msgspec.convert(kept["fault"], Fault), kept.get(EXPIRED) is True


class HttpRecorder:
    """
    An `httpx2.AsyncClient` for `streamable_http_client`, seen through: everything else is the client's own.

        streamable_http_client(url, http_client=HttpRecorder(httpx2.AsyncClient()))
    """

    def __init__(self, client: httpx2.AsyncClient) -> None:
        self._client = client

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    async def __aenter__(self) -> Self:
        await self._client.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        trace: TracebackType | None = None,
    ) -> None:
        await self._client.__aexit__(kind, error, trace)

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """Send one request; what fails is answered, as far as somebody waits for an answer."""
        if request.method != "POST":
            if request.method == "DELETE":
                _hurry(request)
            return await self._client.send(request, **options)
        id = _request_id(request)
        if id is None:
            return await self._courtesy(request, options)
        try:
            response = await self._client.send(request, **options)
        except Exception as exc:  # noqa: BLE001 - whatever a transport or an auth flow raises belongs to this request
            return _said(request, id, transport_fault(exc))
        if response.status_code >= 400:
            return await _refused(request, response, id)
        if response.status_code == 200:
            return await _checked(request, response, id)
        return response

    async def _courtesy(self, request: httpx2.Request, options: dict[str, Any]) -> httpx2.Response:
        _hurry(request)
        try:
            return await self._client.send(request, **options)
        except Exception:  # noqa: BLE001 - nobody waits for it
            return httpx2.Response(202, request=request)


def _request_id(request: httpx2.Request) -> Any:
    """The id of the JSON-RPC request in a body; None for notifications, answers, and what is no JSON-RPC."""
    try:
        message = msgspec.json.decode(request.content)
    except (msgspec.DecodeError, httpx2.StreamError):
        return None
    if not isinstance(message, dict) or "method" not in message:
        return None
    return message.get("id")


def _hurry(request: httpx2.Request) -> None:
    given = request.extensions.get("timeout", {})
    request.extensions["timeout"] = {
        name: _COURTESY if (seconds := given.get(name)) is None else min(seconds, _COURTESY)
        for name in ("connect", "read", "write", "pool")
    }


async def _refused(request: httpx2.Request, response: httpx2.Response, id: Any) -> httpx2.Response:
    """An error status: with the JSON-RPC error it may hold, and with what status and headers say."""
    body = await _read(response, _ERROR_LIMIT)
    error = _error_in(body)
    if error is not None and isinstance(error.get("data"), dict) and STRUCTURED in error["data"]:
        return _answer(request, {"jsonrpc": "2.0", "id": id, "error": error}, response.status_code)
    headers = dict(response.headers)
    fault = (
        extract({"status": response.status_code, "headers": headers, "body": body or b""}, "http") or _lost()
    )
    expired = response.status_code == 404 and _SESSION in request.headers
    if expired:
        # A server that has forgotten the session did nothing for it.
        fault = replace(_lost(Executed.NO), status=404)
    if error is not None and not expired and fault.retry_after is None:
        # The server's own number says more than the status that goes with it.
        return _answer(request, {"jsonrpc": "2.0", "id": id, "error": error}, response.status_code)
    return _said(request, id, fault, expired=expired)


async def _checked(request: httpx2.Request, response: httpx2.Response, id: Any) -> httpx2.Response:
    """A success: streams pass, JSON is read here, where a broken one is this request's own failure."""
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "text/event-stream":
        return response
    body = await _read(response, _JSON_LIMIT) if kind == "application/json" else None
    if body is None or not _is_message(body):
        await response.aclose()
        return _said(request, id, _lost())
    headers = [(name, value) for name, value in response.headers.multi_items() if name not in _OURS]
    return httpx2.Response(response.status_code, headers=headers, content=body, request=request)


async def _read(response: httpx2.Response, limit: int) -> bytes | None:
    """A whole body; None where it broke off, does not unpack, or has no end."""
    parts, size = [], 0
    try:
        async for part in response.aiter_bytes():
            parts.append(part)
            size += len(part)
            if size > limit:
                return None
    except Exception:  # noqa: BLE001 - it broke off
        return None
    finally:
        await response.aclose()
    return b"".join(parts)


def _is_message(body: bytes) -> bool:
    try:
        message = msgspec.json.decode(body)
    except msgspec.DecodeError:
        return False
    return isinstance(message, dict) and (isinstance(message.get("result"), dict) or _is_error(message))


def _error_in(body: bytes | None) -> dict[str, Any] | None:
    try:
        message = msgspec.json.decode(body or b"null")
    except msgspec.DecodeError:
        return None
    if not isinstance(message, dict) or not _is_error(message):
        return None
    error: dict[str, Any] = message["error"]
    return error


def _is_error(message: dict[str, Any]) -> bool:
    error = message.get("error")
    return (
        isinstance(error, dict) and type(error.get("code")) is int and isinstance(error.get("message"), str)
    )


def _said(request: httpx2.Request, id: Any, fault: Fault, *, expired: bool = False) -> httpx2.Response:
    error: dict[str, Any] = {"code": -32603, "message": "", "data": {KEY: {EXPIRED: expired}}}
    message = {"jsonrpc": "2.0", "id": id, "error": error}
    error["data"][KEY]["fault"] = msgspec.to_builtins(fault)
    try:
        return _answer(request, message, 502)
    except (UnicodeError, ValueError):
        # A text that cannot be written, a lone surrogate say: what decides is kept.
        bare = replace(fault, message="", title=None, suggestions=(), details=None, errors=(), extensions={})
        error["data"][KEY]["fault"] = msgspec.to_builtins(bare)
        return _answer(request, message, 502)


def _answer(request: httpx2.Request, message: dict[str, Any], status: int) -> httpx2.Response:
    headers = {"content-type": "application/json"}
    return httpx2.Response(status, headers=headers, content=msgspec.json.encode(message), request=request)
