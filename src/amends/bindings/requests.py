"""
Recovery for requests, as a transport adapter.

    import requests
    from amends.bindings.requests import Adapter

    session = requests.Session()
    session.mount("https://", Adapter())

Works like `amends.bindings.httpx`, on top of requests' own adapter, whose own retries stay at zero.
"""

from __future__ import annotations

from inspect import signature
from typing import Any
from urllib.parse import urljoin, urlsplit

try:
    import requests
    from requests.adapters import HTTPAdapter
    from requests.structures import CaseInsensitiveDict
except ImportError as missing:
    raise ImportError("amends.bindings.requests needs requests: pip install requests") from missing

from amends.bindings.requests_responses import (
    Answer,
    give_up_later,
    peek,
    raise_after_hooks,
    raise_for_failure,
    raise_inside,
    read_whole,
    run_hooks,
)
from amends.core.wrong_calls import missing_option
from amends.errors.base import FaultError
from amends.http.call_bodies import BodyReading
from amends.http.calls import Call, CallOptions, ClientOptions, mistakes_pass, raise_if_mistake
from amends.http.redirects import is_credential, same_party
from amends.recovery.scope import time_left

__all__ = ["Adapter"]

_OF_THE_LIBRARY = frozenset(signature(HTTPAdapter).parameters)

Timeout = float | tuple[float | None, float | None] | None
"""The seconds that requests may wait: one number, or one to connect and one to read."""


class Adapter(HTTPAdapter):
    """
    Adapter that sends requests with recovery. Mount one per service if the services have different Upstreams.

        session = requests.Session()
        session.mount("https://", Adapter())
    """

    __attrs__ = [*HTTPAdapter.__attrs__, "_options"]  # noqa: RUF012 - what requests pickles and copies

    def __init__(
        self,
        **options: Any,
    ) -> None:
        """Take the options of all HTTP clients (`amends.http.calls.ClientOptions`) and those of HTTPAdapter."""
        named = {name: options.pop(name) for name in ClientOptions.__annotations__ if name in options}
        unknown = [name for name in options if name not in _OF_THE_LIBRARY]
        if unknown:
            raise TypeError(missing_option(type(self).__name__, unknown[0], ClientOptions.__annotations__))
        super().__init__(**options)
        self._options = CallOptions.of(type(self).__name__, **named)

    def send(  # type: ignore[override]
        self,
        request: requests.PreparedRequest,
        stream: bool = False,
        timeout: Timeout = None,
        **arguments: object,
    ) -> requests.Response:
        """Send a request, in as many attempts as the policy allows."""
        return self._send(request, stream, timeout, arguments, self._options)

    def _send(
        self,
        request: requests.PreparedRequest,
        stream: bool,
        timeout: Timeout,
        arguments: dict[str, Any],
        options: CallOptions,
        key: str | None = None,
    ) -> requests.Response:
        parts = urlsplit(request.url or "")
        call = Call(
            options,
            method=request.method or "GET",
            origin=f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}",
            path=parts.path,
            headers=CaseInsensitiveDict((name, _text(value)) for name, value in request.headers.items()),
            replayable=request.body is None or isinstance(request.body, bytes | str),
            redirected=isinstance(request.headers, _RedirectedHeaders),
            key=key,
            give_up=give_up_later,
            content=lambda: (request.url or "", _bytes(request.body)),
        )

        def show(failed: Answer | None) -> None:
            if failed is not None:
                run_hooks(failed, {"stream": stream, "timeout": timeout, **arguments})

        def attempt() -> Answer:
            show(call.take_failed())
            call.release()
            try:
                sent = _moved_request(request, call)
                sent.headers.update(call.attempt_headers())
                found = super(Adapter, self).send(
                    sent, stream=stream, timeout=_limit_timeout(timeout), **arguments
                )
            except Exception as error:
                raise_if_mistake(error)
                raise
            # The caller's request, without our headers: an auth flow that copies it must not send them as its own.
            response = Answer.of(found, request)
            raise_for_failure(response, call)
            response.reading = BodyReading(call, call.until)
            if stream:
                peek(response, call)
            else:
                read_whole(response)
                raise_inside(response, call)
            return response

        def resend(again: CallOptions, new: str) -> requests.Response:
            show(call.take_failed())
            return self._send(request, stream, timeout, arguments, again, new)

        with mistakes_pass():
            try:
                response: Answer = call.run(attempt)
            except FaultError as error:
                result: requests.Response = call.resolve(error, resend)
                failed: object = getattr(error, "response", None)
                if result is not failed:
                    show(call.take_failed())
                    call.release()
                if isinstance(result, Answer):
                    raise_after_hooks(result)
                return result
        call.release()
        if response.is_redirect and not same_party(request.url or "", _target(response)):
            request.headers = _OneHopHeaders(request.headers)
        return response


def _moved_request(request: requests.PreparedRequest, call: Call) -> requests.PreparedRequest:
    """
    Return a copy of the request, for the present target of a Failover if there is one.

    Only the target's own `rewrite` gives credentials to another origin.
    """
    sent = request.copy()
    moved = None if call.failover is None else call.move(request.url or "")
    if moved is None:
        return sent
    target, sent.url = moved
    if not same_party(request.url or "", sent.url):
        for name in [
            name for name in sent.headers if is_credential(name) or name.lower() in {"cookie", "host"}
        ]:
            del sent.headers[name]
    if target.rewrite is None:
        return sent
    rewritten: object = target.rewrite(sent)
    if not isinstance(rewritten, requests.PreparedRequest):
        raise TypeError(f"rewrite of {target.name} returns a request, not {type(rewritten).__name__}")
    rewritten.prepare_content_length(rewritten.body)
    return rewritten


class _OneHopHeaders(CaseInsensitiveDict[str | bytes]):
    """Headers of a request that was redirected to another origin: its copy, which the session sends there, has no credentials."""

    def copy(self) -> CaseInsensitiveDict[str | bytes]:
        """Return the headers without credentials and keys."""
        return _RedirectedHeaders(
            (name, value) for name, value in self.items() if not is_credential(_text(name))
        )


class _RedirectedHeaders(CaseInsensitiveDict[str | bytes]):
    """Headers of a request that another origin redirected here, so that the adapter recognises it."""

    def copy(self) -> CaseInsensitiveDict[str | bytes]:
        """Return the headers of a further redirect of the request."""
        return _RedirectedHeaders(self.items())


def _target(response: requests.Response) -> str:
    """Return the absolute address that a response redirects to."""
    return urljoin(response.url, response.headers["location"])


def _text(value: str | bytes) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else value


def _bytes(body: object) -> bytes:
    return body if isinstance(body, bytes) else str(body or "").encode("utf-8", "surrogatepass")


def _limit_timeout(timeout: Timeout) -> Timeout:
    """Return the time-out, limited to the time left for the operation around the call."""
    left = time_left()
    if left is None:
        return timeout
    connect, read = timeout if isinstance(timeout, tuple) else (timeout, timeout)
    return (
        left if connect is None else min(left, connect),
        left if read is None else min(left, read),
    )
