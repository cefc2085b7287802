"""The responses that the middleware for aiohttp returns: failed bodies read within bounds, and breaks of successful ones."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import aiohttp
from aiohttp.base_protocol import BaseProtocol

from amends.errors.base import FaultError
from amends.http.call_bodies import (
    LIMIT,
    BodyReading,
    FailedBody,
    WatchedBody,
    broken_body_error,
    is_effect_unknown,
    late_body_error,
)
from amends.http.calls import Call
from amends.http.raising import original_of
from amends.recovery.drivers import arecover

__all__ = ["GuardedContent", "peek", "raise_for_failure", "recover_whole_body"]

_BROKEN = (aiohttp.ClientError, TimeoutError, FaultError)


async def raise_for_failure(response: aiohttp.ClientResponse, call: Call) -> None:
    """
    Raise the typed error of a response if its status is 400 or more.

    The body of a failed response is read within bounds, and the response then contains what was read; with
    `raises="nothing"` it also contains the rest. aiohttp decompresses while it reads, so the limit applies to the
    decompressed body.
    """
    call.answered(response.status, response.headers)
    if response.status < 400:
        return
    body, broken = FailedBody(call, encoded=False), False
    try:
        await body.aread(response.content.iter_any())
    except (aiohttp.ClientError, TimeoutError):
        broken = True  # the status is known all the same
    content = b"".join(body.parts)
    if not body.complete and not broken and call.options.raises == "nothing":
        call.kept_open.append(response.close)
        response.content = _JoinedContent(content, response.content)  # type: ignore[assignment]
    else:
        if not body.complete:
            response.close()
        response.content = _buffered(content)
    raise call.error(response.status, response.headers, content if body.complete else None, response)


def _buffered(body: bytes) -> aiohttp.StreamReader:
    """Return a reader of bytes that have been received."""
    loop = asyncio.get_running_loop()
    content = aiohttp.StreamReader(BaseProtocol(loop), limit=2 * LIMIT, loop=loop)
    content.feed_data(body)
    content.feed_eof()
    return content


class _Content:
    """Acts as the `aiohttp.StreamReader` that it is given; a subclass reads in its own way."""

    def __init__(self, content: aiohttp.StreamReader | _Content) -> None:
        self._content = content

    def __getattr__(self, name: str) -> Any:
        return getattr(self._content, name)

    async def _read(self, method: str, *args: int) -> Any:
        raise NotImplementedError

    async def read(self, n: int = -1) -> bytes:
        """Return at most `n` bytes; all of them without `n`."""
        return await self._read("read", n)  # type: ignore[no-any-return]

    async def readany(self) -> bytes:
        """Return what has arrived."""
        return await self._read("readany")  # type: ignore[no-any-return]

    async def readline(self) -> bytes:
        """Return the next line."""
        return await self._read("readline")  # type: ignore[no-any-return]

    async def readexactly(self, n: int) -> bytes:
        """Return exactly `n` bytes."""
        return await self._read("readexactly", n)  # type: ignore[no-any-return]

    async def readchunk(self) -> tuple[bytes, bool]:
        """Return a chunk as the server sent it, and whether it is complete."""
        return await self._read("readchunk")  # type: ignore[no-any-return]

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while line := await self.readline():
            yield line

    async def iter_chunked(self, n: int) -> AsyncIterator[bytes]:
        """Yield parts of at most `n` bytes."""
        while part := await self.read(n):
            yield part

    async def iter_any(self) -> AsyncIterator[bytes]:
        """Yield parts as they arrive."""
        while part := await self.readany():
            yield part

    async def iter_chunks(self) -> AsyncIterator[tuple[bytes, bool]]:
        """Yield chunks as the server sent them."""
        while (chunk := await self.readchunk()) != (b"", False):
            yield chunk


class GuardedContent(_Content):
    """The content of a successful answer, with typed errors and within the deadline."""

    def __init__(self, content: aiohttp.StreamReader, reading: BodyReading) -> None:
        super().__init__(content)
        self._reading = reading

    async def _read(self, method: str, *args: int) -> Any:
        reading = self._reading
        try:
            reading.check_time()
            if reading.left is None:
                return await getattr(self._content, method)(*args)
            try:
                async with asyncio.timeout(reading.left) as bound:
                    return await getattr(self._content, method)(*args)
            except TimeoutError as error:
                if bound.expired():
                    raise late_body_error() from error
                raise
        except _BROKEN as error:
            raised = reading.broke(error)
            raise raised from raised.__cause__


async def peek(response: aiohttp.ClientResponse, call: Call) -> None:
    """
    Read the stream of a model up to its first output, and watch the rest of it.

    Raises:
        FaultError: a failure before the first output, which recovery may repeat.

    """
    watch = call.service.watch(response.status, response.headers)
    if watch is None:
        return
    watched, content = WatchedBody(watch, call), response.content
    try:
        while watched.peeking and (part := await content.readany()):
            watched.add(part)
    except BaseException:
        response.close()
        raise
    start, error = b"".join(watched.parts), watched.early()
    joined = _JoinedContent(start, content)
    if error is None:
        response.content = _WatchedContent(joined, watched, len(start))  # type: ignore[assignment]
        return
    if call.options.raises == "nothing":
        call.kept_open.append(response.close)
        response.content = joined  # type: ignore[assignment]
        error.response = response  # type: ignore[attr-defined]
    else:
        response.close()
    raise error


class _WatchedContent(_Content):
    """The stream of a model after its first output: a failure in it is a typed error."""

    def __init__(self, content: aiohttp.StreamReader | _Content, watched: WatchedBody, seen: int) -> None:
        super().__init__(content)
        self._watched, self._seen = watched, seen
        self._error = None if watched.fault is None else watched.error(watched.fault)
        self._ended = False

    async def _read(self, method: str, *args: int) -> Any:
        if self._seen <= 0 and self._error is not None and self._watched.call.options.raises != "nothing":
            raise self._error
        found = await getattr(self._content, method)(*args)
        data = found[0] if isinstance(found, tuple) else found
        fresh = data[self._seen :] if self._seen > 0 else data
        self._seen -= len(data)
        good, error = self._watched.judge(fresh) if fresh else (fresh, None)
        if error is None:
            return found
        self._error = error
        kept = data[: len(data) - len(fresh)] + good
        if not kept or method in {"readline", "readexactly"} or (method == "read" and args[0] < 0):
            raise error
        return (kept, True) if isinstance(found, tuple) else kept


class _JoinedContent(_Content):
    """The part of a body that was read, then the rest of it."""

    def __init__(self, start: bytes, content: aiohttp.StreamReader) -> None:
        super().__init__(content)
        self._start = start

    async def _read(self, method: str, *args: int) -> Any:
        start, read = self._start, getattr(self._content, method)
        if not start:
            return await read(*args)
        if method == "readchunk":
            self._start = b""
            return start, False
        if method == "read" and args[0] < 0:
            self._start = b""
            return start + await read(*args)
        size = {"readline": start.find(b"\n") + 1, "readany": len(start)}.get(method) or (args or (0,))[0]
        if method == "read" or 0 < size <= len(start):
            self._start = start[size:]
            return start[:size]
        self._start = b""  # a line or a count that ends in the rest
        return start + await (read(size - len(start)) if method == "readexactly" else read())


def recover_whole_body(
    response: aiohttp.ClientResponse,
    reading: BodyReading,
    send_once: Callable[[], Awaitable[tuple[aiohttp.ClientResponse, BodyReading]]],
) -> None:
    """
    Make `response.read()`, and `text()` and `json()` which call it, repeat the call if the body breaks off.

    Args:
        response: a successful response.
        reading: the bounds of the call.
        send_once: sends the request again; returns the response and the bounds of its body.

    """
    read, call = response.read, reading.call

    async def read_whole() -> bytes:
        reading.whole = True
        try:
            if not call.service.inspected:
                return await read()
            body = await response.content.read()
            response.content = _buffered(body)
            inside = call.failure_inside(response.status, response.headers, body, response)
            if inside is None:
                return await read()
            inside.body = body  # type: ignore[attr-defined]
            broken: Exception = inside
        except _BROKEN as error:
            broken = error
        errors = [broken_body_error(broken, call.made)]

        async def repeat() -> bytes:
            if errors:
                raise errors.pop()  # the call whose body broke off is the first attempt
            again, again_reading = await send_once()
            again_reading.whole = True
            body = await again.read()
            inside = call.failure_inside(again.status, again.headers, body, again)
            if inside is not None:
                inside.body = body  # type: ignore[attr-defined]
                raise inside
            return body

        try:
            body = await arecover(repeat, **call.recover_options(call.left))
        except FaultError as error:
            is_effect_unknown(error)
            if call.options.raises == "fault":
                raise
            if call.options.raises == "nothing" and (last := getattr(error, "body", None)) is not None:
                response.content = _buffered(last)
                return await read()
            error.response = None  # type: ignore[attr-defined]
            raise (original_of(error) if call.options.raises == "original" else None) or broken from None
        response.content = _buffered(body)
        return await read()

    response.read = read_whole  # type: ignore[method-assign]
