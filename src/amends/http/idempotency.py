"""
`Idempotency-Key` for any ASGI application, on `amends.stores`.

    app = Idempotent(Problems(app), "sqlite:///keys.db")

The first request with a key runs; the same again is answered with what was answered before (`Idempotency-Replayed`);
while it runs, 409 with a wait; another body under the same key, 422. A key whose request died in the middle, or failed
so that nobody knows whether it had its effect, is in doubt and answers EFFECT_UNKNOWN: verify, never rerun. A failure
that surely had no effect frees the key.

Work that commits its effect and the key's record in one transaction (`commit`, with `transactional=True`) is never in
doubt: it happens once, whenever the process dies.
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
from amends.http.asgi import FAULT, App, Message, Receive, Scope, Send, asked, header, reply
from amends.http.idempotency_store import Claim, Keys, Record, key_of
from amends.http.responses import LOG, Answer, Settings, answer
from amends.http.storage import Storage
from amends.stores import Store, StoreError
from amends.stores.contract import Transaction

__all__ = ["Idempotent", "caller_of", "commit"]

T = TypeVar("T")

CLAIM = "amends.claim"
_KEYS = "amends.keys"
_OWN = frozenset({"date", "server", "connection", "transfer-encoding", "set-cookie"})
"""Headers of one response that are not another's."""


def caller_of(scope: Scope) -> str:
    """Whose key it is: whoever has the same credentials. Keys of strangers never meet."""
    return sha256((header(scope["headers"], b"authorization") or "").encode()).hexdigest()


class Idempotent:
    """The middleware. Put it around `Problems`, which tells it what failed and how."""

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
        caller: Callable[[Scope], str] = caller_of,
        max_body: int = 1024 * 1024,
        settings: Settings | None = None,
    ) -> None:
        """
        Args:
            app: the application, `Problems` around it.
            store: an open store, or the URL of one that is opened at the first request and closed at the lifespan's end.
            expires_in: seconds a key is remembered.
            lease: seconds after which a process that no longer renews its hold counts as dead.
            methods: those whose keys are honoured.
            required: refuse such a request without a key.
            transactional: every effect of these requests is made through `commit`; a predicate on the scope, or all.
            caller: whose key it is.
            max_body: bytes of a request's body, and of a response's that is kept.
            settings: those of `Problems`.

        """
        self.app = app
        self._storage = Storage(store)
        self._keys: Keys | None = None
        self._expires_in, self._lease = expires_in, lease
        self._methods = frozenset(methods)
        self._required = required
        self._transactional = transactional
        self._caller = caller
        self._max = max_body
        self._settings = settings or Settings()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One connection."""
        if scope["type"] == "lifespan":
            await self._storage.lifespan(self.app, scope, receive, send)
            return
        if scope["type"] != "http" or scope["method"] not in self._methods:
            await self.app(scope, receive, send)
            return
        try:
            scope[_KEYS] = keys = await self._opened()
            given = _given(header(scope["headers"], b"idempotency-key"))
            if given is None and not self._required:
                await self.app(scope, receive, send)
                return
            if not given:
                raise _refused("This request needs an Idempotency-Key of 1 to 255 visible characters")
            body = await _body(receive, self._max)
            name = key_of(self._caller(scope), given)
            declared = self._transactional
            found = await keys.claim(
                name,
                _fingerprint(scope, body),
                transactional=declared(scope) if callable(declared) else declared,
            )
        except FaultError as error:
            await reply(scope, send, self._told(scope, error.fault))
            return
        except StoreError as error:
            unsent = FaultError(code="SERVICE_UNAVAILABLE", vocabulary="http", executed=Executed.NO)
            await reply(scope, send, self._told(scope, unsent.fault, cause=error))
            return
        if isinstance(found, Record):
            await reply(scope, send, self._replayed(scope, found))
        else:
            await self._run(scope, _again(body, receive), send, keys, found)

    async def close(self) -> None:
        """Close the store, if it was opened here: for servers without a lifespan."""
        await self._storage.close()

    async def _opened(self) -> Keys:
        store = await self._storage.get()
        if self._keys is None or self._keys.store is not store:
            self._keys = Keys(store, expires_in=self._expires_in, lease=self._lease)
        return self._keys

    def _told(self, scope: Scope, fault: Fault, cause: BaseException | None = None) -> Answer:
        return answer(fault, asked(scope), self._settings, cause=cause, documented=False)

    def _replayed(self, scope: Scope, record: Record) -> Answer:
        """What was answered before."""
        if record.body is None:
            fault = Fault(
                code="CONFLICT",
                vocabulary="http",
                status=409,
                message="This request was carried out; its response was too large to be kept",
                suggestions=("Read what it made, instead of sending it again",),
            )
            return self._told(scope, fault)
        headers = [*record.headers, ("idempotency-replayed", "true")]
        return Answer(record.status, headers, record.body)

    async def _run(self, scope: Scope, receive: Receive, send: Send, keys: Keys, claim: Claim) -> None:
        """The first request with this key: its response is kept before it is sent."""
        scope[CLAIM] = claim
        start: Message | None = None
        held = bytearray()
        passing = cut = False

        async def kept(message: Message) -> None:
            nonlocal start, passing, cut
            if passing:
                await send(message)
            elif message["type"] == "http.response.start":
                start = message
            elif message["type"] == "http.response.body":
                held.extend(message.get("body", b""))
                more = message.get("more_body", False)
                if more and len(held) <= self._max:
                    return
                passing, cut = True, more
                assert start is not None
                if not more:
                    whole = bytes(held) if len(held) <= self._max else None
                    await self._settle(scope, keys, claim, start, whole)
                await send(start)
                await send({**message, "body": bytes(held)})

        renewing = asyncio.ensure_future(_renewed(keys, claim))
        try:
            await self.app(scope, receive, kept)
            if cut and start is not None:
                await self._settle(scope, keys, claim, start, None)
        except (Exception, asyncio.CancelledError):
            if claim.committed:
                await _quietly(keys.let_go(claim))
            else:
                await _quietly(keys.release(claim) if _untouched(claim) else keys.doubt(claim))
            raise
        finally:
            renewing.cancel()

    async def _settle(
        self, scope: Scope, keys: Keys, claim: Claim, start: Message, body: bytes | None
    ) -> None:
        """Write down how it ended. A store that fails now leaves the key in doubt, and the response is sent anyway."""
        if claim.committed:
            return await _quietly(keys.let_go(claim))
        if start["status"] >= 400:
            if _untouched(claim) or _harmless(scope, start["status"]):
                return await _quietly(keys.release(claim))
            if _retryable(scope, start["status"]):
                return await _quietly(keys.doubt(claim))
        headers = tuple(
            (str(name, "latin-1"), str(value, "latin-1"))
            for name, value in start.get("headers", ())
            if str(name, "latin-1").lower() not in _OWN
        )
        return await _quietly(keys.done(claim, start["status"], headers, body))


async def commit(scope: Scope, work: Callable[[Transaction], T], *, status: int = 200) -> tuple[int, bytes]:
    """
    Do `work` and keep its result as the response of this request's key, in one transaction (SQLite and memory).

    Args:
        scope: the request's (`request.scope`), below `Idempotent(transactional=True)`.
        work: a plain function of the transaction; what it returns becomes the JSON body.
        status: the response's.

    Returns:
        The status and the body to answer with.

    Raises:
        FaultError: this process was given up as dead and somebody else does the work; nothing was changed.

    """
    keys: Keys = scope[_KEYS]
    claim: Claim | None = scope.get(CLAIM)

    def both(tx: Transaction) -> bytes:
        body = msgspec.json.encode(work(tx))
        if claim is not None:
            keys.write(tx, claim, status, (("content-type", "application/json"),), body)
        return body

    body = await keys.store.transaction(both)
    if claim is not None:
        claim.committed = True
    return status, body


def _untouched(claim: Claim) -> bool:
    """All of its effects were to be committed together, and were not."""
    return claim.record.transactional and not claim.committed


def _harmless(scope: Scope, status: int) -> bool:
    """A failure that surely had no effect and may succeed later."""
    fault: Fault | None = scope.get(FAULT)
    facts = fault or VOCABULARY.status_row(status)
    return facts.executed is Executed.NO and _retryable(scope, status)


def _retryable(scope: Scope, status: int) -> bool:
    fault: Fault | None = scope.get(FAULT)
    if fault is not None:
        return fault.retryable
    return VOCABULARY.status_row(status).recovery in {"transient", "uncertain"}


async def _quietly(writing: Awaitable[None]) -> None:
    """A record that cannot be written is the operator's business; the lease ends by itself."""
    try:
        await writing
    except StoreError:
        LOG.exception("the record of an idempotency key could not be written")


async def _renewed(keys: Keys, claim: Claim) -> None:
    while True:
        await asyncio.sleep(keys.lease / 3)
        try:
            await keys.renew(claim)
        except StoreError:
            return


def _given(value: str | None) -> str | None:
    """The key; "" for one that is none. A structured field's quotes are not part of it."""
    if value is None:
        return None
    key = value.strip()
    if len(key) > 1 and key[0] == key[-1] == '"':
        key = key[1:-1]
    return key if 0 < len(key) <= 255 and key.isascii() and key.isprintable() else ""


def _refused(message: str) -> FaultError:
    return FaultError(message, code="BAD_REQUEST", vocabulary="http", status=400, field="Idempotency-Key")


async def _body(receive: Receive, most: int) -> bytes:
    found = bytearray()
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise FaultError("The request ended early", code="BAD_REQUEST", vocabulary="http", status=400)
        found += message.get("body", b"")
        if len(found) > most:
            raise FaultError(code="CONTENT_TOO_LARGE", vocabulary="http", status=413)
        if not message.get("more_body", False):
            return bytes(found)


def _again(body: bytes, receive: Receive) -> Receive:
    """The body once more, then whatever the connection says."""
    given = False

    async def again() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


def _fingerprint(scope: Scope, body: bytes) -> str:
    """Of everything that makes two requests the same."""
    seen = sha256()
    for part in (scope["method"].encode(), scope["path"].encode(), scope.get("query_string", b""), body):
        seen.update(b"%d:" % len(part))
        seen.update(part)
    return seen.hexdigest()
