"""
Request bodies: kept in memory if they are small, so that they can be sent again; streamed if they are large.

Memory stays constant: at most `KEPT` bytes per call are held, whatever the size of the body.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from amends.http.asgi_types import Receive

__all__ = ["KEPT", "Body", "BodyFailed", "CallerGone", "TooLarge", "TooSlow", "read_body"]

KEPT = 256 * 1024
"""Bytes of a body that are kept. 200 calls at once hold at most 50 MB."""


class CallerGone(Exception):
    """The caller closed its connection."""


class TooLarge(Exception):
    """The body is larger than allowed."""


class TooSlow(Exception):
    """The caller sent nothing for too long."""


class BodyFailed(BaseException):
    """
    The rest of a body could not be read while it was sent on; `Body.failure` says why.

    The upstream has not failed, so this is no Exception: recovery neither repeats nor records it.
    """


class Body:
    """The body of one request."""

    __slots__ = ("_left", "_receive", "_timeout", "data", "failure", "whole")

    def __init__(self, data: bytes | bytearray, receive: Receive | None, limit: int, timeout: float) -> None:
        self.data = data
        """What was read so far; all of it if `whole`."""
        self.whole = receive is None
        self.failure: CallerGone | TooLarge | TooSlow | None = None
        """Why the rest could not be read."""
        self._receive = receive
        self._left = limit - len(data)
        self._timeout = timeout

    @property
    def to_send(self) -> bytes | AsyncIterator[bytes]:
        """The body for the client library: bytes, or an iterator that can be used once."""
        return bytes(self.data) if self.whole else self.stream()

    async def stream(self) -> AsyncIterator[bytes]:
        """Iterate over the body, once."""
        first, self.data = bytes(self.data), b""
        if first:
            yield first
        receive = self._receive
        while receive is not None:
            try:
                piece, more = await _next(receive, self._timeout)
                self._left -= len(piece)
                if self._left < 0:
                    raise TooLarge  # noqa: TRY301
            except (CallerGone, TooLarge, TooSlow) as error:
                self.failure = error
                raise
            if piece:
                yield piece
            if not more:
                self._receive = receive = None


async def _next(receive: Receive, seconds: float) -> tuple[bytes, bool]:
    try:
        async with asyncio.timeout(seconds):
            message = await receive()
    except TimeoutError:
        raise TooSlow from None
    if message["type"] != "http.request":
        raise CallerGone
    return message.get("body", b""), message.get("more_body", False)


async def read_body(
    receive: Receive,
    length: int | None,
    limit: int,
    timeout: float,  # noqa: ASYNC109
    most: int = KEPT,
) -> Body:
    """
    Read a body as far as it is kept.

    Args:
        receive: the ASGI application's.
        length: the length that the request names, if it names one.
        limit: the most bytes.
        timeout: seconds without a byte.
        most: bytes that are kept.

    Raises:
        CallerGone, TooLarge, TooSlow: the body cannot be read.

    """
    if length is not None and length > limit:
        raise TooLarge
    piece, more = await _next(receive, timeout)
    if not more:
        if len(piece) > limit:
            raise TooLarge
        return Body(piece, None, limit, timeout)
    data = bytearray(piece)
    while more and len(data) <= most and (length is None or length <= most):
        piece, more = await _next(receive, timeout)
        data += piece
    if len(data) > limit:
        raise TooLarge
    return Body(data, receive if more else None, limit, timeout)
