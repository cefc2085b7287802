"""
The responses that the adapter for requests returns.

A session runs hooks, and auth flows such as `HTTPDigestAuth`, on what its adapter returns. So a failed response is returned
to the session, and its error is raised when the session has run them and asks whether the response is a redirect. A hook of
our own, which runs after the others (`raise_after_hooks`), tells that it is the session that asks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

import requests
from requests import exceptions
from requests.auth import AuthBase
from urllib3.exceptions import DecodeError, HTTPError, ReadTimeoutError

from amends.errors.base import FaultError
from amends.http.call_bodies import BodyReading, FailedBody, WatchedBody, in_time
from amends.http.calls import Call, raise_if_mistake
from amends.http.raising import original_of, return_or_raise

if TYPE_CHECKING:
    from urllib3.response import BaseHTTPResponse

__all__ = [
    "Answer",
    "give_up_later",
    "peek",
    "raise_after_hooks",
    "raise_for_failure",
    "raise_inside",
    "read_whole",
    "run_hooks",
]


T = TypeVar("T")


class Answer(requests.Response):
    """A response of requests that raises the error of a failed call at the end of the request."""

    pending: BaseException | None = None
    """The error to raise at the end; None after it was raised."""
    after_hooks = False
    reading: BodyReading | None = None

    @classmethod
    def of(cls, response: requests.Response, request: requests.PreparedRequest) -> Self:
        """Return the response that the adapter made, as the answer to the caller's request."""
        found = cls()
        found.__dict__.update(vars(response))
        found.request = request
        if not hasattr(found.raw, "stream"):
            # A test made the response, of a file or with its content.
            found.raw = _ReadBody(found.raw, [found.content or b""])
        return found

    @property
    def is_redirect(self) -> bool:
        """Whether the response is a redirect. Raises the error of a failed call if the session asks, at the end."""
        if self.after_hooks:
            self._raise_pending()
        return "location" in self.headers and self.status_code in _REDIRECTS

    def raise_for_status(self) -> None:
        """Raise the error of a failed call; otherwise as requests does."""
        self._raise_pending()
        super().raise_for_status()

    def _raise_pending(self) -> None:
        error, self.pending = self.pending, None
        if error is not None:
            raise error

    def iter_content(self, chunk_size: int | None = 1, decode_unicode: Any = False) -> Iterator[Any]:
        """Return the parts of the body, within the bounds of the call."""
        parts: Iterator[object] = super().iter_content(chunk_size, decode_unicode)
        return parts if self.reading is None else _guarded(parts, self.reading, self.raw)


_REDIRECTS = frozenset({301, 302, 303, 307, 308})


def _guarded(parts: Iterator[T], reading: BodyReading, raw: object) -> Iterator[T]:
    """Yield the parts of a streamed body; a break is a typed error, and a failure for the Upstream."""
    try:
        _limit_read(raw, reading.left)
        for part in parts:
            reading.check_time()
            yield part
            _limit_read(raw, reading.left)
    except (requests.RequestException, FaultError) as error:
        raised = reading.broke(in_time(error, reading))
        raise raised from raised.__cause__


def _limit_read(raw: object, left: float | None) -> None:
    """
    Limit the time-out of the next read to the time left.

    urllib3 does not give access to the socket of a connection that the server will close. There, a body that stalls
    ends after the time-out of the request, which was limited to the time left when it was sent.
    """
    socket = getattr(getattr(raw, "connection", None), "sock", None)
    if left is not None and socket is not None:
        given = socket.gettimeout()
        socket.settimeout(max(0.001, left if given is None else min(given, left)))


def read_whole(response: Answer) -> None:
    """
    Read the body that the caller asked for, within the attempt.

    Raises:
        requests.RequestException: the body broke off.
        FaultError: the deadline is over.

    """
    reading, parts = response.reading, []
    assert reading is not None
    try:
        for part in _parts(response.raw, lambda: reading.left):
            parts.append(part)
            reading.check_time()
    except BaseException as error:
        response.close()
        if isinstance(error, requests.RequestException):
            raise in_time(error, reading) from error
        raise
    response.reading = None
    response.raw = _ReadBody(response.raw, parts)


def raise_inside(response: Answer, call: Call) -> None:
    """Raise the failure inside the whole body of a successful answer, if the service is known to report them so."""
    body = response.raw.waiting
    error = call.failure_inside(response.status_code, response.headers, body, response)
    if error is not None:
        raise error


def peek(response: Answer, call: Call) -> None:
    """
    Read the stream of a model up to its first output, and watch the rest of it.

    Raises:
        FaultError: a failure before the first output, which recovery may repeat.

    """
    watch = call.service.watch(response.status_code, response.headers)
    if watch is None:
        return
    watched, source = WatchedBody(watch, call), _parts(response.raw, lambda: None)
    try:
        while watched.peeking and (part := next(source, None)) is not None:
            watched.add(part)
    except BaseException:
        response.close()
        raise
    error = watched.early()
    if error is None:
        response.raw = _ReadBody(response.raw, watched.parts, watched.rest(source))
        return
    if call.options.raises == "nothing":
        call.kept_open.append(response.close)
        response.raw = _ReadBody(response.raw, watched.parts, source)
        error.response = response  # type: ignore[attr-defined]
    else:
        response.close()
    raise error


def raise_after_hooks(response: Answer) -> None:
    """Make the session's question whether a failed response is a redirect raise its error, once its hooks have run."""
    if response.pending is None:
        return
    given: object = response.request.hooks.get("response") or ()
    hooks = [given] if callable(given) else list(given) if isinstance(given, Iterable) else []
    if _note_end not in hooks:
        # A session runs the hooks in their order. Ours stays: another thread may be sending the same request.
        response.request.hooks["response"] = [*hooks, _note_end]


def _note_end(response: requests.Response, **_: object) -> None:
    """Note that the hooks of a request have run on its response."""
    if isinstance(response, Answer):
        response.after_hooks = True


def run_hooks(response: Answer, arguments: Mapping[str, object]) -> None:
    """
    Run the response hooks of a request on an answer that a further attempt supersedes, so that they see every answer.

    A session runs them on the last one. Hooks of auth flows are left out: they would send the request again. What a hook
    returns is ignored, and what it raises is raised as it is.
    """
    hooks: object = response.request.hooks.get("response", ())
    for hook in [hooks] if callable(hooks) else hooks if isinstance(hooks, Iterable) else ():
        if not isinstance(getattr(hook, "__self__", None), AuthBase):
            try:
                hook(response, **arguments)
            except Exception as error:  # noqa: BLE001 - raised as it is by `mistakes_pass`
                raise_if_mistake(error, (Exception,))


def give_up_later(error: FaultError, raises: str) -> Any:
    """Return a failed response whose error is raised at the end of the request; without a response, raise now."""
    response = getattr(error, "response", None)
    if raises == "nothing" or response is None:
        return return_or_raise(error, raises)
    response.pending = error if raises == "fault" else original_of(error) or error
    return response


def raise_for_failure(response: Answer, call: Call) -> None:
    """
    Raise the typed error of a response if its status is 400 or more.

    The body of a failed response is read within bounds, and the response then contains what was read. With
    `raises="nothing"` it also contains the rest.
    """
    call.answered(response.status_code, response.headers)
    if response.status_code < 400:
        return
    body = FailedBody(call, encoded="content-encoding" in response.headers)
    parts = _parts(response.raw, lambda: body.left)
    broken = False
    try:
        body.read(parts)
    except requests.RequestException:
        broken = (
            True  # the connection broke, or the body does not decompress; the status is known all the same
        )
    rest = None
    if not body.complete and not broken and call.options.raises == "nothing":
        call.kept_open.append(response.close)
        rest = parts
    else:
        response.close()
    response.raw = _ReadBody(response.raw, body.parts, rest)
    response.elapsed = call.elapsed
    content = b"".join(body.parts) if body.complete else None
    raise call.error(response.status_code, response.headers, content, response)


def _parts(raw: BaseHTTPResponse, left: Callable[[], float | None]) -> Iterator[bytes]:
    """Yield the decompressed parts of a body as they arrive, with the exceptions that requests raises."""
    try:
        _limit_read(raw, left())
        if not getattr(raw, "chunked", True) and hasattr(raw, "read1"):
            # `stream` waits until a whole part has arrived; a slow body would never be looked at.
            while part := raw.read1(65536, decode_content=True):
                yield part
                _limit_read(raw, left())
        for part in raw.stream(65536, decode_content=True):
            yield part
            _limit_read(raw, left())
    except DecodeError as error:
        raise exceptions.ContentDecodingError(error) from error
    except ReadTimeoutError as error:
        raise exceptions.ConnectionError(error) from error
    except HTTPError as error:
        raise exceptions.ChunkedEncodingError(error) from error


class _ReadBody:
    """Replaces a response's `raw`: delivers the parts that were read, then the rest; otherwise acts as the original."""

    def __init__(self, raw: object, parts: list[bytes], rest: Iterator[bytes] | None = None) -> None:
        self._raw = raw
        self._waiting = b"".join(parts)
        self._rest = iter(()) if rest is None else rest
        self._error: FaultError | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._raw, name)

    @property
    def waiting(self) -> bytes:
        """What was read and not delivered yet."""
        return self._waiting

    def read(self, amt: int | None = None, **_: object) -> bytes:
        """Return at most `amt` bytes; all of them without `amt`."""
        while self._error is None and (amt is None or len(self._waiting) < amt):
            try:
                part = next(self._rest, None)
            except FaultError as error:
                self._error = error
                break
            if part is None:
                break
            self._waiting += part
        if self._error is not None and (amt is None or not self._waiting):
            # What came before the failure is delivered first.
            raise self._error
        size = len(self._waiting) if amt is None else amt
        read, self._waiting = self._waiting[:size], self._waiting[size:]
        return read

    def stream(self, amt: int | None = 65536, **_: object) -> Iterator[bytes]:
        """Yield parts of at most `amt` bytes."""
        while part := self.read(amt):
            yield part
