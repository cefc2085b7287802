"""
requests: one adapter, and calls recover within bounds.

    import requests
    from amends.bindings.requests import Adapter

    session = requests.Session()
    session.mount("https://", Adapter())

The same as `amends.bindings.httpx`, on top of requests' own adapter, whose own retries stay at none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

try:
    import requests
    from requests.adapters import HTTPAdapter
except ImportError as missing:
    raise ImportError("amends.bindings.requests needs requests: pip install requests") from missing

from amends.core.policy import DEFAULT, Policy
from amends.errors.base import FaultError
from amends.http.calls import ENCODED_LIMIT, KEY, LIMIT, Calls, failure
from amends.recovery.drivers import recover
from amends.recovery.scope import time_left
from amends.recovery.upstream import Upstream

__all__ = ["Adapter"]


class Adapter(HTTPAdapter):
    """Sends with recovery. Mount one per service where they share an `Upstream`."""

    def __init__(
        self,
        *,
        policy: Policy = DEFAULT,
        upstream: Upstream | None = None,
        keys: bool = True,
        errors: str = "raise",
        headers: Callable[[], Mapping[str, str]] | None = None,
        refresh: Callable[..., Any] | None = None,
        verify: Callable[..., Any] | None = None,
        **options: Any,
    ) -> None:
        """The arguments are those of `amends.bindings.httpx.Transport`; `options` are HTTPAdapter's own."""
        super().__init__(**options)
        self._calls = Calls(
            policy=policy,
            upstream=upstream,
            keys=keys,
            errors=errors,
            headers=headers,
            refresh=refresh,
            verify=verify,
        )

    def send(  # type: ignore[override]
        self,
        request: requests.PreparedRequest,
        stream: bool = False,
        timeout: Any = None,
        **options: Any,
    ) -> Any:
        """One request, however many attempts it takes."""
        return self._send(self._calls, request, stream, timeout, options)

    def _send(
        self,
        calls: Calls,
        request: requests.PreparedRequest,
        stream: bool,
        timeout: Any,
        options: dict[str, Any],
    ) -> Any:
        method = request.method or "GET"
        operation = calls.operation(method, _text(request.headers.get(KEY)), method)
        accept = _text(request.headers.get("Accept"))
        parts = urlsplit(request.url or "")
        origin = f"{parts.scheme}://{parts.netloc}"
        replayable = request.body is None or isinstance(request.body, bytes | str)

        def attempt() -> Any:
            request.headers.update(calls.dressing(accept, operation.key, origin))
            return _checked(
                super(Adapter, self).send(request, stream=stream, timeout=_bounded(timeout), **options),
                keep=stream and calls.errors == "return",
            )

        try:
            return recover(attempt, **calls.options(operation, replayable=replayable))
        except FaultError as error:
            return calls.settled(
                error, request.headers, lambda once: self._send(once, request, stream, timeout, options)
            )


def _text(value: str | bytes | None) -> str | None:
    return value.decode("latin-1") if isinstance(value, bytes) else value


def _bounded(timeout: Any) -> Any:
    """No time-out longer than what is left of the operation around the call."""
    left = time_left()
    if left is None:
        return timeout
    given = timeout if isinstance(timeout, tuple) else (timeout, timeout)
    return tuple(left if each is None else min(left, each) for each in given)


def _checked(response: requests.Response, *, keep: bool) -> requests.Response:
    """The response, or its typed error. `keep`: a stream that somebody else is going to read."""
    if response.status_code < 400:
        return response
    body = None
    if not keep:
        limit = ENCODED_LIMIT if "content-encoding" in response.headers else LIMIT
        raw = bytearray()
        try:
            for part in response.iter_content(65536):
                raw += part
                if len(raw) > limit:
                    break
            else:
                body = bytes(raw)
        except requests.RequestException:
            pass
        # What was read is the body from here on: a larger one is cut off, and says nothing structured.
        response._content = bytes(raw)  # noqa: SLF001
        response.close()
    raise failure(response.status_code, response.headers, body, response)
