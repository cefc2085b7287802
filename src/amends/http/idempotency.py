"""
`Idempotency-Key` for any ASGI application, on `amends.stores`.

    app = Idempotent(Problems(app), "sqlite:///keys.db")

The first request with a key runs. A repeat is answered with the first response (`Idempotency-Replayed`), with 409 and a
wait while the first is running, and with 422 if its body differs. If the first request's process died, or the request
failed and may have had its effect, the key is *in doubt*: repeats are answered with EFFECT_UNKNOWN and never run again.
A failure that certainly had no effect releases the key.

A handler that commits its effect and the key's record in one transaction (`commit`, with `transactional=True`) is never
in doubt: its effect happens once, even if the process dies.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection
from hashlib import sha256
from typing import TypeVar

import msgspec

from amends.core.enums import Executed
from amends.core.fault import Fault
from amends.core.vocabularies.http import VOCABULARY
from amends.errors.base import FaultError
from amends.http.asgi import FAULT, App, Message, Receive, Scope, Send, header, request_info, send_response
from amends.http.idempotency_store import Claim, Keys, Record, storage_key
from amends.http.responses import LOG, RawResponse, Settings, error_response
from amends.http.storage import Storage
from amends.stores import Store, StoreError
from amends.stores.contract import Transaction

__all__ = ["Idempotent", "caller_id", "commit"]

T = TypeVar("T")

CLAIM = "amends.claim"
_KEYS = "amends.keys"
_NOT_REPLAYED = frozenset({"date", "server", "connection", "transfer-encoding", "set-cookie"})
"""Headers that belong to one response and are not stored with it."""


def caller_id(scope: Scope) -> str:
    """Return an id of the caller, made from the request's credentials. Callers do not share keys."""
    return sha256((header(scope["headers"], b"authorization") or "").encode()).hexdigest()


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
            max_body: the largest request body in bytes, and the largest response body that is stored.
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
        try:
            scope[_KEYS] = keys = await self._open_keys()
            key = _parse_key(header(scope["headers"], b"idempotency-key"))
            if key is None and not self._required:
                await self.app(scope, receive, send)
                return
            if not key:
                raise _invalid_key_error()
            body = await _read_body(receive, self._max_body)
            transactional = self._transactional
            claimed = await keys.claim(
                storage_key(self._caller(scope), key),
                _fingerprint(scope, body),
                transactional=transactional(scope) if callable(transactional) else transactional,
            )
        except FaultError as error:
            await send_response(scope, send, self._error_response(scope, error.fault))
            return
        except StoreError as error:
            fault = FaultError(code="SERVICE_UNAVAILABLE", vocabulary="http", executed=Executed.NO).fault
            await send_response(scope, send, self._error_response(scope, fault, cause=error))
            return
        if isinstance(claimed, Record):
            await send_response(scope, send, self._replay(scope, claimed))
        else:
            await self._run(scope, _replay_body(body, receive), send, keys, claimed)

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
            fault = Fault(
                code="CONFLICT",
                vocabulary="http",
                status=409,
                message="This request succeeded before, but its response was too large to be stored",
                suggestions=("Read the resource that it created instead of sending the request again",),
            )
            return self._error_response(scope, fault)
        headers = [*record.headers, ("idempotency-replayed", "true")]
        return RawResponse(record.status, headers, record.body)

    async def _run(self, scope: Scope, receive: Receive, send: Send, keys: Keys, claim: Claim) -> None:
        """Run the first request with a key. Its response is stored before it is sent."""
        scope[CLAIM] = claim
        start: Message | None = None
        held = bytearray()
        streaming = incomplete = False

        async def store_and_send(message: Message) -> None:
            nonlocal start, streaming, incomplete
            if streaming:
                await send(message)
            elif message["type"] == "http.response.start":
                start = message
            elif message["type"] == "http.response.body":
                held.extend(message.get("body", b""))
                more = message.get("more_body", False)
                if more and len(held) <= self._max_body:
                    return
                streaming, incomplete = True, more
                assert start is not None
                if not more:
                    body = bytes(held) if len(held) <= self._max_body else None
                    await self._settle(scope, keys, claim, start, body)
                await send(start)
                await send({**message, "body": bytes(held)})

        renewal = asyncio.ensure_future(_renew_lease(keys, claim))
        try:
            await self.app(scope, receive, store_and_send)
            if incomplete and start is not None:
                await self._settle(scope, keys, claim, start, None)
        except (Exception, asyncio.CancelledError):
            if claim.committed:
                await _log_store_error(keys.release_lease(claim))
            elif _is_rolled_back(claim):
                await _log_store_error(keys.release(claim))
            else:
                await _log_store_error(keys.mark_in_doubt(claim))
            raise
        finally:
            renewal.cancel()

    async def _settle(
        self, scope: Scope, keys: Keys, claim: Claim, start: Message, body: bytes | None
    ) -> None:
        """
        Store the outcome of a request.

        If the store fails, the error is logged and the response is still sent; the key is then in doubt.
        """
        status = start["status"]
        if claim.committed:
            return await _log_store_error(keys.release_lease(claim))
        if status >= 400:
            if _is_rolled_back(claim) or _had_no_effect(scope, status):
                return await _log_store_error(keys.release(claim))
            if _is_retryable(scope, status):
                return await _log_store_error(keys.mark_in_doubt(claim))
        headers = tuple(
            (str(name, "latin-1"), str(value, "latin-1"))
            for name, value in start.get("headers", ())
            if str(name, "latin-1").lower() not in _NOT_REPLAYED
        )
        return await _log_store_error(keys.complete(claim, status, headers, body))


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
    keys: Keys = scope[_KEYS]
    claim: Claim | None = scope.get(CLAIM)

    def work_and_store(tx: Transaction) -> bytes:
        body = msgspec.json.encode(work(tx))
        if claim is not None:
            keys.write(tx, claim, status, (("content-type", "application/json"),), body)
        return body

    body = await keys.store.transaction(work_and_store)
    if claim is not None:
        claim.committed = True
    return status, body


def _is_rolled_back(claim: Claim) -> bool:
    """Return whether all effects of the request were in a transaction that was not committed."""
    return claim.record.transactional and not claim.committed


def _had_no_effect(scope: Scope, status: int) -> bool:
    """Return whether a failed request certainly had no effect and may succeed later."""
    fault: Fault | None = scope.get(FAULT)
    facts = fault or VOCABULARY.status_row(status)
    return facts.executed is Executed.NO and _is_retryable(scope, status)


def _is_retryable(scope: Scope, status: int) -> bool:
    fault: Fault | None = scope.get(FAULT)
    if fault is not None:
        return fault.retryable
    return VOCABULARY.status_row(status).recovery in {"transient", "uncertain"}


async def _log_store_error(writing: Awaitable[None]) -> None:
    """Await a write and log its failure; the lease then expires by itself."""
    try:
        await writing
    except StoreError:
        LOG.exception("the record of an idempotency key could not be written")


async def _renew_lease(keys: Keys, claim: Claim) -> None:
    while True:
        await asyncio.sleep(keys.lease / 3)
        try:
            await keys.renew(claim)
        except StoreError:
            return


def _parse_key(value: str | None) -> str | None:
    """Return the key without the quotes of a structured field; "" for an invalid one, None without a header."""
    if value is None:
        return None
    key = value.strip()
    if len(key) > 1 and key[0] == key[-1] == '"':
        key = key[1:-1]
    return key if 0 < len(key) <= 255 and key.isascii() and key.isprintable() else ""


def _invalid_key_error() -> FaultError:
    return FaultError(
        "This request needs an Idempotency-Key of 1 to 255 visible characters",
        code="BAD_REQUEST",
        vocabulary="http",
        status=400,
        field="Idempotency-Key",
    )


async def _read_body(receive: Receive, limit: int) -> bytes:
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise FaultError("The request ended early", code="BAD_REQUEST", vocabulary="http", status=400)
        body += message.get("body", b"")
        if len(body) > limit:
            raise FaultError(code="CONTENT_TOO_LARGE", vocabulary="http", status=413)
        if not message.get("more_body", False):
            return bytes(body)


def _replay_body(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that delivers the body that was read, then the connection's further messages."""
    delivered = False

    async def replay() -> Message:
        nonlocal delivered
        if delivered:
            return await receive()
        delivered = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay


def _fingerprint(scope: Scope, body: bytes) -> str:
    """Return a hash of the method, path, query and body."""
    digest = sha256()
    for part in (scope["method"].encode(), scope["path"].encode(), scope.get("query_string", b""), body):
        digest.update(b"%d:" % len(part))
        digest.update(part)
    return digest.hexdigest()
