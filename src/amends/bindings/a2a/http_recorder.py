"""
Records the HTTP response of a call, because the SDK's client drops parts of it.

The SDK raises exceptions without the status, the headers or the data of a JSON-RPC error. A hook on its HTTP client
keeps the response of the current call, and the last bytes of an event stream. It also limits the size of responses.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator
from contextvars import ContextVar, Token

import httpx

from amends.carriers import jsonrpc
from amends.carriers.extraction import extract
from amends.core.fault import Fault
from amends.core.wire import Unreadable, read

__all__ = ["Recording", "install_recorder"]

LARGEST = 32 * 1024 * 1024
"""Bytes of a response, or of one event of a stream; a larger one fails the call."""
_TAIL = 64 * 1024
"""Bytes of an event stream that are kept."""

_EVENT_STREAM = "text/event-stream"


class Recording:
    """
    The HTTP response of one call.

    `with recording:` records the responses of the block, if the HTTP client has the recorder installed.
    """

    __slots__ = ("_kept", "_tail", "_token", "response", "streamed")

    _token: Token[Recording | None]

    def __init__(self) -> None:
        self.response: httpx.Response | None = None
        self.streamed = False
        """Whether the response is an event stream."""
        self._tail: deque[bytes] = deque()
        self._kept = 0

    def __enter__(self) -> None:
        self._token = _CURRENT.set(self)

    def __exit__(self, *exc: object) -> None:
        _CURRENT.reset(self._token)

    def keep(self, chunk: bytes) -> None:
        """Keep a chunk of an event stream, and drop chunks until 64 KB are left."""
        self._tail.append(chunk)
        self._kept += len(chunk)
        while self._kept > _TAIL and len(self._tail) > 1:
            self._kept -= len(self._tail.popleft())

    def fault(self) -> Fault | None:
        """Return the fault of an error status, or of the AdCP error in a JSON-RPC error; None if there is neither."""
        response = self.response
        if response is None:
            return None
        if response.status_code >= 400:
            return extract(
                {
                    "status": response.status_code,
                    "headers": dict(response.headers),
                    "body": _body(response),
                },
                "http",
                native=False,
            )
        error = self.error()
        return None if error is None else jsonrpc.read({"jsonrpc": "2.0", "error": error}).fault

    def error(self) -> dict[str, object] | None:
        """Return the JSON-RPC error in the response or in an event of its stream, if there is one."""
        if self.response is None:
            return None
        documents = [_body(self.response)] if not self._tail else _documents(b"".join(self._tail))
        for document in documents:
            value = _json(document)
            error = value.get("error") if isinstance(value, dict) else None
            if isinstance(error, dict):
                return error
        return None


_CURRENT: ContextVar[Recording | None] = ContextVar("amends_a2a_recording", default=None)


def install_recorder(client: httpx.AsyncClient) -> None:
    """Add the recorder to an HTTP client, once. It does nothing outside of a `with recording:` block."""
    hooks = client.event_hooks["response"]
    if _record_response not in hooks:
        hooks.append(_record_response)


async def _record_response(response: httpx.Response) -> None:
    recording = _CURRENT.get()
    if recording is None:
        return
    recording.response = response
    headers, stream = response.headers, response.stream
    recording.streamed = headers.get("content-type", "").startswith(_EVENT_STREAM)
    length = headers.get("content-length", "")
    # httpx does not read more than the Content-Length.
    small = not recording.streamed and length.isdecimal() and int(length[:12]) <= LARGEST
    if not small and isinstance(stream, httpx.AsyncByteStream):
        response.stream = _LimitedStream(stream, recording if recording.streamed else None)


class _LimitedStream(httpx.AsyncByteStream):
    """A response body of limited size. The recording keeps the end of an event stream."""

    def __init__(self, stream: httpx.AsyncByteStream, recording: Recording | None) -> None:
        self._stream = stream
        self._recording = recording

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in self._stream:
            size += len(chunk)
            if self._recording is not None:
                self._recording.keep(chunk)
                if b"\n" in chunk:
                    size = 0
            if size > LARGEST:
                raise httpx.ReadError("the response is too large")
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()


def _body(response: httpx.Response) -> bytes | None:
    """Return the body, or None if it was not read to its end."""
    try:
        return response.content
    except (httpx.HTTPError, httpx.StreamError):
        return None


def _documents(tail: bytes) -> list[bytes]:
    """Return the data of the events at the end of a stream; the first may be incomplete."""
    documents, lines = [], []
    for line in [*tail.splitlines(), b""]:
        if line.startswith(b"data:"):
            lines.append(line[5:].strip())
        elif not line and lines:
            documents.append(b"\n".join(lines))
            lines = []
    return documents


def _json(document: bytes | None) -> object:
    if not document:
        return None
    try:
        return read(document)
    except Unreadable:
        return None
