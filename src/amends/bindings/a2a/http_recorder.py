"""
What came over the wire, kept for the moment the SDK's client throws it away.

The client turns failures into exceptions without the status, the headers, or the JSON-RPC error's data. A hook on its HTTP
client remembers the response of the call that is being made, and of an event stream the last bytes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator
from contextvars import ContextVar
from typing import Any

import httpx

from amends.carriers import jsonrpc
from amends.carriers.extraction import extract
from amends.core.fault import Fault
from amends.core.wire import Unreadable, read

__all__ = ["HEARD", "Heard", "http_client_of", "listen"]

LARGEST = 32 * 1024 * 1024
"""Bytes of an answer, or of one event of a stream."""
_TAIL = 64 * 1024
"""Bytes of an event stream that are kept."""

_EVENTS = "text/event-stream"


class Heard:
    """What one call has heard."""

    __slots__ = ("_kept", "_tail", "response")

    def __init__(self) -> None:
        self.response: httpx.Response | None = None
        self._tail: deque[bytes] = deque()
        self._kept = 0

    def keep(self, chunk: bytes) -> None:
        """Remember the end of a stream."""
        self._tail.append(chunk)
        self._kept += len(chunk)
        while self._kept > _TAIL and len(self._tail) > 1:
            self._kept -= len(self._tail.popleft())

    def fault(self) -> Fault | None:
        """The fault of a failed HTTP answer, or the structured error in one that did not fail as such."""
        response = self.response
        if response is None:
            return None
        if response.status_code >= 400:
            answer = {
                "status": response.status_code,
                "headers": dict(response.headers),
                "body": _body(response),
            }
            return extract(answer, "http")
        error = self.error()
        return None if error is None else jsonrpc.read({"jsonrpc": "2.0", "error": error}).fault

    def error(self) -> dict[str, Any] | None:
        """The error member of the answer, or of an event of its stream."""
        if self.response is None:
            return None
        documents = [_body(self.response)] if not self._tail else _events(b"".join(self._tail))
        for document in documents:
            value = _json(document)
            error = value.get("error") if isinstance(value, dict) else None
            if isinstance(error, dict):
                return error
        return None


HEARD: ContextVar[Heard | None] = ContextVar("amends_a2a_heard", default=None)


def listen(client: httpx.AsyncClient) -> None:
    """Have an HTTP client's responses remembered, where a call of ours is being made through it."""
    hooks = client.event_hooks["response"]
    if _hear not in hooks:
        hooks.append(_hear)


def http_client_of(client: Any) -> httpx.AsyncClient | None:
    """The HTTP client an SDK client sends through, where it sends through one."""
    transport = getattr(client, "_transport", None)
    for _ in range(4):
        found = getattr(transport, "httpx_client", None)
        if isinstance(found, httpx.AsyncClient):
            return found
        # A decorator around the transport, for tenants.
        transport = getattr(transport, "_base", None)
    return None


async def _hear(response: httpx.Response) -> None:
    heard = HEARD.get()
    if heard is None:
        return
    heard.response = response
    headers, stream = response.headers, response.stream
    events = headers.get("content-type", "").startswith(_EVENTS)
    length = headers.get("content-length", "")
    # One that says itself that it is small is held to it by the HTTP client.
    small = not events and length.isdecimal() and int(length[:12]) <= LARGEST
    if not small and isinstance(stream, httpx.AsyncByteStream):
        response.stream = _Bounded(stream, heard if events else None)


class _Bounded(httpx.AsyncByteStream):
    """A body that ends before it fills the memory; of an event stream the end is remembered."""

    def __init__(self, stream: httpx.AsyncByteStream, heard: Heard | None) -> None:
        self._stream = stream
        self._heard = heard

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size, heard = 0, self._heard
        async for chunk in self._stream:
            size += len(chunk)
            if heard is not None:
                heard.keep(chunk)
                if b"\n" in chunk:
                    size = 0
            if size > LARGEST:
                raise httpx.ReadError("the answer has no end")
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()


def _body(response: httpx.Response) -> bytes | None:
    try:
        return response.content
    except httpx.HTTPError:
        return None
    except httpx.StreamError:
        # Not read, or not to its end.
        return None


def _events(tail: bytes) -> list[bytes]:
    """The documents in the end of an event stream; the first may be cut."""
    found, lines = [], []
    for line in [*tail.splitlines(), b""]:
        if line.startswith(b"data:"):
            lines.append(line[5:].strip())
        elif not line and lines:
            found.append(b"\n".join(lines))
            lines = []
    return found


def _json(document: bytes | None) -> Any:
    if not document:
        return None
    try:
        return read(document)
    except Unreadable:
        return None
