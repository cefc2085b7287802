"""
`Idempotency-Key` for any ASGI application, on `amends.stores`.

    app = Idempotent(Problems(app), "sqlite:///keys.db")

The first request with a key runs. A repeat is answered with the first response (`Idempotency-Replayed`), with 409 and a
wait while the first is running, and with 422 if its body differs. Every answer carries the key (`Idempotency-Key`), which
tells a client that keys are honoured here.

A failure that had no effect releases the key. If the request failed and may have had its effect, or its process died,
the key is *in doubt*: repeats are answered with EFFECT_UNKNOWN and do not run, until a `verify` hook finds out what
happened. A handler that commits its effect and the key's record in one transaction (`commit`, with `transactional=True`)
is never in doubt: its effect happens once, even if the process dies.

`amends.http.idempotency_wsgi` is the same for WSGI.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Collection, Coroutine
from inspect import isawaitable, iscoroutinefunction
from typing import Any, NamedTuple, TypeVar

import msgspec

from amends.core.enums import Executed
from amends.core.fault import Fault
from amends.durable.keys import key_name
from amends.errors.base import FaultError
from amends.http.asgi import FAULT, App, Message, Receive, Scope, Send, header, request_info, send_response
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
    verified_response,
    warn_unkeyed,
)
from amends.http.idempotency_store import Claim, Keys, Record, Verify
from amends.http.responses import LOG, RawResponse, Settings, error_response
from amends.http.storage import Storage
from amends.stores import Store, StoreError
from amends.stores.contract import Transaction

__all__ = ["Idempotent", "KeyedRequest", "caller_id", "commit"]

T = TypeVar("T")

CLAIM = "amends.claim"
KEYS = "amends.keys"


def caller_id(scope: Scope) -> str:
    """
    Return an id of the caller, made from all headers that carry credentials, the cookies and the TLS client's name.

    Callers do not share keys. Give `Idempotent` a `caller` of your own if credentials change between a request and its
    repeat (signatures, short-lived tokens): otherwise the repeat counts as another caller's.
    """
    tls = (scope.get("extensions") or {}).get("tls") or {}
    headers = ((str(name, "latin-1"), str(value, "latin-1")) for name, value in scope["headers"])
    return caller_of(headers, str(tls.get("client_cert_name") or ""))


class Idempotent:
    """
    ASGI middleware that runs a request with an idempotency key once.

    Put it around `Problems`, which stores the fault of a failed request in the scope.
    """

    def __init__(
        self,
        app: App,
        store: Store | str,
        *,
        expires_in: float = 86400.0,
        lease: float = 30.0,
        methods: Collection[str] = ("POST", "PATCH"),
        required: bool = False,
        transactional: bool | Callable[[Scope], bool] = False,
        caller: Callable[[Scope], str] = caller_id,
        verify: Callable[[KeyedRequest], Any] | None = None,
        max_body: int = 1024 * 1024,
        settings: Settings | None = None,
    ) -> None:
        """
        Args:
            app: the application, wrapped in `Problems`.
            store: an open store, or a URL that is opened at the first request and closed with the lifespan.
            expires_in: seconds until a key is forgotten.
            lease: seconds after which a process that does not renew its lease counts as dead.
            methods: the methods whose keys are honoured.
            required: refuse requests of these methods without a key.
            transactional: whether all effects of a request go through `commit`; a bool, or a function of the scope.
            caller: returns the id of the caller that a key belongs to.
            verify: called with the `KeyedRequest` when a request is repeated whose effect is in doubt. Returns the response
                to send (see `verified_response`), True if the effect happened, False if it did not and the request may
                run, or None if that is not known. A plain function runs in a thread; after `lease` seconds the answer
                counts as None.
            max_body: the largest request body in bytes whose key is honoured, and the largest response body that is
                stored. A larger request runs without its key, with a warning in the log; with `required` it is refused.
            settings: the settings given to `Problems`.

        """
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

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one ASGI connection."""
        if scope["type"] == "lifespan":
            await self._storage.lifespan(self.app, scope, receive, send)
            return
        if scope["type"] != "http" or scope["method"] not in self._methods:
            await self.app(scope, receive, send)
            return
        # `commit` needs the store for requests without a key, too.
        scope[KEYS] = self._open_keys
        values = [value for name, value in scope["headers"] if name.lower() == b"idempotency-key"]
        try:
            key = parse_key([str(value, "latin-1") for value in values])
            if key is None and self._required:
                raise invalid_key_error()
        except FaultError as error:
            await send_response(scope, send, self._error_response(scope, error.fault))
            return
        if key is None:
            await self.app(scope, receive, send)
        else:
            await self._call_with_key(scope, receive, send, key, values[0])

    async def _call_with_key(self, scope: Scope, receive: Receive, send: Send, key: str, sent: bytes) -> None:
        try:
            body = await _read_body(scope, receive, self._max_body)
            if self._required:
                body.check_size()
        except FaultError as error:
            await send_response(scope, send, self._error_response(scope, error.fault))
            return
        if not body.fits:
            # The key is not echoed: it is not honoured for this request.
            warn_unkeyed(scope["method"], scope["path"], self._max_body)
            await self.app(scope, body.receive, send)
            return
        send = _echo(send, sent)
        try:
            keys = await self._open_keys()
            claimed = await self._claim(scope, keys, key, body.content)
        except FaultError as error:
            await send_response(scope, send, self._error_response(scope, error.fault))
            return
        except StoreError as error:
            await send_response(scope, send, self._error_response(scope, store_down_fault(), cause=error))
            return
        if isinstance(claimed, Record):
            await send_response(scope, send, self._replay(scope, claimed))
        else:
            await _Run(scope, send, keys, claimed, self._max_body).run(self.app, body.receive)

    async def _claim(self, scope: Scope, keys: Keys, key: str, body: bytes | None) -> Claim | Record:
        caller = self._caller(scope)
        query = scope.get("query_string", b"")
        transactional = self._transactional

        async def verify(record: Record) -> RawResponse | bool | None:
            request = KeyedRequest(
                key=key,
                caller=caller,
                method=scope["method"],
                path=scope["path"],
                query=str(query, "latin-1"),
                body=body,
                status=record.status,
            )
            return await run_verify(self._verify, request, self._lease)

        hook: Verify | None = None if self._verify is None else verify
        return await keys.claim(
            key_name(caller, key),
            fingerprint(scope["method"], scope["path"], query, body),
            transactional=transactional(scope) if callable(transactional) else transactional,
            verify=hook,
        )

    async def close(self) -> None:
        """Close the store if this middleware opened it. Needed only with servers that do not send lifespan events."""
        await self._storage.close()

    async def _open_keys(self) -> Keys:
        store = await self._storage.get()
        if self._keys is None or self._keys.store is not store:
            self._keys = Keys(store, expires_in=self._expires_in, lease=self._lease)
        return self._keys

    def _error_response(self, scope: Scope, fault: Fault, cause: BaseException | None = None) -> RawResponse:
        return error_response(fault, request_info(scope), self._settings, cause=cause, serve_pages=False)

    def _replay(self, scope: Scope, record: Record) -> RawResponse:
        """Return the stored response of the first request."""
        if record.body is None:
            return self._error_response(scope, not_stored_fault())
        headers = [*record.headers, ("idempotency-replayed", "true")]
        return RawResponse(record.status, headers, record.body)


class _Run:
    """
    Runs the first request with a key.

    A response that comes in one piece is stored before it is sent. Of a streamed response every piece is sent at once, and
    the response is stored before its last piece is sent.
    """

    def __init__(self, scope: Scope, send: Send, keys: Keys, claim: Claim, max_body: int) -> None:
        self._scope, self._send = scope, send
        self._keys, self._claim = keys, claim
        self._max_body = max_body
        self._start: Message | None = None
        self._around = sys.exception()
        self._fault: Fault | None = None
        self._started = self._settled = False
        self._length: int | None = None
        self._copy = bytearray()
        self._size = 0

    async def run(self, app: App, receive: Receive) -> None:
        keys, claim = self._keys, self._claim
        self._scope[CLAIM] = claim
        renewal = asyncio.ensure_future(renew_lease(keys, claim))
        try:
            await app(self._scope, receive, self._send_message)
            if not self._settled:
                # The application ended without a complete response.
                await self._settle_failure()
        except BaseException as exc:
            if not self._settled:
                await self._settle_failure(fault_of_raised(exc, self._scope["method"]))
            raise
        finally:
            renewal.cancel()

    async def _send_message(self, message: Message) -> None:
        kind = message["type"]
        if kind == "http.response.start":
            self._start = message
            if message["status"] >= 500 and FAULT not in self._scope:
                # Frameworks send their plain 500 while they handle the exception, which a layer around may answer.
                exc = sys.exception()
                self._fault = fault_of_raised(None if exc is self._around else exc, self._scope["method"])
            self._length = _content_length(message.get("headers", ()))
            return
        if kind == "http.response.body" and not self._settled:
            await self._take(message)
        if self._start is not None and not self._started:
            self._started = True
            await self._send(self._start)
        await self._send(message)

    async def _take(self, message: Message) -> None:
        """Copy a piece of the body, and store the response if it is the last one."""
        piece = message.get("body", b"")
        self._size += len(piece)
        if self._size <= self._max_body:
            self._copy += piece
        whole = self._length is not None and self._size >= self._length
        if whole or not message.get("more_body", False):
            self._settled = True
            await self._settle()

    async def _settle(self) -> None:
        """
        Store the outcome of a request.

        If the store fails, the error is logged and the response is still sent; the key is then in doubt.
        """
        keys, claim, start = self._keys, self._claim, self._start
        assert start is not None
        status = start["status"]
        if claim.committed:
            return await log_store_error(keys.release_lease(claim))
        if status >= 400:
            content_type = header(start.get("headers", ()), b"content-type") or ""
            fault = self._scope.get(FAULT) or self._fault
            then = after_failure(fault, status, content_type, bytes(self._copy))
            if is_rolled_back(claim):
                then = "release"
            elif then == "keep" and self._fault is not None and FAULT not in self._scope:
                then = "doubt"  # what was sent is the framework's plain 500, and not the answer of the layer around
            if then == "release":
                return await log_store_error(keys.release(claim))
            if then == "doubt":
                return await log_store_error(keys.mark_in_doubt(claim, status=status))
        headers = kept_headers(
            (str(name, "latin-1"), str(value, "latin-1")) for name, value in start.get("headers", ())
        )
        body = bytes(self._copy) if self._size <= self._max_body else None
        return await log_store_error(keys.complete(claim, status=status, headers=headers, body=body))

    async def _settle_failure(self, fault: Fault | None = None) -> None:
        """Store the outcome of a request that ended without a complete response."""
        await log_store_error(settle_failure(self._keys, self._claim, fault))


async def commit(scope: Scope, work: Callable[[Transaction], T], *, status: int = 200) -> tuple[int, bytes]:
    """
    Run `work` and store its result as the response of this request's key, in one transaction (SQLite and memory).

    Args:
        scope: the scope of the request (`request.scope`), below `Idempotent(transactional=True)`.
        work: a plain function that takes the transaction; its result becomes the JSON body.
        status: the status of the response.

    Returns:
        The status and the body to answer with.

    Raises:
        FaultError: the lease of this process expired and another one took over; nothing was changed.

    """
    keys: Keys = await scope[KEYS]()
    claim: Claim | None = scope.get(CLAIM)

    def work_and_store(tx: Transaction) -> bytes:
        body = msgspec.json.encode(work(tx))
        if claim is not None:
            headers = (("content-type", "application/json"),)
            keys.write(tx, claim, status=status, headers=headers, body=body)
        return body

    body = await keys.store.transaction(work_and_store)
    if claim is not None:
        claim.committed = True
    return status, body


def settle_failure(keys: Keys, claim: Claim, fault: Fault | None = None) -> Coroutine[Any, Any, None]:
    """Store the outcome of a request that ended without a complete response; `fault` is that of a typed error."""
    if claim.committed:
        return keys.release_lease(claim)
    without_effect = fault is not None and fault.executed is Executed.NO
    return keys.release(claim) if without_effect or is_rolled_back(claim) else keys.mark_in_doubt(claim)


def is_rolled_back(claim: Claim) -> bool:
    """Return whether all effects of the request were in a transaction that was not committed."""
    return claim.record.transactional and not claim.committed


async def run_verify(
    verify: Callable[[KeyedRequest], Any] | None, request: KeyedRequest, seconds: float
) -> RawResponse | bool | None:
    """Call a `verify` hook. A hook that fails or takes too long is logged and has found out nothing."""
    if verify is None:
        return None
    try:
        async with asyncio.timeout(seconds):
            found = (
                verify(request) if iscoroutinefunction(verify) else await asyncio.to_thread(verify, request)
            )
            return verified_response(await found if isawaitable(found) else found)
    except Exception:  # noqa: BLE001 - a hook of the application may raise anything
        LOG.exception("the verify hook failed; the effect of the request stays unknown")
        return None


async def log_store_error(writing: Awaitable[None]) -> None:
    """Await a write and log its failure; the lease then expires by itself."""
    try:
        await writing
    except StoreError:
        LOG.exception("the record of an idempotency key could not be written")


async def renew_lease(keys: Keys, claim: Claim) -> None:
    """Renew the lease of a running request until the task is cancelled or another process has the lease."""
    while True:
        await asyncio.sleep(keys.lease / 3)
        try:
            await keys.renew(claim)
        except StoreError:
            return


def _echo(send: Send, key: bytes) -> Send:
    """Return a `send` that adds the key, as the client sent it, to the response."""

    async def send_with_key(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", ()), (b"idempotency-key", key)]}
        await send(message)

    return send_with_key


class _Body(NamedTuple):
    content: bytes | None
    """None for a body that is streamed, or that does not fit."""
    receive: Receive
    """Delivers what was read, then the connection's further messages."""
    fits: bool = True

    def check_size(self) -> None:
        """Refuse a body that does not fit."""
        if not self.fits:
            raise FaultError(code="CONTENT_TOO_LARGE", vocabulary="http", status=413)


async def _read_body(scope: Scope, receive: Receive, limit: int) -> _Body:
    """
    Read the request's body. A streamed body, whose length is not declared, is left to the application.

    Raises:
        FaultError: the client disconnected.

    """
    length = _content_length(scope["headers"])
    if length is not None and length > limit:
        return _Body(None, receive, fits=False)
    messages: list[Message] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise FaultError("The request ended early", code="BAD_REQUEST", vocabulary="http", status=400)
        messages.append(message)
        size += len(message.get("body", b""))
        more = message.get("more_body", False)
        if size > limit:
            return _Body(None, _replay_messages(messages, receive), fits=False)
        if not more or length is None:
            content = None if more else b"".join(each.get("body", b"") for each in messages)
            return _Body(content, _replay_messages(messages, receive))


def _replay_messages(messages: list[Message], receive: Receive) -> Receive:
    left = list(messages)

    async def replay() -> Message:
        return left.pop(0) if left else await receive()

    return replay


def _content_length(headers: Any) -> int | None:
    value = header(headers, b"content-length")
    return (
        int(value) if value is not None and value.isascii() and value.isdigit() and len(value) < 19 else None
    )
