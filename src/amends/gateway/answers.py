"""Answers of an upstream: how failed ones are read, and how answers are sent to the caller."""

from __future__ import annotations

import asyncio
import re
import zlib
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager

import aiohttp
from msgspec.structs import replace

from amends.carriers.extraction import extract
from amends.core.fault import Fault
from amends.errors.base import FaultError
from amends.gateway.headers import response_headers
from amends.gateway.rpc import is_response
from amends.http.asgi_types import Send
from amends.vendors.streams import QUIET, read_stream

__all__ = [
    "BODY_TIME",
    "EVENT_END",
    "READ",
    "Answer",
    "FailedTry",
    "WatchedStream",
    "WrittenAnswer",
    "closed_on_error",
    "data_of",
    "first_event",
    "is_stream",
    "read_failure",
    "read_response",
    "read_up_to",
    "send_answer",
]

READ = 64 * 1024
BODY_TIME = 1.0
"""Seconds for which the body of an answer is read before it is decided or sent on: one that drips is sent on as it comes."""
"""Bytes of an answer that are read before it is passed on."""
LARGEST_EVENT = 1024 * 1024
"""Bytes of an event that is looked at while it passes."""
HELD = 0.5
"""Seconds that the beginning of a stream without data is held back."""
EVENT_END = re.compile(rb"\r\n\r\n|\n\n|\r\r")
"""The end of a server-sent event."""


class Answer:
    """An answer of an upstream, of which the beginning was read."""

    __slots__ = ("extra", "read", "response")

    def __init__(self, response: aiohttp.ClientResponse, read: bytes = b"") -> None:
        self.response = response
        self.read = read
        """The first bytes of the body."""
        self.extra: list[tuple[bytes, bytes]] = []
        """Headers that the gateway adds: who failed, and the tries."""

    @property
    def status(self) -> int:
        """The status."""
        return self.response.status

    @property
    def headers(self) -> list[tuple[bytes, bytes]]:
        """The headers for the caller."""
        return response_headers(self.response.raw_headers, self.response.status) + self.extra

    @property
    def whole(self) -> bool:
        """Whether `read` is the whole body."""
        return self.response.content.at_eof()

    async def pieces(self) -> AsyncIterator[bytes]:
        """Iterate over the rest of the body."""
        content = self.response.content
        while piece := await content.readany():
            yield piece

    def close(self) -> None:
        """Close the connection, unless the answer was read to its end."""
        self.response.close()


class WatchedStream(Answer):
    """A stream of server-sent events that passes as it is, and of which each event is looked at."""

    __slots__ = ("_rest", "_watch")

    def __init__(
        self, response: aiohttp.ClientResponse, read: bytes, watch: Callable[[bytes], object]
    ) -> None:
        super().__init__(response, read)
        self._watch = watch
        ends = [end.end() for end in EVENT_END.finditer(read)]
        self._rest = bytearray(read[ends[-1] :] if ends else read)
        """The beginning of an event that is not complete."""

    async def pieces(self) -> AsyncIterator[bytes]:
        """Iterate over the rest of the body."""
        rest = self._rest
        async for piece in super().pieces():
            yield piece
            rest += piece
            while end := EVENT_END.search(rest):
                self._watch(data_of(bytes(rest[: end.end()])))
                del rest[: end.end()]
            if len(rest) > LARGEST_EVENT:
                rest.clear()


class WrittenAnswer(Answer):
    """An answer that the gateway has written itself."""

    __slots__ = ("_headers", "_status")

    def __init__(self, status: int, headers: list[tuple[bytes, bytes]], body: bytes) -> None:
        self._status = status
        self._headers = headers
        self.read = body
        self.extra = []

    @property
    def status(self) -> int:
        """The status."""
        return self._status

    @property
    def headers(self) -> list[tuple[bytes, bytes]]:
        """The headers, with the length of the body."""
        return [*self._headers, (b"content-length", b"%d" % len(self.read)), *self.extra]

    @property
    def whole(self) -> bool:
        """Always."""
        return True

    def close(self) -> None:
        """There is no connection."""


class FailedTry(FaultError):
    """A try that failed. `answer` is what the upstream sent, if it sent something."""

    answer: Answer | None = None

    @classmethod
    def of(cls, fault: Fault, answer: Answer | None) -> FailedTry:
        """Return the error of one try."""
        error = cls.from_fault(fault)
        failed = error if isinstance(error, cls) else cls.__new__(cls)
        failed.__dict__.update(error.__dict__)
        failed.answer = answer
        return failed


@contextmanager
def closed_on_error(response: aiohttp.ClientResponse) -> Iterator[None]:
    """Close the connection of an answer that cannot be read."""
    try:
        yield
    except BaseException:
        response.close()
        raise


def is_stream(response: aiohttp.ClientResponse) -> bool:
    """Return whether an answer is a stream of server-sent events."""
    return response.headers.get("Content-Type", "").lower().startswith("text/event-stream")


async def read_failure(
    response: aiohttp.ClientResponse, vendor: str | None, *, own: bool = False
) -> tuple[Fault, Answer]:
    """Return the fault of a failed answer, and the answer with as much of its body as was needed."""
    data = await read_up_to(response, READ, within=BODY_TIME)
    whole = response.content.at_eof()
    body = _decoded(data, response.headers.get("Content-Encoding", "")) if whole else None
    headers = dict(response.headers)
    document = {"status": response.status, "headers": headers, "body": body}
    fault = extract(document, "http", vendor=vendor, native=False, own=own)
    return fault or Fault(code="INTERNAL_ERROR", status=response.status), Answer(response, data)


async def read_up_to(response: aiohttp.ClientResponse, limit: int, *, within: float | None = None) -> bytes:
    """Read a body, at most `limit` bytes, and for at most `within` seconds. What was not read is still in the response."""
    data = bytearray()
    loop = asyncio.get_running_loop()
    until = None if within is None else loop.time() + within
    try:
        while len(data) < limit:
            async with asyncio.timeout_at(until):
                piece = await response.content.read(limit - len(data))
            if not piece:
                break
            data += piece
    except TimeoutError:
        if until is None or loop.time() < until:
            raise  # the upstream's own time-out
    return bytes(data)


def _decoded(data: bytes, encoding: str) -> bytes | None:
    """Return a body without its content encoding, of limited size; None if the encoding is unknown."""
    if not encoding or encoding == "identity":
        return data
    if encoding not in {"gzip", "x-gzip", "deflate"}:
        return None
    try:
        return zlib.decompressobj(47 if "gzip" in encoding else 15).decompress(data, 4 * READ)
    except zlib.error:
        return None


async def first_event(response: aiohttp.ClientResponse) -> bytes:
    """
    Read a stream up to the end of its first event with data, at most READ bytes.

    Comments, the event with which MCP servers name an id only, and those that announce the answer of a model are held back for a
    moment: the answer usually follows at once, and after the first byte to the caller nothing is repeated.
    """
    data = bytearray()
    seen = 0
    until: float | None = None
    loop = asyncio.get_running_loop()
    try:
        while len(data) < READ:
            async with asyncio.timeout_at(until):
                piece = await response.content.readany()
            if not piece:
                break
            data += piece
            for end in EVENT_END.finditer(data, seen):
                if _has_data(data[seen : end.end()]):
                    return bytes(data)
                seen = end.end()
                until = until or loop.time() + HELD
    except TimeoutError:
        if until is None or loop.time() < until:
            raise  # the upstream's own time-out
    return bytes(data)


def _has_data(event: bytes | bytearray) -> bool:
    """Return whether an event says something: it has data, and does not only announce the answer of a model."""
    return any(
        line.startswith(b"data:") and line[5:].strip() and not _QUIET.search(line, 5, 200)
        for line in event.splitlines()
    )


_QUIET = re.compile(
    rb'"type"\s*:\s*"(?:' + b"|".join(re.escape(name.encode()) for name in sorted(QUIET)) + rb')"'
)
"""Events with which the answer of a model is announced, before its first output."""


def beginning(data: bytes) -> bytes:
    r"""
    Return a stream up to the end of its first event that says something.

    >>> beginning(b'data: {"type": "ping"}\n\ndata: {"type": "error"}\n\ndata: 1\n\n')
    b'data: {"type": "ping"}\n\ndata: {"type": "error"}\n\n'
    """
    seen = 0
    for end in EVENT_END.finditer(data):
        if _has_data(data[seen : end.end()]):
            return data[: end.end()]
        seen = end.end()
    return data


async def read_response(response: aiohttp.ClientResponse, limit: int) -> bytes:
    """
    Read the JSON-RPC response to a request of the gateway's own, at most `limit` bytes.

    In a stream other messages can come before it; the message is returned as it would be without a stream.
    """
    if not is_stream(response):
        return await read_up_to(response, limit)
    data = bytearray()
    while len(data) < limit:
        piece = await response.content.readany()
        if not piece:
            break
        data += piece
        while end := EVENT_END.search(data):
            event = data_of(bytes(data[: end.end()]))
            del data[: end.end()]
            if is_response(event):
                return event
    return data_of(bytes(data))


def data_of(event: bytes) -> bytes:
    """Return the data of one server-sent event."""
    lines = event.splitlines()
    return b"\n".join(line[5:].strip() for line in lines if line.startswith(b"data:"))


def failure_in_stream(data: bytes, vendor: str | None) -> Fault | None:
    """Return the failure in the beginning of a stream, or None. One after the first output is not repeated."""
    first = beginning(data)
    found = read_stream(first.decode("utf-8", "replace"), vendor=vendor)
    if found is not None or len(first) == len(data):
        return found
    found = read_stream(data.decode("utf-8", "replace"), vendor=vendor)
    return None if found is None else replace(found, max_retries=0)


async def send_answer(send: Send, answer: Answer) -> None:
    """Send an answer as it comes: status, headers, and the body byte for byte."""
    await send({"type": "http.response.start", "status": answer.status, "headers": answer.headers})
    if answer.whole:
        await send({"type": "http.response.body", "body": answer.read})
        return
    if answer.read:
        await send({"type": "http.response.body", "body": answer.read, "more_body": True})
    async for piece in answer.pieces():
        await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body", "body": b""})
