"""
httpx2 and httpx: one transport, and calls recover within bounds.

    import httpx2
    from amends.bindings.httpx import AsyncTransport, Transport

    client = httpx2.Client(transport=Transport())
    client = httpx2.AsyncClient(transport=AsyncTransport())

Both libraries are served by the same classes: what is sent and answered are the types of whichever asks. A failed
answer raises the typed error of its code, with `.fault`, `.decision`, `.history` and `.response`; with
`errors="return"` the last response comes back instead.
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
from amends.http.calls import ENCODED_LIMIT, KEY, LIMIT, Calls, failure
from amends.recovery.drivers import arecover, recover
from amends.recovery.scope import time_left
from amends.recovery.upstream import Upstream

__all__ = ["AsyncTransport", "Transport"]


class _Options:
    """What both transports are told."""

    def __init__(
        self,
        transport: Any = None,
        *,
        policy: Policy = DEFAULT,
        upstream: Upstream | None = None,
        keys: bool = True,
        errors: str = "raise",
        headers: Callable[[], Mapping[str, str]] | None = None,
        refresh: Callable[..., Any] | None = None,
        verify: Callable[..., Any] | None = None,
    ) -> None:
        """
        Args:
            transport: what sends; the library's own default without one.
            policy: how far recovery may go.
            upstream: what is shared with the other callers of the same service.
            keys: send an `Idempotency-Key` with POST and PATCH. Only where the service honours it is a repeat of a
                call that may have happened safe: False for one that does not.
            errors: "raise" typed errors, or "return" the last response.
            headers: headers for every attempt, asked for each time: credentials that `refresh` renews. They go to
                the first origin that is called, and to no other, wherever redirects lead.
            refresh: renews credentials after they were refused, as in `recover`.
            verify: looks whether a call that may have happened did, as in `recover`; a result is a response.

        """
        self._inner = transport
        self._calls = Calls(
            policy=policy,
            upstream=upstream,
            keys=keys,
            errors=errors,
            headers=headers,
            refresh=refresh,
            verify=verify,
        )

    def _transport(self, request: Any, kind: str) -> Any:
        """What sends, of the library the request belongs to."""
        if self._inner is None:
            self._inner = getattr(_module(request), kind)()
        return self._inner

    def _prepared(self, calls: Calls, request: Any) -> tuple[dict[str, Any], Any]:
        """The arguments of `recover`, and what an attempt does to the request first."""
        operation = calls.operation(
            request.method, request.headers.get(KEY), f"{request.method} {request.url.host}"
        )
        accept = request.headers.get("accept")
        origin = f"{request.url.scheme}://{request.url.netloc.decode('latin-1')}"
        replayable = isinstance(request.stream, _module(request).ByteStream)

        def dress() -> None:
            request.headers.update(calls.dressing(accept, operation.key, origin))
            _bound(request)

        return calls.options(operation, replayable=replayable), dress


class Transport(_Options, library.BaseTransport):
    """Sends with recovery. One per service, so that its calls share an `Upstream` where they are given one."""

    def handle_request(self, request: Any) -> Any:
        """One request, however many attempts it takes."""
        return self._send(self._calls, request)

    def _send(self, calls: Calls, request: Any) -> Any:
        transport = self._transport(request, "HTTPTransport")
        options, dress = self._prepared(calls, request)

        def attempt() -> Any:
            dress()
            return _checked(transport.handle_request(request), keep=calls.errors == "return")

        try:
            return recover(attempt, **options)
        except FaultError as error:
            return calls.settled(error, request.headers, lambda once: self._send(once, request))

    def close(self) -> None:
        """Close what sends."""
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


class AsyncTransport(_Options, library.AsyncBaseTransport):
    """The same for the async clients; hooks may be async."""

    async def handle_async_request(self, request: Any) -> Any:
        """One request, however many attempts it takes."""
        return await self._send(self._calls, request)

    async def _send(self, calls: Calls, request: Any) -> Any:
        transport = self._transport(request, "AsyncHTTPTransport")
        options, dress = self._prepared(calls, request)

        async def attempt() -> Any:
            dress()
            response = await transport.handle_async_request(request)
            return await _achecked(response, keep=calls.errors == "return")

        try:
            return await arecover(attempt, **options)
        except FaultError as error:
            return await calls.asettled(error, request.headers, lambda once: self._send(once, request))

    async def aclose(self) -> None:
        """Close what sends."""
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
    """The library an object belongs to: httpx2 or httpx."""
    return import_module(type(value).__module__.partition(".")[0])


def _bound(request: Any) -> None:
    """No time-out longer than what is left of the operation around the call."""
    left = time_left()
    if left is not None:
        given = request.extensions.get("timeout", {})
        request.extensions["timeout"] = {
            name: left if (seconds := given.get(name)) is None else min(left, seconds)
            for name in ("connect", "read", "write", "pool")
        }


def _limit(response: Any) -> int:
    return ENCODED_LIMIT if "content-encoding" in response.headers else LIMIT


def _checked(response: Any, *, keep: bool) -> Any:
    """The response, or its typed error. A failed answer's body is read, as far as it is worth reading."""
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
        raise _error(_whole(response, b"".join(parts)))
    if keep:
        raise _error(_rebuilt(response, _joined(parts, source, response)))
    response.close()
    raise _error(_rebuilt(response, None))


async def _achecked(response: Any, *, keep: bool) -> Any:
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
        raise _error(_whole(response, b"".join(parts)))
    if keep:
        raise _error(_rebuilt(response, _ajoined(parts, source, response)))
    await response.aclose()
    raise _error(_rebuilt(response, None))


def _whole(response: Any, raw: bytes) -> Any:
    """The same response with its body in hand; one that does not unpack counts as empty."""
    module = _module(response)
    options = {"headers": response.headers, "extensions": response.extensions}
    try:
        return module.Response(response.status_code, content=raw, **options)
    except module.DecodingError:
        return module.Response(response.status_code, extensions=response.extensions)


def _rebuilt(response: Any, content: Any) -> Any:
    """The same response with a body too large to be read here: still to come, or let go."""
    return _module(response).Response(
        response.status_code, headers=response.headers, content=content, extensions=response.extensions
    )


def _error(response: Any) -> FaultError:
    body = response.content if hasattr(response, "_content") else None
    return failure(response.status_code, response.headers, body, response)


def _joined(parts: list[bytes], rest: Iterator[bytes], response: Any) -> Iterator[bytes]:
    """What was read of a large body, and the rest of it."""
    try:
        yield from parts
        yield from rest
    finally:
        response.close()


async def _ajoined(parts: list[bytes], rest: AsyncIterator[bytes], response: Any) -> AsyncIterator[bytes]:
    try:
        for part in parts:
            yield part
        async for part in rest:
            yield part
    finally:
        await response.aclose()
