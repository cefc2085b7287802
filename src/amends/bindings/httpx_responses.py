"""
The responses that the transports for httpx2 and httpx return.

A client runs its event hooks and its auth flow on what its transport returns. So a failed response is returned to the client,
and its error is raised afterwards: at the first read of the body after the hooks (`Client.send` reads it at the end of a
request), by `raise_for_status`, or at the latest when a streamed response is closed. The client tells that its hooks have run
by setting `history`.

A successful response is returned as the transport made it if its body is in memory. Otherwise it becomes an `Answer`, whose
body is read within the bounds of the call.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, NoReturn
from weakref import WeakKeyDictionary

from amends.errors.base import FaultError
from amends.http.call_bodies import BodyReading, FailedBody, WatchedBody, in_time, late_body_error
from amends.http.calls import Call
from amends.http.raising import original_of, return_or_raise
from amends.recovery.async_library import time_limit

if TYPE_CHECKING:
    import httpx2
    from httpx2 import AsyncByteStream, Response, SyncByteStream
else:
    # The classes below are the same for both libraries; `Library` puts them on the classes of one.
    AsyncByteStream = Response = SyncByteStream = object

__all__ = [
    "Answer",
    "Library",
    "aanswer",
    "answer",
    "apeek",
    "araise_for_failure",
    "fields_of",
    "give_up_later",
    "is_in_memory",
    "library_of",
    "peek",
    "raise_for_failure",
]


class Library:
    """httpx2 or httpx, with our classes on top of its own."""

    def __init__(self, module: ModuleType) -> None:
        library: Any = module
        self.module = library
        self.request: Any = library.Request
        self.byte_stream: type[Any] = library.ByteStream
        self.broken: tuple[type[Exception], ...] = (library.TransportError, library.DecodingError, FaultError)
        """What ends a body before its end."""
        mixed = {"library": self}
        self.answer: type[Answer] = type("Answer", (Answer, library.Response), mixed)
        self.body: type[Body] = type("Body", (Body, library.SyncByteStream), {})
        self.async_body: type[AsyncBody] = type("AsyncBody", (AsyncBody, library.AsyncByteStream), {})


@cache
def _library(name: str) -> Library:
    return Library(import_module(name))


def library_of(value: object) -> Library:
    """Return the library that a request or a response belongs to; its class may be a subclass of the user's."""
    kind = type(value)
    found = _LIBRARIES.get(kind)
    if found is None:
        names = (base.__module__.partition(".")[0] for base in kind.__mro__)
        found = _library(next(name for name in names if name in {"httpx", "httpx2"}))
        _LIBRARIES[kind] = found
    return found


_LIBRARIES: WeakKeyDictionary[type, Library] = WeakKeyDictionary()


def fields_of(headers: httpx2.Headers, wanted: AbstractSet[bytes] | None = None) -> dict[str, str]:
    """
    Return headers by their names in lower case, all or the wanted ones. One look at the library's own takes as long.

    >>> import httpx2
    >>> fields_of(httpx2.Headers({"ETag": "7", "Date": "x"}), {b"date"})
    {'date': 'x'}
    """
    fields: dict[str, str] = {}
    for raw, value in headers.raw:
        lower = raw.lower()
        if wanted is None or lower in wanted:
            name, text = lower.decode("latin-1"), value.decode("latin-1")
            fields[name] = f"{fields[name]}, {text}" if name in fields else text
    return fields


class Answer(Response):
    """A response that raises the error of a failed call after the hooks, and whose body is read under the call's bounds."""

    library: Library
    pending: BaseException | None = None
    """The error to raise; None after it was raised, or if the auth flow of the client goes on."""
    after_hooks = False
    reading: BodyReading | None = None
    again: Callable[[Exception], Any] | None = None
    """Repeats the call after its body broke off, and returns a response that was read."""

    @property
    def history(self) -> list[Response]:
        """The responses before this one. A client sets it after its hooks, and once more if the auth flow goes on."""
        found: list[Response] = self.__dict__["history"]
        return found

    @history.setter
    def history(self, value: list[Response]) -> None:
        self.__dict__["history"] = value
        if self.pending is not None:
            self.pending = None if self.after_hooks else self.pending
            self.after_hooks = True

    def read(self) -> bytes:
        """Read the whole body. If it breaks off, the call is repeated where that is safe."""
        if self.after_hooks:
            self.raise_pending()
        if self.reading is None or self.is_stream_consumed:
            content = super().read()
            if not self.is_closed:
                super().close()  # the client records the elapsed time
            return content
        try:
            self.read_once(repeated=self.again is not None)
        except self.library.broken as error:
            super().close()
            if self.again is None:
                raise
            self._adopt(self.again(error))
        return self.content

    async def aread(self) -> bytes:
        """Same as `read`, for async clients."""
        if self.after_hooks:
            self.raise_pending()
        if self.reading is None or self.is_stream_consumed:
            content = await super().aread()
            if not self.is_closed:
                await super().aclose()
            return content
        try:
            await self.aread_once(repeated=self.again is not None)
        except self.library.broken as error:
            await super().aclose()
            if self.again is None:
                raise
            self._adopt(await self.again(error))
        return self.content

    def read_once(self, *, repeated: bool = True) -> None:
        """Read the whole body. `repeated`: the caller repeats the call if the body breaks off."""
        if self.reading is not None:
            self.reading.whole = repeated
        super().read()
        self._raise_inside()

    async def aread_once(self, *, repeated: bool = True) -> None:
        """Same as `read_once`, for async clients."""
        if self.reading is not None:
            self.reading.whole = repeated
        await super().aread()
        self._raise_inside()

    def iter_bytes(self, chunk_size: int | None = None) -> Iterator[bytes]:
        """Yield the parts of the body, decompressed."""
        # The stream delivers the body as it was sent; the library decompresses it here, for all ways of reading it.
        try:
            yield from super().iter_bytes(chunk_size)
        except self.library.module.DecodingError as error:
            self._raise_corrupt(error)

    async def aiter_bytes(self, chunk_size: int | None = None) -> Any:
        """Yield the parts of the body, decompressed."""
        try:
            async for part in super().aiter_bytes(chunk_size):
                yield part
        except self.library.module.DecodingError as error:
            self._raise_corrupt(error)

    def raise_for_status(self) -> Response:
        """Raise the error of a failed call; otherwise as the library does."""
        self.raise_pending()
        return super().raise_for_status()

    def close(self) -> None:
        """Close the response."""
        super().close()
        if sys.exc_info()[0] is None:  # an exception that is being handled comes first
            self.raise_pending()

    async def aclose(self) -> None:
        """Close the response."""
        await super().aclose()
        if sys.exc_info()[0] is None:
            self.raise_pending()

    def raise_pending(self) -> None:
        """Raise the error of a failed response, once."""
        error, self.pending = self.pending, None
        if error is not None:
            raise error

    def __reduce_ex__(self, protocol: object) -> tuple[object, ...]:
        # Pickled as a response of the library, without what belongs to the call.
        state: dict[str, object] = super().__getstate__()
        kept = {name: value for name, value in state.items() if name not in _OWN}
        return _unpickled, (self.library.module.__name__, kept)

    def _adopt(self, repeated: Response) -> None:
        """Take the state of the response that repeated the call."""
        self.__dict__.update({name: value for name, value in vars(repeated).items() if name not in _KEPT})

    def _raise_inside(self) -> None:
        reading = self.reading
        if reading is not None:
            raise_inside(self, reading.call)

    def _raise_corrupt(self, error: Exception) -> NoReturn:
        """Raise what ends the reading of a compressed body that is corrupt."""
        raised = error if self.reading is None else self.reading.broke(error)
        raise raised from raised.__cause__


def _unpickled(library: str, state: dict[str, object]) -> httpx2.Response:
    """Return a response of the library from its pickled state."""
    kind = import_module(library).Response
    response: httpx2.Response = kind.__new__(kind)
    response.__setstate__(state)
    return response


_OWN = frozenset({"pending", "reading", "again", "after_hooks"})
_KEPT = _OWN | {"history", "default_encoding", "_request", "stream", "next_request"}


class Body(SyncByteStream):
    """A body from an iterator of its parts."""

    def __init__(self, parts: Iterator[bytes], close: Callable[[], object]) -> None:
        self._parts, self._close = parts, close

    def __iter__(self) -> Iterator[bytes]:
        return self._parts

    def close(self) -> None:
        """Close what the parts come from."""
        self._close()


class AsyncBody(AsyncByteStream):
    """Same as `Body`, for async iterators."""

    def __init__(self, parts: AsyncIterator[bytes], close: Callable[[], Any]) -> None:
        self._parts, self._close = parts, close

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._parts

    async def aclose(self) -> None:
        """Close what the parts come from."""
        await self._close()


def _bounded(
    stream: Iterable[bytes], reading: BodyReading, broken: tuple[type[Exception], ...]
) -> Iterator[bytes]:
    """Yield the parts of a successful answer's body; what breaks it off is a typed error."""
    try:
        for part in stream:
            reading.check_time()
            yield part
    except broken as error:
        raised = reading.broke(in_time(error, reading))
        raise raised from raised.__cause__


async def _abounded(
    stream: AsyncIterable[bytes], reading: BodyReading, broken: tuple[type[Exception], ...]
) -> AsyncIterator[bytes]:
    """Same as `_bounded`, for async streams."""
    source = aiter(stream)
    try:
        while (part := await _next(source, reading)) is not None:
            yield part
    except broken as error:
        raised = reading.broke(error)
        raise raised from raised.__cause__


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


def _joined(parts: list[bytes], rest: Iterator[bytes]) -> Iterator[bytes]:
    yield from parts
    yield from rest


async def _ajoined(parts: list[bytes], rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    for part in parts:
        yield part
    async for part in rest:
        yield part


# Successful answers --------------------------------------------------------------------------------------------


def raise_inside(response: httpx2.Response, call: Call) -> None:
    """Raise the failure inside the whole body of a successful answer, if the service is known to report them so."""
    if call.service.inspected:
        error = call.failure_inside(response.status_code, response.headers, response.content, response)
        if error is not None:
            raise error


def answer(
    response: httpx2.Response, call: Call, library: Library, again: Callable[[Exception], object]
) -> httpx2.Response:
    """Return the response of a successful call, whose body is read under the bounds of the call."""
    reading = BodyReading(call, call.until)
    found, source = _answer_of(response, library, reading, again), response.stream
    assert isinstance(source, Iterable)
    found.stream = library.body(_bounded(source, reading, library.broken), source.close)
    return found


def aanswer(
    response: httpx2.Response, call: Call, library: Library, again: Callable[[Exception], object]
) -> httpx2.Response:
    """Same as `answer`, for async clients."""
    reading = BodyReading(call, call.until)
    found, source = _answer_of(response, library, reading, again), response.stream
    assert isinstance(source, AsyncIterable)
    found.stream = library.async_body(_abounded(source, reading, library.broken), source.aclose)
    return found


def is_in_memory(response: httpx2.Response, call: Call, library: Library, fields: Mapping[str, str]) -> bool:
    """
    Return whether the whole body is in memory, where it cannot break off. Raise the failure inside it.

    `fields` are the headers of the response, as `fields_of` returns them.
    """
    if response.is_stream_consumed and response.is_closed:
        raise_inside(response, call)
        return True
    return (
        type(response.stream) is library.byte_stream
        and not call.service.inspected
        and "content-encoding" not in fields
    )


def _answer_of(
    response: httpx2.Response, library: Library, reading: BodyReading, again: Callable[[Exception], object]
) -> Answer:
    """Return an Answer with the state of a response. Building it anew would read every header again."""
    found = library.answer.__new__(library.answer)
    found.__dict__.update(vars(response))
    found.reading = reading
    found.again = again if reading.call.replayable else None
    return found


def peek(response: httpx2.Response, call: Call, request: httpx2.Request, library: Library) -> httpx2.Response:
    """
    Read the stream of a model up to its first output, and return a response that watches the rest of it.

    Raises:
        FaultError: a failure before the first output, which recovery may repeat.

    """
    watch = call.service.watch(response.status_code, response.headers)
    stream = response.stream
    if watch is None or not isinstance(stream, Iterable):
        return response
    watched, source = WatchedBody(watch, call), iter(stream)
    try:
        while watched.peeking and (part := next(source, None)) is not None:
            watched.add(part)
    except BaseException:
        response.close()
        raise
    error = watched.early()
    if error is None:
        body = library.body(_joined(watched.parts, watched.rest(source)), stream.close)
        return _with_body(response, body, library.module.Response)
    if call.options.raises == "nothing":
        call.kept_open.append(response.close)
        body = library.body(_joined(watched.parts, source), stream.close)
        error.response = _with_body(response, body, library.answer, request)  # type: ignore[attr-defined]
    else:
        response.close()
    raise error


async def apeek(
    response: httpx2.Response, call: Call, request: httpx2.Request, library: Library
) -> httpx2.Response:
    """Same as `peek`, but for async streams."""
    watch = call.service.watch(response.status_code, response.headers)
    stream = response.stream
    if watch is None or not isinstance(stream, AsyncIterable):
        return response
    watched, source = WatchedBody(watch, call), aiter(stream)
    try:
        while watched.peeking and (part := await anext(source, None)) is not None:
            watched.add(part)
    except BaseException:
        await response.aclose()
        raise
    error = watched.early()
    if error is None:
        body = library.async_body(_ajoined(watched.parts, watched.arest(source)), stream.aclose)
        return _with_body(response, body, library.module.Response)
    if call.options.raises == "nothing":
        call.kept_open.append(response.aclose)
        body = library.async_body(_ajoined(watched.parts, source), stream.aclose)
        error.response = _with_body(response, body, library.answer, request)  # type: ignore[attr-defined]
    else:
        await response.aclose()
    raise error


def _with_body(
    response: httpx2.Response, body: object, kind: Callable[..., httpx2.Response], request: object = None
) -> httpx2.Response:
    """Return a response with another body."""
    return kind(
        response.status_code,
        headers=response.headers,
        stream=body,
        request=request,
        extensions=response.extensions,
    )


# Failed answers ------------------------------------------------------------------------------------------------


def give_up_later(error: FaultError, raises: str) -> Any:
    """Return a failed response whose error is raised after the client's hooks; without a response, raise now."""
    response = getattr(error, "response", None)
    if raises == "nothing" or response is None:
        return return_or_raise(error, raises)
    if not isinstance(response, Answer):
        # A failure inside a successful answer whose body was in memory.
        response = error.response = _failed_answer(response)  # type: ignore[attr-defined]
    response.pending = error if raises == "fault" else original_of(error) or error
    return response


def _failed_answer(response: httpx2.Response) -> Answer:
    kind = library_of(response).answer
    found = kind.__new__(kind)
    found.__dict__.update(vars(response))
    return found


def raise_for_failure(
    response: httpx2.Response, call: Call, request: httpx2.Request, library: Library
) -> None:
    """
    Raise the typed error of a response whose status is 400 or more.

    The body of a failed response is read within bounds. A larger body is not parsed; the error's response then has the
    complete body with `raises="nothing"`, else an empty one. A body that breaks off is not parsed either.
    """
    body = FailedBody(call, encoded="content-encoding" in response.headers)
    stream = response.stream
    assert isinstance(stream, Iterable)
    source = iter(stream)
    broken = False
    try:
        body.read(source)
    except (library.module.TransportError, library.module.StreamError):
        broken = True
    if not body.complete and not broken and call.options.raises == "nothing":
        call.kept_open.append(response.close)
        rest = library.body(_joined(body.parts, source), stream.close)
        raise _failure(call, response, request, body, library, rest)
    response.close()
    raise _failure(call, response, request, body, library)


async def araise_for_failure(
    response: httpx2.Response, call: Call, request: httpx2.Request, library: Library
) -> None:
    """Same as `raise_for_failure`, but for async streams."""
    body = FailedBody(call, encoded="content-encoding" in response.headers)
    stream = response.stream
    assert isinstance(stream, AsyncIterable)
    source = aiter(stream)
    broken = False
    try:
        await body.aread(source)
    except (library.module.TransportError, library.module.StreamError, TimeoutError):
        broken = True
    if not body.complete and not broken and call.options.raises == "nothing":
        call.kept_open.append(response.aclose)
        rest = library.async_body(_ajoined(body.parts, source), stream.aclose)
        raise _failure(call, response, request, body, library, rest)
    await response.aclose()
    raise _failure(call, response, request, body, library)


def _failure(
    call: Call,
    response: httpx2.Response,
    request: httpx2.Request,
    body: FailedBody,
    library: Library,
    stream: SyncByteStream | AsyncByteStream | None = None,
) -> FaultError:
    """
    Return the error of a failed response.

    Args:
        call: the call that the response belongs to.
        response: the response as the inner transport returned it.
        request: the caller's request.
        body: what was read of its body.
        library: the library of the response.
        stream: delivers the complete body, if the response is kept open.

    """
    module = library.module
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
    found = library.answer(
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
