"""
An HTTP client for the SDK that keeps what failed, and reports it to the call that it belongs to.

The SDK's transport turns any status from 400 into one JSON-RPC error without data, and a lost connection ends the whole
session. An `HttpRecorder` takes the place of the HTTP client: it turns each failure into a JSON-RPC error response to
the one request that failed, with the Fault in `data`. Failed notifications are dropped, as the protocol allows.
Everything that is not an MCP request is passed through.
"""

from __future__ import annotations

from secrets import token_hex
from types import TracebackType
from typing import Any, Self

import msgspec
from mcp.client.auth import OAuthFlowError
from msgspec.structs import replace
from pydantic_core import from_json

from amends.bindings.mcp.sdk_types import httpx2
from amends.carriers.extraction import extract
from amends.core.enums import Executed
from amends.core.fault import Fault, Origin
from amends.dialects.adcp import KEY as STRUCTURED
from amends.foreign import from_exception
from amends.proof import Claim, Proof, rests_on

__all__ = ["EXPIRED", "KEY", "HttpRecorder", "recorded_failure", "transport_fault"]

KEY = f"amends/{token_hex(8)}"
"""The member of `data` that holds a recorded failure. It is random in each process, so that a server cannot send it."""

EXPIRED = "expired"
"""The member that is true if the server has forgotten the session, so that a new one has to be opened."""

_ERROR_LIMIT = 64 * 1024
_JSON_LIMIT = 64 * 1024 * 1024
"""Bytes of a JSON response, which is held in memory. A larger one counts as unreadable."""
_NOTIFICATION_TIMEOUT = 3.0
"""Seconds for requests whose outcome no caller waits for: notifications, and the end of a session."""
_SESSION = "mcp-session-id"
_PROBE = "server/discover"
"""If this request is answered with an error, the SDK sends the handshake of earlier protocols, and the user would sign in again."""
_BODY_HEADERS = frozenset({"content-encoding", "content-length", "transfer-encoding"})


def transport_fault(exc: BaseException) -> Fault:
    """Return the fault of a transport failure, with an origin, so that `relay` translates it."""
    fault = from_exception(exc)
    return fault if fault.origin is not None else replace(fault, origin=Origin("mcp", None, "transport"))


def _lost(executed: Executed = Executed.MAYBE) -> Fault:
    return replace(transport_fault(ConnectionResetError()), executed=executed)


def recorded_failure(data: object) -> tuple[Fault, bool] | None:
    """Return the fault that an HttpRecorder put into the `data` of a JSON-RPC error, and whether the session expired."""
    record = data.get(KEY) if isinstance(data, dict) else None
    if not isinstance(record, dict):
        return None
    return msgspec.convert(record["fault"], Fault), record.get(EXPIRED) is True


class HttpRecorder:
    """
    Wraps an `httpx2.AsyncClient` for the SDK's `streamable_http_client`; other attributes are the client's own.

        streamable_http_client(url, http_client=HttpRecorder(httpx2.AsyncClient()))
    """

    def __init__(self, client: httpx2.AsyncClient) -> None:
        self._client = client

    def __getattr__(self, name: str) -> object:
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
        """Send a request. If a JSON-RPC request fails, return its failure as a JSON-RPC error response."""
        if request.method != "POST":
            if request.method == "DELETE":
                _shorten_timeouts(request)
            return await self._client.send(request, **options)
        id, method = _request_in(request)
        if id is None:
            return await self._send_notification(request, options)
        try:
            response = await self._client.send(request, **options)
        except Exception as exc:
            if method == _PROBE and isinstance(exc, OAuthFlowError):
                raise
            return _failure_response(request, id, transport_fault(exc))
        if response.status_code >= 400:
            return await _read_error(request, response, id)
        if response.status_code == 200:
            return await _check_success(request, response, id)
        return response

    async def _send_notification(self, request: httpx2.Request, options: dict[str, Any]) -> httpx2.Response:
        _shorten_timeouts(request)
        try:
            return await self._client.send(request, **options)
        except Exception:  # noqa: BLE001 - a notification has no answer that could report it
            return httpx2.Response(202, request=request)


def _request_in(request: httpx2.Request) -> tuple[object, str | None]:
    """Return id and method of the JSON-RPC request in a body; no id for notifications, responses and other content."""
    try:
        message = msgspec.json.decode(request.content)
    except (msgspec.DecodeError, httpx2.StreamError):
        return None, None
    if not isinstance(message, dict) or "method" not in message:
        return None, None
    return message.get("id"), message["method"]


def _shorten_timeouts(request: httpx2.Request) -> None:
    given = request.extensions.get("timeout", {})
    request.extensions["timeout"] = {
        name: _NOTIFICATION_TIMEOUT
        if (seconds := given.get(name)) is None
        else min(seconds, _NOTIFICATION_TIMEOUT)
        for name in ("connect", "read", "write", "pool")
    }


@rests_on(Claim.NOT_HAPPENED, Proof.STATUS)
async def _read_error(request: httpx2.Request, response: httpx2.Response, id: object) -> httpx2.Response:
    """Return the JSON-RPC error in a response with an error status, or the fault of its status and headers."""
    body = await _read(response, _ERROR_LIMIT)
    message = _message_in(body)
    error = None if message is None else _error_of(message)
    data = None if error is None else error.get("data")
    if isinstance(data, dict) and STRUCTURED in data:
        return _json_response(request, {"jsonrpc": "2.0", "id": id, "error": error}, response.status_code)
    headers = dict(response.headers)
    fault = (
        extract(
            {"status": response.status_code, "headers": headers, "body": body or b""}, "http", native=False
        )
        or _lost()
    )
    expired = response.status_code == 404 and _SESSION in request.headers
    if expired:
        # The server does not know the session, so it has not handled the request.
        fault = replace(_lost(Executed.NO), status=404)
    if error is not None and not expired and fault.retry_after is None:
        # The JSON-RPC number is more specific than the status.
        return _json_response(request, {"jsonrpc": "2.0", "id": id, "error": error}, response.status_code)
    return _failure_response(request, id, fault, expired=expired)


async def _check_success(request: httpx2.Request, response: httpx2.Response, id: object) -> httpx2.Response:
    """Return an event stream as it is; read a JSON response here, so that a broken one fails this request only."""
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "text/event-stream":
        return response
    body = await _read(response, _JSON_LIMIT) if kind == "application/json" else None
    message = _message_in(body)
    error = None if message is None else _error_of(message)
    if error is not None and message is not None and message.get("id") is None:
        # JSON-RPC allows null where the server could not read the id; the SDK's client would wait for another answer.
        return _json_response(request, {"jsonrpc": "2.0", "id": id, "error": error}, response.status_code)
    if body is None or message is None or not _answers(message, id):
        await response.aclose()
        return _failure_response(request, id, _lost())
    headers = [(name, value) for name, value in response.headers.multi_items() if name not in _BODY_HEADERS]
    return httpx2.Response(response.status_code, headers=headers, content=body, request=request)


@rests_on(Claim.COMPLETE, Proof.LENGTH)
async def _read(response: httpx2.Response, limit: int) -> bytes | None:
    """Return a whole body; None if it is incomplete, cannot be decompressed, or exceeds the limit."""
    parts, size = [], 0
    try:
        async for part in response.aiter_bytes():
            parts.append(part)
            size += len(part)
            if size > limit:
                return None
    except Exception:  # noqa: BLE001 - an incomplete or undecodable body
        return None
    finally:
        await response.aclose()
    return b"".join(parts)


def _message_in(body: bytes | None) -> dict[str, object] | None:
    """Return the JSON object in a body, read as the SDK reads it: NaN is a number, a lone surrogate is unreadable."""
    try:
        message = from_json(body or b"null")
    except ValueError:
        return None
    return message if isinstance(message, dict) else None


def _answers(message: dict[str, object], id: object) -> bool:
    """Whether a message is a response to the request of this id, which a server may write as a number or as text."""
    return str(message.get("id")) == str(id) and (
        isinstance(message.get("result"), dict) or _error_of(message) is not None
    )


def _error_of(message: dict[str, object]) -> dict[str, object] | None:
    """Return the `error` of a JSON-RPC response, if it is a valid one."""
    error = message.get("error")
    if not isinstance(error, dict) or not isinstance(error.get("message"), str):
        return None
    code = error.get("code")
    return error if isinstance(code, int) and not isinstance(code, bool) else None


def _failure_response(
    request: httpx2.Request, id: object, fault: Fault, *, expired: bool = False
) -> httpx2.Response:
    record: dict[str, object] = {EXPIRED: expired, "fault": msgspec.to_builtins(fault)}
    message = {"jsonrpc": "2.0", "id": id, "error": {"code": -32603, "message": "", "data": {KEY: record}}}
    try:
        return _json_response(request, message, 502)
    except (UnicodeError, ValueError):
        # A text that cannot be encoded, such as a lone surrogate: keep the members that decisions need.
        bare = replace(fault, message="", title=None, suggestions=(), details=None, errors=(), extensions={})
        record["fault"] = msgspec.to_builtins(bare)
        return _json_response(request, message, 502)


def _json_response(request: httpx2.Request, message: dict[str, object], status: int) -> httpx2.Response:
    headers = {"content-type": "application/json"}
    return httpx2.Response(status, headers=headers, content=msgspec.json.encode(message), request=request)
