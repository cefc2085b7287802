"""
Recovery for httpx2 and httpx, as transports.

    import httpx2
    from amends.bindings.httpx import AsyncTransport, Transport

    client = httpx2.Client(transport=Transport())
    client = httpx2.AsyncClient(transport=AsyncTransport())

The same classes work with both libraries; requests and responses are of the types of the library that the client
belongs to. A failed response raises the typed error of its code, with `.fault`, `.decision`, `.history` and `.response`.
With `raises="nothing"` the last response is returned instead, with `raises="original"` the library's exception is raised.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from inspect import isawaitable
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, Self, Unpack

if TYPE_CHECKING:
    import httpx2 as library
else:
    try:
        import httpx2 as library
    except ImportError:
        try:
            import httpx as library
        except ImportError as missing:
            raise ImportError("amends.bindings.httpx needs an extra: pip install 'amends[http]'") from missing

from amends.bindings.httpx_proxies import AsyncEnvironmentTransport, EnvironmentTransport
from amends.bindings.httpx_responses import (
    Answer,
    Library,
    aanswer,
    answer,
    apeek,
    araise_for_failure,
    fields_of,
    give_up_later,
    is_in_memory,
    library_of,
    peek,
    raise_for_failure,
)
from amends.errors.base import FaultError
from amends.http import call_bodies
from amends.http.call_bodies import broken_body_error, is_effect_unknown
from amends.http.calls import (
    ANSWER_FIELDS,
    REQUEST_FIELDS,
    UNSAFE,
    Call,
    CallOptions,
    ClientOptions,
    mistakes_pass,
    raise_if_mistake,
)
from amends.http.key_support import KeySupport, shared_proofs
from amends.http.raising import return_or_raise
from amends.http.redirects import is_credential, same_party
from amends.recovery.drivers import arecover, recover
from amends.recovery.failover import Target
from amends.recovery.scope import time_left

__all__ = ["AsyncTransport", "Transport"]

_ANSWER_FIELDS = frozenset(name.encode() for name in (*ANSWER_FIELDS, "content-encoding"))
_REQUEST_FIELDS = frozenset(name.encode() for name in REQUEST_FIELDS)
ORIGIN = "amends_origin"
"""Extension of a request: the first origin that it went to. The libraries hand extensions on when they follow redirects."""


_FOR_PLAIN = "Transport is for plain clients; an async client needs AsyncTransport()"
_FOR_ASYNC = "AsyncTransport is for async clients; a plain client needs Transport()"


class _Base:
    """The options and helpers of both transports."""

    def __init__(
        self,
        transport: Any = None,
        *,
        on_response: Callable[[Any], object] | None = None,
        auth: Any = None,
        **named: Unpack[ClientOptions],
    ) -> None:
        """
        Args:
            transport: the transport that sends; by default the library's own.
            on_response: called with every answer that the client's own event hooks do not see: those that were followed by
                a further attempt. A client runs its hooks on the one answer that its transport returns. What it raises is
                raised as it is. May be async in an `AsyncTransport`.
            auth: an auth flow of the library (`httpx2.Auth`) that reads the bodies of failed answers; it is run in every
                attempt. A client's own flow gets failed answers, too, but reading the body of one raises its error.
            named: the options of all HTTP clients, which `amends.http.calls.ClientOptions` describes.

        """
        self._inner = transport
        support = shared_proofs() if transport is None else KeySupport()
        self._options = CallOptions.of(type(self).__name__, support, **named)
        self._on_response = on_response
        self._auth = auth

    def _call(
        self, options: CallOptions, request: library.Request, key: str | None, classes: Library
    ) -> Call:
        """Return what all attempts of a request have in common."""
        url, method = request.url, request.method
        origin = f"{url.scheme}://{url.netloc.decode('latin-1')}"
        first = request.extensions.setdefault(ORIGIN, origin)
        redirected = first != origin and not same_party(first, origin)
        # With POST and PATCH, the name of the header with the key depends on the service.
        fields = fields_of(request.headers, None if method in UNSAFE else _REQUEST_FIELDS)
        return Call(
            options,
            method=method,
            origin=origin,
            path=url.path,
            headers=_without_credentials(fields) if redirected else fields,
            redirected=redirected,
            replayable=isinstance(request.stream, classes.byte_stream) or _read_small_form(request),
            key=key,
            give_up=give_up_later,
            content=lambda: (str(url), request.read()),
        )


class Transport(_Base, library.BaseTransport):
    """
    Transport that sends requests with recovery. Use one per service if the services have different Upstreams.

    >>> import httpx2
    >>> answers = iter([httpx2.Response(503, headers={"Retry-After": "0"}), httpx2.Response(200, text="three trains")])
    >>> service = httpx2.MockTransport(lambda request: next(answers))  # leave it out to call a real service
    >>> with httpx2.Client(transport=Transport(service)) as client:
    ...     client.get("https://trains.example/").text
    'three trains'
    """

    async def __aenter__(self) -> NoReturn:
        raise TypeError(_FOR_PLAIN)

    async def handle_async_request(self, request: object) -> NoReturn:
        """Raise a TypeError: an async client needs an `AsyncTransport`."""
        raise TypeError(_FOR_PLAIN)

    def handle_request(self, request: library.Request) -> library.Response:
        """Send a request, in as many attempts as the policy allows."""
        return self._send(request, self._options)

    def _send(
        self, request: library.Request, options: CallOptions, key: str | None = None
    ) -> library.Response:
        if self._inner is None:
            self._inner = EnvironmentTransport(library_of(request).module)
        classes = library_of(request)
        call = self._call(options, request, key, classes)

        with mistakes_pass():
            try:
                response: library.Response = call.run(partial(self._attempt, request, call, classes))
            except FaultError as error:

                def resend(options: CallOptions, key: str) -> library.Response:
                    self._show(call.take_failed())
                    return self._send(request, options, key)

                response = call.resolve(error, resend)
                failed: object = getattr(error, "response", None)
                if response is failed:
                    return response
                self._show(call.take_failed())
        if call.kept_open:
            call.release()
        return response

    def _attempt(self, request: library.Request, call: Call, classes: Library) -> library.Response:
        """Send the request once."""
        if self._on_response is not None:
            self._show(call.take_failed())
        if call.kept_open:
            call.release()
        try:
            sent = _attempt_request(request, call, classes)
            response = self._inner.handle_request(sent) if self._auth is None else self._deliver(sent)
        except Exception as error:
            raise_if_mistake(error, _mistakes(request))
            raise
        status, fields = response.status_code, fields_of(response.headers, _ANSWER_FIELDS)
        call.answered(status, fields)
        if status >= 400 or call.timeout is not None:
            _limit_reads(sent, response)
        if status >= 400:
            raise_for_failure(response, call, request, classes)
        if call.service.computes:
            response = peek(response, call, request, classes)
        if is_in_memory(response, call, classes, fields):
            return response
        return answer(response, call, classes, partial(self._read_again, request, call, classes))

    def _read_again(
        self, request: library.Request, call: Call, classes: Library, broken: Exception
    ) -> library.Response:
        """Repeat the request after the body of its answer broke off."""
        with mistakes_pass():
            response = _again(partial(self._attempt, request, call, classes), call, broken)
            self._show(response)
        return response

    def _deliver(self, sent: library.Request) -> library.Response:
        """Send the request of one attempt by the auth flow."""
        flow = self._auth.sync_auth_flow(sent)
        try:
            request = next(flow)
            while True:
                response: library.Response = self._inner.handle_request(request)
                response.request = request
                try:
                    request = flow.send(response)
                except StopIteration:
                    return _unread(response)
                response.read()  # gives the connection back
        finally:
            flow.close()

    def _show(self, response: library.Response | None) -> None:
        """Call `on_response` with an answer that the client does not get."""
        if response is not None and self._on_response is not None:
            try:
                self._on_response(response)
            except Exception as error:  # noqa: BLE001 - raised as it is by `mistakes_pass`
                raise_if_mistake(error, (Exception,))

    def close(self) -> None:
        """Close the transport that sends."""
        if self._inner is not None:
            self._inner.close()

    def __enter__(self) -> Self:
        if self._inner is not None:
            self._inner.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        trace: TracebackType | None = None,
    ) -> None:
        if self._inner is not None:
            self._inner.__exit__(kind, error, trace)


class AsyncTransport(_Base, library.AsyncBaseTransport):
    """
    Same as `Transport`, but for async clients; `refresh` and `verify` may be async.

        async with httpx2.AsyncClient(transport=AsyncTransport()) as client:
            await client.get("https://trains.example/")
    """

    def __enter__(self) -> NoReturn:
        raise TypeError(_FOR_ASYNC)

    def handle_request(self, request: object) -> NoReturn:
        """Raise a TypeError: a plain client needs a `Transport`."""
        raise TypeError(_FOR_ASYNC)

    async def handle_async_request(self, request: library.Request) -> library.Response:
        """Send a request, in as many attempts as the policy allows."""
        return await self._send(request, self._options)

    async def _send(
        self, request: library.Request, options: CallOptions, key: str | None = None
    ) -> library.Response:
        if self._inner is None:
            self._inner = AsyncEnvironmentTransport(library_of(request).module)
        classes = library_of(request)
        call = self._call(options, request, key, classes)

        with mistakes_pass():
            try:
                response: library.Response = await call.arun(partial(self._attempt, request, call, classes))
            except FaultError as error:

                async def resend(options: CallOptions, key: str) -> library.Response:
                    await self._show(call.take_failed())
                    return await self._send(request, options, key)

                response = await call.aresolve(error, resend)
                failed: object = getattr(error, "response", None)
                if response is failed:
                    return response
                await self._show(call.take_failed())
        if call.kept_open:
            await call.arelease()
        return response

    async def _attempt(self, request: library.Request, call: Call, classes: Library) -> library.Response:
        """Send the request once."""
        if self._on_response is not None:
            await self._show(call.take_failed())
        if call.kept_open:
            await call.arelease()
        response: library.Response
        try:
            sent = _attempt_request(request, call, classes)
            if self._auth is None:
                response = await self._inner.handle_async_request(sent)
            else:
                response = await self._deliver(sent)
        except Exception as error:
            raise_if_mistake(error, _mistakes(request))
            raise
        fields = fields_of(response.headers, _ANSWER_FIELDS)
        call.answered(response.status_code, fields)
        if response.status_code >= 400:
            await araise_for_failure(response, call, request, classes)
        if call.service.computes:
            response = await apeek(response, call, request, classes)
        if is_in_memory(response, call, classes, fields):
            return response
        return aanswer(response, call, classes, partial(self._read_again, request, call, classes))

    async def _read_again(
        self, request: library.Request, call: Call, classes: Library, broken: Exception
    ) -> library.Response:
        """Repeat the request after the body of its answer broke off."""
        with mistakes_pass():
            response = await _aagain(partial(self._attempt, request, call, classes), call, broken)
            await self._show(response)
        return response

    async def _deliver(self, sent: library.Request) -> library.Response:
        """Send the request of one attempt by the auth flow."""
        flow = self._auth.async_auth_flow(sent)
        try:
            request = await anext(flow)
            while True:
                response: library.Response = await self._inner.handle_async_request(request)
                response.request = request
                try:
                    request = await flow.asend(response)
                except StopAsyncIteration:
                    return _unread(response)
                await response.aread()
        finally:
            await flow.aclose()

    async def _show(self, response: library.Response | None) -> None:
        """Call `on_response` with an answer that the client does not get."""
        if response is not None and self._on_response is not None:
            try:
                shown = self._on_response(response)
                if isawaitable(shown):
                    await shown
            except Exception as error:  # noqa: BLE001 - raised as it is by `mistakes_pass`
                raise_if_mistake(error, (Exception,))

    async def aclose(self) -> None:
        """Close the transport that sends."""
        if self._inner is not None:
            await self._inner.aclose()

    async def __aenter__(self) -> Self:
        if self._inner is not None:
            await self._inner.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        trace: TracebackType | None = None,
    ) -> None:
        if self._inner is not None:
            await self._inner.__aexit__(kind, error, trace)


def _read_small_form(request: library.Request) -> bool:
    """
    Read a form with files, if it is small, so that it can be sent more than once; return whether it was read.

    The stream of a form serves sync and async clients alike, those of generators and of other files only one of them.
    """
    module, stream = library_of(request).module, request.stream
    is_form = isinstance(stream, module.SyncByteStream) and isinstance(stream, module.AsyncByteStream)
    length = request.headers.get("content-length", "")
    if not is_form or not length.isdecimal() or int(length) > call_bodies.LIMIT:
        return False
    request.read()  # the request keeps what was read as its stream
    return True


def _again(attempt: Callable[[], library.Response], call: Call, broken: Exception) -> library.Response:
    """Repeat a call whose body broke off, if that is safe, and return a response that was read."""
    errors = [broken_body_error(broken, call.made)]

    def repeat() -> library.Response:
        if errors:
            raise errors.pop()  # the call whose body broke off is the first attempt
        response = attempt()
        if isinstance(response, Answer):
            response.read_once()
        else:
            response.read()
        return response

    try:
        response: library.Response = recover(repeat, **call.recover_options(call.left))
    except FaultError as error:
        is_effect_unknown(error)
        response = return_or_raise(error, call.options.raises)
    response.read()
    return response


async def _aagain(
    attempt: Callable[[], Awaitable[library.Response]], call: Call, broken: Exception
) -> library.Response:
    """Same as `_again`, but for async calls."""
    errors = [broken_body_error(broken, call.made)]

    async def repeat() -> library.Response:
        if errors:
            raise errors.pop()
        response = await attempt()
        if isinstance(response, Answer):
            await response.aread_once()
        else:
            await response.aread()
        return response

    try:
        response: library.Response = await arecover(repeat, **call.recover_options(call.left))
    except FaultError as error:
        is_effect_unknown(error)
        response = return_or_raise(error, call.options.raises)
    await response.aread()
    return response


def _attempt_request(request: library.Request, call: Call, classes: Library) -> library.Request:
    """
    Return the request of one attempt: a copy with our headers, and with time-outs limited to the time left.

    The caller's request stays as it is. The library copies its headers when it follows a redirect, so ours would follow.
    """
    moved = None if call.failover is None else call.move(str(request.url))
    if moved is not None:
        request = _moved_request(request, *moved, classes)
    added = call.attempt_headers()
    sent: library.Request = classes.request(
        request.method,
        request.url,
        headers=request.headers,
        stream=request.stream,
        extensions=request.extensions,
    )
    headers, extensions = sent.headers, sent.extensions
    extensions["timeout"] = given = dict(extensions.get("timeout") or ())
    if call.timeout is not None:
        for name in ("connect", "read", "write", "pool"):
            given[name] = _shorter(given.get(name), call.timeout)
    if call.redirected:
        for name in [name for name in headers if is_credential(name)]:
            del headers[name]
    for name, value in added.items():
        headers[name] = value
    if call.replayable:
        sent.read()  # transports for tests look at `request.content`
    return sent


def _moved_request(
    request: library.Request, target: Target, address: str, classes: Library
) -> library.Request:
    """Return the request for a target of a Failover. Only its own `rewrite` gives credentials to another origin."""
    if address == str(request.url) and target.rewrite is None:
        return request
    moved: library.Request = classes.request(
        request.method, address, headers=request.headers, stream=request.stream, extensions=request.extensions
    )
    headers = moved.headers
    headers["host"] = moved.url.netloc.decode("latin-1")
    if not same_party(str(request.url), address):
        for name in [name for name in headers if is_credential(name) or name.lower() == "cookie"]:
            del headers[name]
    if target.rewrite is None:
        return moved
    moved.read()
    result: object = target.rewrite(moved)
    if not isinstance(result, classes.request):
        raise TypeError(f"rewrite of {target.name} returns a request, not {type(result).__name__}")
    rewritten: library.Request = result
    body = rewritten.read()
    if "transfer-encoding" not in rewritten.headers and (body or "content-length" in rewritten.headers):
        rewritten.headers["content-length"] = str(len(body))  # it may have been copied
    return rewritten


def _unread(response: library.Response) -> library.Response:
    """Return a response that an auth flow has read as one whose body is in memory, decompressed."""
    if not response.is_stream_consumed:
        return response
    headers = response.headers.copy()
    for name in ("content-encoding", "content-length", "transfer-encoding"):
        headers.pop(name, None)
    kind = library_of(response).module.Response
    found: library.Response = kind(
        response.status_code, headers=headers, content=response.content, extensions=response.extensions
    )
    return found


def _limit_reads(sent: library.Request, response: library.Response) -> None:
    """
    Limit the time-out for reading the body to the time left for it.

    The library looks at the time-out once, when it begins to read a body. The time-out applies to each read, so a body
    that stalls after it began to arrive may end after the deadline, but not later than twice the deadline.
    """
    left = time_left()
    if response.status_code >= 400:
        left = max(_shorter(left, call_bodies.SECONDS), call_bodies.GRACE)
    if left is not None:
        given = sent.extensions["timeout"]
        given["read"] = _shorter(given.get("read"), left)


def _shorter(seconds: float | None, limit: float) -> float:
    return limit if seconds is None else min(seconds, limit)


def _without_credentials(fields: dict[str, str]) -> dict[str, str]:
    """Return the headers of a request that was redirected to another origin, without credentials and keys."""
    return {name: value for name, value in fields.items() if not is_credential(name)}


def _mistakes(request: library.Request) -> tuple[type[Exception], ...]:
    """Return the library's exceptions for mistakes of the caller."""
    module = library_of(request).module
    return module.LocalProtocolError, module.UnsupportedProtocol, module.InvalidURL, module.StreamError
