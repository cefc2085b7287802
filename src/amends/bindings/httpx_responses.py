"""
The responses that the transports for httpx2 and httpx return.

A client runs its event hooks and auth flows on what its transport returns. So a failed response is returned to the client,
and its error is raised afterwards: when `Client.send` reads the body at the end of a request, when `raise_for_status` is
called, or at the latest when a streamed response is closed.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable, Iterator
from functools import cache
from importlib import import_module
from types import FrameType, ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from amends.errors.base import FaultError
from amends.http.call_bodies import BodyReading, FailedBody, WatchedBody, in_time, late_body_error
from amends.http.calls import Call
from amends.http.raising import original_of, return_or_raise
from amends.recovery.async_library import time_limit

if TYPE_CHECKING:
    import httpx2

    class Answer(httpx2.Response):
        """What the classes have that `_classes` makes for each library."""

        pending: BaseException | None
        reading: BodyReading | None
        again: Callable[[Exception], object] | None


__all__ = [
    "answer",
    "apeek",
    "araise_for_failure",
    "give_up_later",
    "module_of",
    "peek",
    "raise_for_failure",
    "raise_inside",
]


def module_of(value: object) -> ModuleType:
    """Return the library that an object belongs to: httpx2 or httpx."""
    return import_module(_library(type(value).__module__))


def _library(name: str) -> str:
    return name.partition(".")[0]


def _ends_the_request(frame: FrameType) -> bool:
    """
    Return whether a response is being read by `Client.send` or `AsyncClient.send`, the last step of a request.

    Hooks and auth flows read responses too, and must get the body. No argument tells the reader, so the calling function
    is looked at; its name and module are the same in all releases of both libraries.
    """
    name = str(frame.f_globals.get("__name__", ""))
    return frame.f_code.co_name == "send" and _library(name) in {"httpx", "httpx2"}


@cache
def _classes(module: Any) -> _Classes:
    """Return the response class and the two stream classes for one library."""

    class ReadAtEnd(module.Response):  # type: ignore[misc]
        """A response of the library that raises the error of a failed call at the end of the request."""

        pending: BaseException | None = None
        """The error to raise at the end; None after it was raised."""
        reading: BodyReading | None = None
        again: Callable[[Exception], Any] | None = None
        """Repeats the call after its body broke off, and returns a response that was read."""

        def read(self) -> bytes:
            if not _ends_the_request(sys._getframe(1)):  # noqa: SLF001 - see `_ends_the_request`
                return super().read()  # type: ignore[no-any-return]
            _raise_pending(self)
            self._read_whole()
            try:
                super().read()
                raise_inside(self)
            except (module.TransportError, module.DecodingError, FaultError) as error:
                super().close()
                if self.again is None:
                    raise
                _adopt(self, self.again(error))
            super().close()
            return self.content  # type: ignore[no-any-return]

        def aread(self) -> Awaitable[bytes]:
            # Not a coroutine function: its frame would not be called by the one that awaits it.
            if not _ends_the_request(sys._getframe(1)):  # noqa: SLF001 - see `_ends_the_request`
                return super().aread()  # type: ignore[no-any-return]
            return self._aread_at_end()

        async def _aread_at_end(self) -> bytes:
            _raise_pending(self)
            self._read_whole()
            try:
                await super().aread()
                raise_inside(self)
            except (module.TransportError, module.DecodingError, FaultError) as error:
                await super().aclose()
                if self.again is None:
                    raise
                _adopt(self, await self.again(error))
            await super().aclose()
            return self.content  # type: ignore[no-any-return]

        def iter_bytes(self, chunk_size: int | None = None) -> Iterator[bytes]:
            # `Stream` delivers the body as it was sent; the library decompresses it here, for all ways of reading it.
            try:
                yield from super().iter_bytes(chunk_size)
            except module.DecodingError as error:
                _raise_corrupt(self, error)

        async def aiter_bytes(self, chunk_size: int | None = None) -> AsyncIterator[bytes]:
            try:
                async for part in super().aiter_bytes(chunk_size):
                    yield part
            except module.DecodingError as error:
                _raise_corrupt(self, error)

        def _read_whole(self) -> None:
            if self.reading is not None:
                self.reading.whole = self.again is not None

        def raise_for_status(self) -> httpx2.Response:
            _raise_pending(self)
            return super().raise_for_status()  # type: ignore[no-any-return]

        def close(self) -> None:
            super().close()
            _raise_pending(self, unless_raising=True)

        async def aclose(self) -> None:
            await super().aclose()
            _raise_pending(self, unless_raising=True)

        def __reduce_ex__(self, protocol: object) -> tuple[object, ...]:
            # Pickled as a response of the library, without what belongs to the call.
            kept: dict[str, object] = super().__getstate__()
            state = {name: value for name, value in kept.items() if name not in _OWN}
            return _unpickled, (module.__name__, state)

    class Stream(module.SyncByteStream):  # type: ignore[misc]
        """The body of a successful answer, with typed errors."""

        def __init__(self, stream: httpx2.SyncByteStream, reading: BodyReading) -> None:
            self.stream, self.reading = stream, reading

        def __iter__(self) -> Iterator[bytes]:
            try:
                for part in self.stream:
                    self.reading.check_time()
                    yield part
            except (module.TransportError, FaultError) as error:
                raised = self.reading.broke(in_time(error, self.reading))
                raise raised from raised.__cause__

        def close(self) -> None:
            self.stream.close()

    class AsyncStream(module.AsyncByteStream):  # type: ignore[misc]
        """Same as `Stream`, for async streams."""

        def __init__(self, stream: httpx2.AsyncByteStream, reading: BodyReading) -> None:
            self.stream, self.reading = stream, reading

        async def __aiter__(self) -> AsyncIterator[bytes]:
            source = aiter(self.stream)
            try:
                while (part := await _next(source, self.reading)) is not None:
                    yield part
            except (module.TransportError, FaultError) as error:
                raised = self.reading.broke(error)
                raise raised from raised.__cause__

        async def aclose(self) -> None:
            await self.stream.aclose()

    class Joined(module.SyncByteStream):  # type: ignore[misc]
        """The parts of a body that were read, then the rest of it."""

        def __init__(self, parts: list[bytes], rest: Iterator[bytes], response: httpx2.Response) -> None:
            self.parts, self.rest, self.response = parts, rest, response

        def __iter__(self) -> Iterator[bytes]:
            yield from self.parts
            yield from self.rest

        def close(self) -> None:
            self.response.close()

    class AsyncJoined(module.AsyncByteStream):  # type: ignore[misc]
        """Same as `Joined`, for async streams."""

        def __init__(self, parts: list[bytes], rest: AsyncIterator[bytes], response: httpx2.Response) -> None:
            self.parts, self.rest, self.response = parts, rest, response

        async def __aiter__(self) -> AsyncIterator[bytes]:
            for part in self.parts:
                yield part
            async for part in self.rest:
                yield part

        async def aclose(self) -> None:
            await self.response.aclose()

    return _Classes(ReadAtEnd, Stream, AsyncStream, Joined, AsyncJoined)


class _Classes(NamedTuple):
    answer: Callable[..., Answer]
    stream: Callable[..., httpx2.SyncByteStream]
    async_stream: Callable[..., httpx2.AsyncByteStream]
    joined: Callable[..., httpx2.SyncByteStream]
    async_joined: Callable[..., httpx2.AsyncByteStream]


def _unpickled(library: str, state: dict[str, object]) -> httpx2.Response:
    """Return a response of the library from its pickled state."""
    kind = import_module(library).Response
    response: httpx2.Response = kind.__new__(kind)
    response.__setstate__(state)
    return response


_OWN = frozenset({"pending", "reading", "again"})
_KEPT = _OWN | {"history", "default_encoding", "_request", "stream", "next_request"}


async def _next(source: AsyncIterator[bytes], reading: BodyReading) -> bytes | None:
    """Return the next part of a body, or None at its end; raise when the deadline is over."""
    if reading.until is None:
        return await anext(source, None)
    reading.check_time()
    try:
        async with time_limit(reading.left):
            return await anext(source, None)
    except TimeoutError as error:
        raise late_body_error() from error


def _raise_pending(response: Answer, *, unless_raising: bool = False) -> None:
    """Raise the error of a failed response, once. At a close, an exception that is being handled comes first."""
    error = response.pending
    if error is None or (unless_raising and sys.exc_info()[0] is not None):
        return
    response.pending = None
    raise error


def _raise_corrupt(response: Answer, error: Exception) -> NoReturn:
    """Raise what ends the reading of a compressed body that is corrupt."""
    raised = error if response.reading is None else response.reading.broke(error)
    raise raised from raised.__cause__


def raise_inside(response: Answer) -> None:
    """Raise the failure inside the whole body of a successful answer, if the service is known to report them so."""
    reading = response.reading
    if reading is not None and reading.call.service.inspected:
        error = reading.call.failure_inside(
            response.status_code, response.headers, response.content, response
        )
        if error is not None:
            raise error


def peek(response: httpx2.Response, call: Call, request: httpx2.Request) -> None:
    """
    Read the stream of a model up to its first output, and watch the rest of it.

    Raises:
        FaultError: a failure before the first output, which recovery may repeat.

    """
    watch = call.service.watch(response.status_code, response.headers) if call.service.computes else None
    if watch is None:
        return
    assert isinstance(response.stream, Iterable)
    watched, source = WatchedBody(watch, call), iter(response.stream)
    try:
        while watched.peeking and (part := next(source, None)) is not None:
            watched.add(part)
    except BaseException:
        response.close()
        raise
    classes, error = _classes(module_of(response)), watched.early()
    if error is None:
        response.stream = classes.joined(watched.parts, watched.rest(source), response)
        return
    if call.options.raises == "nothing":
        call.kept_open.append(response.close)
        _attach(error, response, request, classes.joined(watched.parts, source, response))
    else:
        response.close()
    raise error


async def apeek(response: httpx2.Response, call: Call, request: httpx2.Request) -> None:
    """Same as `peek`, but for async streams."""
    watch = call.service.watch(response.status_code, response.headers) if call.service.computes else None
    if watch is None:
        return
    assert isinstance(response.stream, AsyncIterable)
    watched, source = WatchedBody(watch, call), aiter(response.stream)
    try:
        while watched.peeking and (part := await anext(source, None)) is not None:
            watched.add(part)
    except BaseException:
        await response.aclose()
        raise
    classes, error = _classes(module_of(response)), watched.early()
    if error is None:
        response.stream = classes.async_joined(watched.parts, watched.arest(source), response)
        return
    if call.options.raises == "nothing":
        call.kept_open.append(response.aclose)
        _attach(error, response, request, classes.async_joined(watched.parts, source, response))
    else:
        await response.aclose()
    raise error


def _attach(error: FaultError, response: httpx2.Response, request: httpx2.Request, stream: object) -> None:
    """Give an error the answer that it was found in, whose stream begins with what was read."""
    error.response = _classes(module_of(response)).answer(  # type: ignore[attr-defined]
        response.status_code,
        headers=response.headers,
        stream=stream,
        request=request,
        extensions=response.extensions,
    )


def _adopt(response: object, repeated: object) -> None:
    """Give a response, whose body broke off, the state of the one that repeated it."""
    response.__dict__.update({name: value for name, value in vars(repeated).items() if name not in _KEPT})


def answer(response: httpx2.Response, call: Call, again: Callable[[Exception], object]) -> Answer:
    """Return the response of a successful call, whose body is read under the bounds of the call."""
    module = module_of(response)
    classes, reading = _classes(module), BodyReading(call, call.until)
    wrap = classes.stream if isinstance(response.stream, module.SyncByteStream) else classes.async_stream
    found = classes.answer(
        response.status_code,
        headers=response.headers,
        stream=wrap(response.stream, reading),
        extensions=response.extensions,
    )
    found.reading = reading
    found.again = again if call.replayable else None
    return found


def give_up_later(error: FaultError, raises: str) -> Any:
    """Return a failed response whose error is raised at the end of the request; without a response, raise now."""
    response = getattr(error, "response", None)
    if raises == "nothing" or response is None:
        return return_or_raise(error, raises)
    response.pending = error if raises == "fault" else original_of(error) or error
    return response


def raise_for_failure(response: httpx2.Response, call: Call, request: httpx2.Request) -> None:
    """
    Raise the typed error of a response if its status is 400 or more.

    The body of a failed response is read within bounds. A larger body is not parsed; the error's response then has the
    complete body with `raises="nothing"`, else an empty one. A body that breaks off is not parsed either.
    """
    call.answered(response.status_code, response.headers)
    if response.status_code < 400:
        return
    module = module_of(response)
    body = FailedBody(call, encoded="content-encoding" in response.headers)
    assert isinstance(response.stream, Iterable)
    source = iter(response.stream)
    broken = False
    try:
        body.read(source)
    except (module.TransportError, module.StreamError):
        broken = True
    if not body.complete and not broken and call.options.raises == "nothing":
        call.kept_open.append(response.close)
        raise _failure(call, response, request, body, _classes(module).joined(body.parts, source, response))
    response.close()
    raise _failure(call, response, request, body)


async def araise_for_failure(response: httpx2.Response, call: Call, request: httpx2.Request) -> None:
    """Same as `raise_for_failure`, but for async streams."""
    call.answered(response.status_code, response.headers)
    if response.status_code < 400:
        return
    module = module_of(response)
    body = FailedBody(call, encoded="content-encoding" in response.headers)
    assert isinstance(response.stream, AsyncIterable)
    source = aiter(response.stream)
    broken = False
    try:
        await body.aread(source)
    except (module.TransportError, module.StreamError, TimeoutError):
        broken = True
    if not body.complete and not broken and call.options.raises == "nothing":
        call.kept_open.append(response.aclose)
        joined = _classes(module).async_joined(body.parts, source, response)
        raise _failure(call, response, request, body, joined)
    await response.aclose()
    raise _failure(call, response, request, body)


def _failure(
    call: Call, response: httpx2.Response, request: httpx2.Request, body: FailedBody, stream: object = None
) -> FaultError:
    """
    Return the error of a failed response.

    Args:
        call: the call that the response belongs to.
        response: the response as the inner transport returned it.
        request: the caller's request.
        body: what was read of its body.
        stream: delivers the complete body, if the response is kept open.

    """
    module = module_of(response)
    headers, content, decoded = response.headers, b"".join(body.parts), None
    try:
        if body.complete:
            decoded = module.Response(response.status_code, headers=headers, content=content).content
        usable = body.complete or "content-encoding" not in headers
    except module.DecodingError:
        usable = False
    if not usable and stream is None:
        content, headers = b"", headers.copy()
        headers.pop("content-encoding", None)
        headers.pop("content-length", None)
    found = _classes(module).answer(
        response.status_code,
        headers=headers,
        stream=module.ByteStream(content) if stream is None else stream,
        request=request,
        extensions=response.extensions,
    )
    if stream is None:
        found.read()
        found.is_closed = False  # the client's close records the elapsed time
    found.elapsed = call.elapsed  # of this attempt, for an answer that the client does not get
    return call.error(response.status_code, response.headers, decoded, found)
