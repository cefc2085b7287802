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

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from importlib import import_module
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

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

from amends.core.policy import DEFAULT, Policy
from amends.errors.base import FaultError
from amends.http.calls import ENCODED_LIMIT, LIMIT, Call, CallOptions
from amends.recovery.drivers import arecover, recover
from amends.recovery.scope import time_left
from amends.recovery.upstream import Upstream

__all__ = ["AsyncTransport", "Transport"]


class _Base:
    """The options and helpers of both transports."""

    def __init__(
        self,
        transport: Any = None,
        *,
        policy: Policy = DEFAULT,
        upstream: Upstream | None = None,
        keys: bool = True,
        keyed: bool | None = None,
        raises: str = "fault",
        headers: Callable[[], Mapping[str, str]] | None = None,
        refresh: Callable[..., Any] | None = None,
        verify: Callable[..., Any] | None = None,
    ) -> None:
        """
        Args:
            transport: the transport that sends; by default the library's own.
            policy: the bounds of recovery.
            upstream: the state that all callers of the same service share.
            keys: send an `Idempotency-Key` with POST and PATCH; False sends none.
            keyed: whether the service honours keys, so that a POST or PATCH that may have had its effect is repeated.
                None: it is unknown, until a vendor table or an answer of the service proves it.
            raises: what is raised when recovery gives up: "fault", our typed error; "original", the library's exception
                with the fault attached; "nothing", the last response is returned.
            headers: returns headers, called for every attempt: credentials that `refresh` renews. They are sent to the
                first origin that is called, and to no other that it redirects to.
            refresh: renews credentials after they were refused, as in `recover`.
            verify: finds out whether a call that may have had its effect did, as in `recover`; returns a response if so.

        """
        self._inner = transport
        self._options = CallOptions(
            policy=policy,
            upstream=upstream,
            keys=keys,
            keyed=keyed,
            raises=raises,
            headers=headers,
            refresh=refresh,
            verify=verify,
        )

    def _transport(self, request: Any, kind: str) -> Any:
        """Return the transport that sends, by default one of the library that the request belongs to."""
        if self._inner is None:
            self._inner = getattr(_module(request), kind)()
        return self._inner

    def _call(self, options: CallOptions, request: Any, key: str | None) -> Call:
        """Return what all attempts of a request have in common."""
        url = request.url
        return Call(
            options,
            method=request.method,
            origin=f"{url.scheme}://{url.netloc.decode('latin-1')}",
            path=url.path,
            headers=request.headers,
            replayable=isinstance(request.stream, _module(request).ByteStream),
            key=key,
        )


class Transport(_Base, library.BaseTransport):
    """Transport that sends requests with recovery. Use one per service if the services have different Upstreams."""

    def handle_request(self, request: Any) -> Any:
        """Send a request, in as many attempts as the policy allows."""
        return self._send(request, self._options)

    def _send(self, request: Any, options: CallOptions, key: str | None = None) -> Any:
        transport = self._transport(request, "HTTPTransport")
        call = self._call(options, request, key)

        def attempt() -> Any:
            response = transport.handle_request(_attempt_request(request, call))
            return _raise_for_failure(response, call)

        try:
            return recover(attempt, **call.recover_options())
        except FaultError as error:
            return call.resolve(error, lambda again, new: self._send(request, again, new))

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
    """Same as `Transport`, but for async clients; `refresh` and `verify` may be async."""

    async def handle_async_request(self, request: Any) -> Any:
        """Send a request, in as many attempts as the policy allows."""
        return await self._send(request, self._options)

    async def _send(self, request: Any, options: CallOptions, key: str | None = None) -> Any:
        transport = self._transport(request, "AsyncHTTPTransport")
        call = self._call(options, request, key)

        async def attempt() -> Any:
            response = await transport.handle_async_request(_attempt_request(request, call))
            return await _araise_for_failure(response, call)

        try:
            return await arecover(attempt, **call.recover_options())
        except FaultError as error:
            return await call.aresolve(error, lambda again, new: self._send(request, again, new))

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


def _module(value: Any) -> Any:
    """Return the library that an object belongs to: httpx2 or httpx."""
    return import_module(type(value).__module__.partition(".")[0])


def _attempt_request(request: Any, call: Call) -> Any:
    """
    Return the request of one attempt: a copy with our headers, and with time-outs limited to the time left.

    The caller's request stays as it is. The library copies its headers when it follows a redirect, so ours would follow.
    """
    module = _module(request)
    extensions = dict(request.extensions)
    left = time_left()
    if left is not None:
        given = extensions.get("timeout", {})
        extensions["timeout"] = {
            name: left if (seconds := given.get(name)) is None else min(left, seconds)
            for name in ("connect", "read", "write", "pool")
        }
    sent = module.Request(
        request.method, request.url, headers=request.headers, stream=request.stream, extensions=extensions
    )
    sent.headers.update(call.attempt_headers())
    if call.replayable:
        sent.read()  # transports for tests look at `request.content`
    return sent


def _limit(response: Any) -> int:
    return ENCODED_LIMIT if "content-encoding" in response.headers else LIMIT


def _raise_for_failure(response: Any, call: Call) -> Any:
    """
    Return the response, or raise its typed error if the status is 400 or more.

    The body of a failed response is read up to a limit. A larger body is not parsed; the error's response then has the
    complete body with `raises="nothing"`, else an empty one.
    """
    call.answered(response.headers)
    if response.status_code < 400:
        return response
    parts, size, source = [], 0, iter(response.stream)
    for part in source:
        parts.append(part)
        size += len(part)
        if size > _limit(response):
            break
    else:
        response.close()
        raise _complete_error(call, response, b"".join(parts))
    if call.options.raises == "nothing":
        raise _incomplete_error(call, response, _join(parts, source, response))
    response.close()
    raise _incomplete_error(call, response, None)


async def _araise_for_failure(response: Any, call: Call) -> Any:
    """Same as `_raise_for_failure`, but for async streams."""
    call.answered(response.headers)
    if response.status_code < 400:
        return response
    parts, size, source = [], 0, aiter(response.stream)
    async for part in source:
        parts.append(part)
        size += len(part)
        if size > _limit(response):
            break
    else:
        await response.aclose()
        raise _complete_error(call, response, b"".join(parts))
    if call.options.raises == "nothing":
        raise _incomplete_error(call, response, _ajoin(parts, source, response))
    await response.aclose()
    raise _incomplete_error(call, response, None)


def _complete_error(call: Call, response: Any, raw: bytes) -> FaultError:
    """Return the error of a response whose body was read; a body that cannot be decompressed counts as empty."""
    module = _module(response)
    status, extensions = response.status_code, response.extensions
    try:
        rebuilt = module.Response(status, headers=response.headers, content=raw, extensions=extensions)
    except module.DecodingError:
        rebuilt = module.Response(status, extensions=extensions)
    return call.error(status, rebuilt.headers, rebuilt.content, rebuilt)


def _incomplete_error(call: Call, response: Any, content: Any) -> FaultError:
    """Return the error of a response whose body is too large; `content` streams it, or is None to discard it."""
    rebuilt = _module(response).Response(
        response.status_code, headers=response.headers, content=content, extensions=response.extensions
    )
    return call.error(response.status_code, response.headers, None, rebuilt)


def _join(parts: list[bytes], rest: Iterator[bytes], response: Any) -> Iterator[bytes]:
    """Yield the parts of a body that were read, then the rest of it."""
    try:
        yield from parts
        yield from rest
    finally:
        response.close()


async def _ajoin(parts: list[bytes], rest: AsyncIterator[bytes], response: Any) -> AsyncIterator[bytes]:
    """Same as `_join`, but for async streams."""
    try:
        for part in parts:
            yield part
        async for part in rest:
            yield part
    finally:
        await response.aclose()
