"""
`Idempotency-Key` for any WSGI application: the same rules, options and store as `amends.http.idempotency`.

    app.wsgi_app = IdempotentWSGI(app.wsgi_app, "sqlite:///keys.db")                      # Flask, after install(app)
    application = IdempotentWSGI(get_wsgi_application(), "sqlite:///keys.db")             # Django, with ProblemMiddleware

The store is asynchronous, so it runs on an event loop in a thread of its own, one per process.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Iterator
from concurrent.futures import Future
from http import HTTPStatus
from io import BytesIO
from typing import Any

from amends.core.fault import Fault
from amends.durable.loop_thread import LoopThread
from amends.http.asgi import FAULT
from amends.http.idempotency import commit
from amends.http.idempotency_middleware import (
    CLAIM,
    KEYS,
    Answered,
    KeyedMiddleware,
    Refused,
    renew_lease,
    replayed,
    settle,
    settle_failure,
    write_outcome,
)
from amends.http.idempotency_request import (
    KeyedRequest,
    caller_of,
    ended_early_fault,
    fault_of_raised,
    store_down_fault,
    too_large_fault,
    warn_unkeyed,
)
from amends.http.idempotency_store import Claim, Keys, Record
from amends.http.responses import LOG, RawResponse
from amends.http.wsgi import request_info
from amends.stores.contract import Transaction

__all__ = ["IdempotentWSGI", "commit_sync", "environ_caller"]

Environ = dict[str, Any]
StartResponse = Callable[..., Callable[[bytes], object]]
App = Callable[[Environ, StartResponse], Iterable[bytes]]

_LOOP = "amends.loop"
_PATIENCE = 30.0
"""Seconds that a request waits for its store, beside the time of a `verify` hook."""


def environ_caller(environ: Environ) -> str:
    """
    Return an id of the caller, from all headers that carry credentials, the cookies and the authenticated user.

    It is the default of `IdempotentWSGI(caller=)`.

    >>> environ_caller({"REMOTE_USER": "alice"}) == environ_caller({"REMOTE_USER": "bob"})
    False
    """
    headers = (
        (name[5:].replace("_", "-"), str(value))
        for name, value in environ.items()
        if name.startswith("HTTP_")
    )
    names = ("REMOTE_USER", "SSL_CLIENT_S_DN")
    return caller_of(headers, "\n".join(str(environ[name]) for name in names if environ.get(name)))


class IdempotentWSGI(KeyedMiddleware):
    """
    WSGI middleware that runs a request with an idempotency key once. `KeyedMiddleware` has the options.

        app.wsgi_app = IdempotentWSGI(app.wsgi_app, "sqlite:///keys.db")     # Flask, after install(app)
    """

    _default_caller = staticmethod(environ_caller)

    def _prepare(self) -> None:
        self._loop = LoopThread(self._lease + _PATIENCE)

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        """Handle one request."""
        if environ["REQUEST_METHOD"] not in self._methods:
            return self._app(environ, start_response)
        # For `commit_sync`, which needs the store for requests without a key, too.
        environ[KEYS], environ[_LOOP] = self._open_keys, self._loop
        sent = environ.get("HTTP_IDEMPOTENCY_KEY")
        key = self._key([] if sent is None else [sent])
        if isinstance(key, Refused):
            return self._refuse(environ, start_response, key)
        return (
            self._app(environ, start_response)
            if key is None
            else self._call_with_key(environ, start_response, key, str(sent))
        )

    def _app(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        response: Iterable[bytes] = self.app(environ, start_response)
        return response

    def _call_with_key(
        self, environ: Environ, start_response: StartResponse, key: str, sent: str
    ) -> Iterable[bytes]:
        body = self._read_body(environ)
        if body is _TOO_LARGE and not self._required:
            # The key is not echoed: it is not honoured for this request.
            warn_unkeyed(environ["REQUEST_METHOD"], environ.get("PATH_INFO", ""), self._max_body)
            return self._app(environ, start_response)
        if isinstance(body, Refused):
            return self._refuse(environ, start_response, body)
        start_response = _echo(start_response, sent)
        request = KeyedRequest(
            key=key,
            caller="",
            method=environ["REQUEST_METHOD"],
            path=environ.get("SCRIPT_NAME", "") + environ.get("PATH_INFO", ""),
            query=environ.get("QUERY_STRING", ""),
            body=body,
            status=0,
        )
        try:
            claimed = self._loop.run(self._claim(request, environ))
        except TimeoutError as error:
            claimed = Refused(store_down_fault(), error)
        if isinstance(claimed, Refused):
            return self._refuse(environ, start_response, claimed)
        if isinstance(claimed, Record):
            return _send(start_response, replayed(claimed))
        return _Run(self.app, environ, start_response, self._loop, *claimed, self._max_body)

    def close(self) -> None:
        """Close the store if this middleware opened it, and end its thread."""
        self._loop.run(self._storage.close())
        self._loop.stop()

    def _refuse(self, environ: Environ, start_response: StartResponse, refused: Refused) -> Iterable[bytes]:
        return _send(start_response, self._response(request_info(environ), refused))

    def _read_body(self, environ: Environ) -> bytes | Refused | None:
        """Return the body, None for a body that is streamed, or why it was not read."""
        length = str(environ.get("CONTENT_LENGTH") or "")
        if not length.isdigit():
            streamed = "chunked" in environ.get("HTTP_TRANSFER_ENCODING", "").lower()
            return None if streamed else b""
        if int(length) > self._max_body:
            return _TOO_LARGE
        body: bytes = environ["wsgi.input"].read(int(length))
        if len(body) < int(length):
            return Refused(ended_early_fault())
        environ["wsgi.input"] = BytesIO(body)
        return body


_TOO_LARGE = Refused(too_large_fault())


def commit_sync(
    environ: Environ, work: Callable[[Transaction], object], *, status: int = 200
) -> tuple[int, bytes]:
    """
    Same as `amends.http.idempotency.commit`, below `IdempotentWSGI(transactional=True)`; `request.environ` in Flask.

        def work(tx: Transaction) -> object:
            tx.sql("INSERT INTO orders VALUES ('book')")
            return {"placed": "book"}

        status, body = commit_sync(request.environ, work, status=201)
    """
    loop: LoopThread = environ[_LOOP]
    return loop.run(commit(environ, work, status=status))


class _Run:
    """
    Runs the first request with a key, as the iterable of its response.

    A response with a `Content-Length`, or in a list, is stored before its last piece is sent; any other is stored after it.
    """

    def __init__(
        self,
        app: App,
        environ: Environ,
        start_response: StartResponse,
        loop: LoopThread,
        keys: Keys,
        claim: Claim,
        max_body: int,
    ) -> None:
        self._environ, self._start_response = environ, start_response
        self._loop, self._keys, self._claim = loop, keys, claim
        self._max_body = max_body
        self._status, self._headers = 0, [("", "")]
        self._length: int | None = None
        self._copy, self._size = bytearray(), 0
        self._settled = False
        environ[CLAIM] = claim
        self._renewal: Future[None] = loop.start(renew_lease(keys, claim))
        try:
            self._result = app(environ, self._start)
        except BaseException as exc:
            self._fail(fault_of_raised(exc, environ.get("REQUEST_METHOD", "POST")))
            raise

    def _start(
        self, status: str, headers: list[tuple[str, str]], exc_info: object = None
    ) -> Callable[[bytes], object]:
        self._status, self._headers = int(status[:3]), list(headers)
        for name, value in headers:
            if name.lower() == "content-length" and value.isdigit():
                self._length = int(value)
        write = self._start_response(status, headers, exc_info)

        def write_and_copy(piece: bytes) -> None:
            self._take(piece)
            write(piece)

        return write_and_copy

    def __iter__(self) -> Iterator[bytes]:
        known = len(self._result) if isinstance(self._result, list | tuple) else None
        try:
            for position, piece in enumerate(self._result, 1):
                self._take(piece)
                if position == known:
                    self._settle()
                yield piece
            self._settle()
        except Exception:
            self._fail()
            raise

    def close(self) -> None:
        """End the request. The server calls it, also when the client has disconnected."""
        try:
            close = getattr(self._result, "close", None)
            if close is not None:
                close()
        finally:
            self._fail()

    def _take(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size <= self._max_body:
            self._copy += piece
        if self._length is not None and self._size >= self._length:
            self._settle()

    def _settle(self) -> None:
        """Store the outcome of the request, once."""
        if self._settled:
            return
        answered = Answered(
            status=self._status,
            headers=self._headers,
            body=bytes(self._copy),
            whole=self._size <= self._max_body,
            fault=self._environ.get(FAULT),
        )
        self._write(settle(self._keys, self._claim, answered))

    def _fail(self, fault: Fault | None = None) -> None:
        """Store that the request ended without a complete response, unless its outcome is stored."""
        if not self._settled:
            self._write(settle_failure(self._keys, self._claim, fault))

    def _write(self, writing: Coroutine[object, object, None]) -> None:
        self._settled = True
        self._renewal.cancel()
        try:
            self._loop.run(write_outcome(writing))
        except TimeoutError:
            LOG.exception("the record of an idempotency key could not be written")


def _echo(start_response: StartResponse, key: str) -> StartResponse:
    """Return a `start_response` that adds the key, as the client sent it."""

    def start_with_key(
        status: str, headers: list[tuple[str, str]], exc_info: object = None
    ) -> Callable[[bytes], object]:
        added = [*headers, ("Idempotency-Key", key)]
        return start_response(status, added) if exc_info is None else start_response(status, added, exc_info)

    return start_with_key


def _send(start_response: StartResponse, response: RawResponse) -> Iterable[bytes]:
    try:
        phrase = HTTPStatus(response.status).phrase
    except ValueError:
        phrase = "Unknown"
    start_response(f"{response.status} {phrase}", list(response.headers))
    return [response.body]
