"""
Recovery for requests, as a transport adapter.

    import requests
    from amends.bindings.requests import Adapter

    session = requests.Session()
    session.mount("https://", Adapter())

Works like `amends.bindings.httpx`, on top of requests' own adapter, whose own retries stay at zero.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from io import BytesIO
from typing import Any
from urllib.parse import urlsplit

try:
    import requests
    from requests.adapters import HTTPAdapter
    from requests.structures import CaseInsensitiveDict
    from urllib3.exceptions import HTTPError
except ImportError as missing:
    raise ImportError("amends.bindings.requests needs requests: pip install requests") from missing

from amends.core.policy import DEFAULT, Policy
from amends.errors.base import FaultError
from amends.http.calls import ENCODED_LIMIT, LIMIT, Call, CallOptions
from amends.recovery.drivers import recover
from amends.recovery.scope import time_left
from amends.recovery.upstream import Upstream

__all__ = ["Adapter"]


class Adapter(HTTPAdapter):
    """Adapter that sends requests with recovery. Mount one per service if the services have different Upstreams."""

    def __init__(
        self,
        *,
        policy: Policy = DEFAULT,
        upstream: Upstream | None = None,
        keys: bool = True,
        keyed: bool | None = None,
        raises: str = "fault",
        headers: Callable[[], Mapping[str, str]] | None = None,
        refresh: Callable[..., Any] | None = None,
        verify: Callable[..., Any] | None = None,
        **options: Any,
    ) -> None:
        """Take the arguments of `amends.bindings.httpx.Transport`; `options` are those of HTTPAdapter."""
        super().__init__(**options)
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

    def send(  # type: ignore[override]
        self,
        request: requests.PreparedRequest,
        stream: bool = False,
        timeout: Any = None,
        **arguments: Any,
    ) -> Any:
        """Send a request, in as many attempts as the policy allows."""
        return self._send(request, stream, timeout, arguments, self._options)

    def _send(
        self,
        request: requests.PreparedRequest,
        stream: bool,
        timeout: Any,
        arguments: dict[str, Any],
        options: CallOptions,
        key: str | None = None,
    ) -> Any:
        parts = urlsplit(request.url or "")
        call = Call(
            options,
            method=request.method or "GET",
            origin=f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}",
            path=parts.path,
            headers=CaseInsensitiveDict((name, _text(value)) for name, value in request.headers.items()),
            replayable=request.body is None or isinstance(request.body, bytes | str),
            key=key,
        )

        def attempt() -> Any:
            sent = request.copy()
            sent.headers.update(call.attempt_headers())
            response = super(Adapter, self).send(
                sent, stream=stream, timeout=_limit_timeout(timeout), **arguments
            )
            return _raise_for_failure(response, call, stream=stream)

        try:
            return recover(attempt, **call.recover_options())
        except FaultError as error:
            return call.resolve(
                error, lambda again, new: self._send(request, stream, timeout, arguments, again, new)
            )


def _text(value: str | bytes) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else value


def _limit_timeout(timeout: Any) -> Any:
    """Return the time-out, limited to the time left for the operation around the call."""
    left = time_left()
    if left is None:
        return timeout
    given = timeout if isinstance(timeout, tuple) else (timeout, timeout)
    return tuple(left if each is None else min(left, each) for each in given)


def _raise_for_failure(response: requests.Response, call: Call, *, stream: bool) -> requests.Response:
    """
    Return the response, or raise its typed error if the status is 400 or more.

    The body of a failed response is read up to a limit, and the response then contains what was read. With
    `raises="nothing"` the body of a streamed response is left unread for the caller.
    """
    call.answered(response.headers)
    if response.status_code < 400:
        return response
    body = None
    if not stream or call.options.raises != "nothing":
        limit = ENCODED_LIMIT if "content-encoding" in response.headers else LIMIT
        read = bytearray()
        try:
            for part in response.raw.stream(65536, decode_content=True):
                read += part
                if len(read) > limit:
                    break
            else:
                body = bytes(read)
        except HTTPError:
            pass  # the connection broke, or the body does not decompress; the status is known all the same
        response.close()
        response.raw = _ReadBody(response.raw, bytes(read))
    raise call.error(response.status_code, response.headers, body, response)


class _ReadBody:
    """Replaces a response's `raw`: delivers the bytes that were read, and otherwise acts as the original."""

    def __init__(self, raw: Any, body: bytes) -> None:
        self._raw = raw
        self._body = BytesIO(body)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._raw, name)

    def read(self, amt: int | None = None, **_: Any) -> bytes:
        """Return at most `amt` bytes."""
        return self._body.read(amt)

    def stream(self, amt: int | None = 65536, **_: Any) -> Iterator[bytes]:
        """Yield parts of at most `amt` bytes."""
        while part := self._body.read(amt):
            yield part
