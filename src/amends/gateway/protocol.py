"""
The server's side of a connection: uvicorn's, with limits on headers and on the time that reading and writing may take.

A call whose caller has closed its connection is cancelled, so that the upstream does not work for an answer that is not read.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from amends.http.asgi_types import Message, Send

__all__ = ["HEADER_BYTES", "HEADER_SECONDS", "UNREAD_SECONDS", "GatewayProtocol"]

HEADER_BYTES = 64 * 1024
HEADER_SECONDS = 30.0
"""A request's line and headers have to arrive within this time."""
UNREAD_SECONDS = 60.0
"""A caller has to read what was sent to it (some 64 KB) within this time."""

# uvicorn has lines for 100 to 599; some services answer with others, and those pass too.
STATUS_LINE.update({status: b"HTTP/1.1 %d \r\n" % status for status in range(600, 1000)})


class GatewayProtocol(HttpToolsProtocol):
    """One connection of a caller."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._header_bytes: int | None = 0
        self._ended = False
        self._header_timer: asyncio.TimerHandle | None = None
        self._unread_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Give the first request its time."""
        super().connection_made(transport)
        self._start_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the call of this connection."""
        self._stop_timer()
        self._stop_unread_timer()
        super().connection_lost(exc)
        cycle: Any = self.cycle
        if cycle is not None and not cycle.response_complete:
            active = getattr(self.config.loaded_app, "active", None)
            task = None if active is None else active.get(self.client)
            if task is not None:
                task.cancel()

    def data_received(self, data: bytes) -> None:
        """Count the bytes of headers, and refuse too many."""
        if self._header_bytes is not None:
            self._start_timer()
            if len(data) > HEADER_BYTES and b"\r\n\r\n" not in data[:HEADER_BYTES]:
                self._refuse()
                return
            before, self._ended = self._header_bytes, False
            super().data_received(data)
            self._count(before + len(data))
            return
        super().data_received(data)

    def _count(self, size: int) -> None:
        """Note the bytes of headers that have come, if they are not complete."""
        if self._header_bytes is not None and not self._ended:
            self._header_bytes = size
            if size > HEADER_BYTES:
                self._refuse()

    def on_message_begin(self) -> None:
        """Count the headers of the next request."""
        super().on_message_begin()
        self._header_bytes = 0
        self._start_timer()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header. Trailers come after the headers were checked, so they are dropped."""
        if self._header_bytes is not None:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Stop counting."""
        self._header_bytes = None
        self._stop_timer()
        super().on_headers_complete()
        if self.parser.get_http_version() == "1.0" and self.cycle is not None:
            cycle: Any = self.cycle
            cycle.send = _unchunked(cycle)

    def on_message_complete(self) -> None:
        """Count the headers of a request that may follow."""
        super().on_message_complete()
        self._header_bytes, self._ended = 0, True

    def pause_writing(self) -> None:
        """Give the caller time to read. A closed transport keeps what was not read, so the connection is aborted then."""
        super().pause_writing()
        self._unread_timer = self.loop.call_later(UNREAD_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        """The caller reads."""
        self._stop_unread_timer()
        super().resume_writing()

    def _stop_unread_timer(self) -> None:
        if self._unread_timer is not None:
            self._unread_timer.cancel()
            self._unread_timer = None

    def _start_timer(self) -> None:
        if self._header_timer is None:
            self._header_timer = self.loop.call_later(HEADER_SECONDS, self._headers_late)

    def _stop_timer(self) -> None:
        if self._header_timer is not None:
            self._header_timer.cancel()
            self._header_timer = None

    def _headers_late(self) -> None:
        self._header_timer = None
        if not self.transport.is_closing():
            self.transport.close()

    def _refuse(self) -> None:
        if not self.transport.is_closing():
            self.transport.write(
                b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
            )
            self.transport.close()


def _unchunked(cycle: Any) -> Send:
    """Return the `send` of a request of HTTP/1.0, which knows no chunks: the end of the connection ends the body."""
    plain: Send = cycle.send
    without_length = False

    async def send(message: Message) -> None:
        nonlocal without_length
        if message["type"] == "http.response.start":
            names = {name.lower() for name, _ in message.get("headers", ())}
            without_length = b"content-length" not in names
            if without_length:
                cycle.chunked_encoding = False
        elif without_length:
            # uvicorn compares each part with the length that is left.
            cycle.expected_content_length = len(message.get("body", b""))
        await plain(message)

    return send
