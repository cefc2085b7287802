"""
`Idempotency-Key` for any WSGI application: the same rules, options and store as `amends.http.idempotency`.

    app.wsgi_app = IdempotentWSGI(app.wsgi_app, "sqlite:///keys.db")                      # Flask, after install(app)
    application = IdempotentWSGI(get_wsgi_application(), "sqlite:///keys.db")             # Django, with ProblemMiddleware

The store is asynchronous, so it runs on an event loop in a thread of its own, one per process.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import Future
from http import HTTPStatus
from io import BytesIO
from typing import Any

from amends.core.fault import Fault
from amends.durable.keys import key_name
from amends.durable.loop_thread import LoopThread
from amends.errors.base import FaultError
from amends.http.asgi import FAULT
from amends.http.idempotency import (
    CLAIM,
    KEYS,
    commit,
    is_rolled_back,
    log_store_error,
    renew_lease,
    run_verify,
    settle_failure,
)
from amends.http.idempotency_request import (
    KeyedRequest,
    after_failure,
    caller_of,
    fault_of_raised,
    fingerprint,
    invalid_key_error,
    kept_headers,
    not_stored_fault,
    parse_key,
    store_down_fault,
    warn_unkeyed,
)
from amends.http.idempotency_store import Claim, Keys, Record
from amends.http.responses import LOG, RawResponse, Settings, error_response
from amends.http.storage import Storage
from amends.http.wsgi import request_info
from amends.stores import Store, StoreError
from amends.stores.contract import Transaction

__all__ = ["IdempotentWSGI", "commit_sync", "environ_caller"]

Environ = dict[str, Any]
StartResponse = Callable[..., Any]
App = Callable[[Environ, StartResponse], Iterable[bytes]]

_LOOP = "amends.loop"
_PATIENCE = 30.0
"""Seconds that a request waits for its store, beside the time of a `verify` hook."""


def environ_caller(environ: Environ) -> str:
    """Return an id of the caller, from all headers that carry credentials, the cookies and the authenticated user."""
    headers = (
        (name[5:].replace("_", "-"), str(value))
        for name, value in environ.items()
        if name.startswith("HTTP_")
    )
    names = ("REMOTE_USER", "SSL_CLIENT_S_DN")
    return caller_of(headers, "\n".join(str(environ[name]) for name in names if environ.get(name)))


class IdempotentWSGI:
    """WSGI middleware that runs a request with an idempotency key once."""

    def __init__(
        self,
        app: App,
        store: Store | str,
        *,
        expires_in: float = 86400.0,
        lease: float = 30.0,
        methods: Collection[str] = ("POST", "PATCH"),
        required: bool = False,
        transactional: bool | Callable[[Environ], bool] = False,
        caller: Callable[[Environ], str] = environ_caller,
        verify: Callable[[KeyedRequest], Any] | None = None,
        max_body: int = 1024 * 1024,
        settings: Settings | None = None,
    ) -> None:
        """The options are those of `amends.http.idempotency.Idempotent`, with the environ in place of the scope."""
        self.app = app
        self._storage = Storage(store)
        self._keys: Keys | None = None
        self._expires_in, self._lease = expires_in, lease
        self._methods = frozenset(methods)
        self._required = required
        self._transactional = transactional
        self._caller = caller
        self._verify = verify
        self._max_body = max_body
        self._settings = settings or Settings()
        self._loop = LoopThread(lease + _PATIENCE)

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        """Handle one request."""
        if environ["REQUEST_METHOD"] not in self._methods:
            return self.app(environ, start_response)
        # For `commit_sync`, which needs the store for requests without a key, too.
        environ[KEYS], environ[_LOOP] = self._open_keys, self._loop
        sent = environ.get("HTTP_IDEMPOTENCY_KEY")
        try:
            key = parse_key([] if sent is None else [sent])
            if key is None and self._required:
                raise invalid_key_error()
            if key is None:
                fits, body = False, None
            else:
                fits, body = self._read_body(environ)
        except FaultError as error:
            return self._answer(environ, start_response, error.fault)
        if key is None:
            return self.app(environ, start_response)
        if not fits:
            # The key is not echoed: it is not honoured for this request.
            warn_unkeyed(environ["REQUEST_METHOD"], environ.get("PATH_INFO", ""), self._max_body)
            return self.app(environ, start_response)
        start_response = _echo(start_response, str(sent))
        try:
            keys = self._loop.run(self._open_keys())
            claimed = self._loop.run(self._claim(environ, keys, key, body))
        except FaultError as error:
            return self._answer(environ, start_response, error.fault)
        except (StoreError, TimeoutError) as error:
            return self._answer(environ, start_response, store_down_fault(), error)
        if isinstance(claimed, Record):
            if claimed.body is None:
                return self._answer(environ, start_response, not_stored_fault())
            headers = [*claimed.headers, ("idempotency-replayed", "true")]
            return _send(start_response, RawResponse(claimed.status, headers, claimed.body))
        return _Run(self.app, environ, start_response, self._loop, keys, claimed, self._max_body)

    def close(self) -> None:
        """Close the store if this middleware opened it, and end its thread."""
        self._loop.run(self._storage.close())
        self._loop.stop()

    async def _open_keys(self) -> Keys:
        store = await self._storage.get()
        if self._keys is None or self._keys.store is not store:
            self._keys = Keys(store, expires_in=self._expires_in, lease=self._lease)
        return self._keys

    def _answer(
        self,
        environ: Environ,
        start_response: StartResponse,
        fault: Fault,
        cause: BaseException | None = None,
    ) -> Iterable[bytes]:
        response = error_response(
            fault, request_info(environ), self._settings, cause=cause, serve_pages=False
        )
        return _send(start_response, response)

    def _read_body(self, environ: Environ) -> tuple[bool, bytes | None]:
        """Return whether the body is small enough for its key, and the body; None for a body that is streamed."""
        length = str(environ.get("CONTENT_LENGTH") or "")
        if not length.isdigit():
            streamed = "chunked" in environ.get("HTTP_TRANSFER_ENCODING", "").lower()
            return True, None if streamed else b""
        if int(length) > self._max_body:
            if self._required:
                raise FaultError(code="CONTENT_TOO_LARGE", vocabulary="http", status=413)
            return False, None
        body: bytes = environ["wsgi.input"].read(int(length))
        if len(body) < int(length):
            raise FaultError("The request ended early", code="BAD_REQUEST", vocabulary="http", status=400)
        environ["wsgi.input"] = BytesIO(body)
        return True, body

    async def _claim(self, environ: Environ, keys: Keys, key: str, body: bytes | None) -> Claim | Record:
        caller, method = self._caller(environ), environ["REQUEST_METHOD"]
        path = environ.get("SCRIPT_NAME", "") + environ.get("PATH_INFO", "")
        query = environ.get("QUERY_STRING", "")
        transactional = self._transactional

        async def verify(record: Record) -> RawResponse | bool | None:
            request = KeyedRequest(
                key=key,
                caller=caller,
                method=method,
                path=path,
                query=query,
                body=body,
                status=record.status,
            )
            return await run_verify(self._verify, request, self._lease)

        return await keys.claim(
            key_name(caller, key),
            fingerprint(method, path, query.encode("latin-1", "replace"), body),
            transactional=transactional(environ) if callable(transactional) else transactional,
            verify=None if self._verify is None else verify,
        )


def commit_sync(
    environ: Environ, work: Callable[[Transaction], Any], *, status: int = 200
) -> tuple[int, bytes]:
    """Same as `amends.http.idempotency.commit`, below `IdempotentWSGI(transactional=True)`; `request.environ` in Flask."""
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
        self, status: str, headers: list[tuple[str, str]], exc_info: Any = None
    ) -> Callable[[bytes], Any]:
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
        keys, claim, status = self._keys, self._claim, self._status
        headers = kept_headers(self._headers)
        body = bytes(self._copy) if self._size <= self._max_body else None
        then = "keep"
        if status >= 400:
            content_type = next((value for name, value in headers if name.lower() == "content-type"), "")
            then = after_failure(self._environ.get(FAULT), status, content_type, bytes(self._copy))
            if is_rolled_back(claim):
                then = "release"
        if claim.committed:
            self._write(keys.release_lease(claim))
        elif then == "release":
            self._write(keys.release(claim))
        elif then == "doubt":
            self._write(keys.mark_in_doubt(claim, status=status))
        else:
            self._write(keys.complete(claim, status=status, headers=headers, body=body))

    def _fail(self, fault: Fault | None = None) -> None:
        """Store that the request ended without a complete response, unless its outcome is stored."""
        if not self._settled:
            self._write(settle_failure(self._keys, self._claim, fault))

    def _write(self, writing: Any) -> None:
        self._settled = True
        self._renewal.cancel()
        try:
            self._loop.run(log_store_error(writing))
        except TimeoutError:
            LOG.exception("the record of an idempotency key could not be written")


def _echo(start_response: StartResponse, key: str) -> StartResponse:
    """Return a `start_response` that adds the key, as the client sent it."""

    def start_with_key(status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Any:
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
