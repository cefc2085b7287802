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
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import msgspec

from amends.core.fault import Fault
from amends.http.asgi import ECHO, FAULT, header, request_info, send_response
from amends.http.asgi_types import App, Message, Receive, Scope, Send
from amends.http.handled import handled_exception
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
    too_large_fault,
    warn_unkeyed,
)
from amends.http.idempotency_store import Claim, Keys, Record
from amends.stores.contract import Transaction

__all__ = ["Idempotent", "KeyedRequest", "caller_id", "commit"]

T = TypeVar("T")


def caller_id(scope: Scope) -> str:
    """
    Return an id of the caller, made from all headers that carry credentials, the cookies and the TLS client's name.

    Callers do not share keys. Give `Idempotent` a `caller` of your own if credentials change between a request and its
    repeat (signatures, short-lived tokens): otherwise the repeat counts as another caller's.

    >>> alice, bob = ({"headers": [(b"authorization", token)]} for token in (b"Bearer a", b"Bearer b"))
    >>> caller_id(alice) == caller_id(bob)
    False
    """
    tls = (scope.get("extensions") or {}).get("tls") or {}
    headers = ((str(name, "latin-1"), str(value, "latin-1")) for name, value in scope["headers"])
    return caller_of(headers, str(tls.get("client_cert_name") or ""))


class Idempotent(KeyedMiddleware):
    """
    ASGI middleware that runs a request with an idempotency key once.

    Put it around `Problems`, which stores the fault of a failed request in the scope. `KeyedMiddleware` has the options.

        app.add_middleware(Idempotent, store="sqlite:///keys.db")
    """

    _default_caller = staticmethod(caller_id)

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
        key = self._key([str(value, "latin-1") for value in values])
        if isinstance(key, Refused):
            await self._refuse(scope, send, key)
        elif key is None:
            await self.app(scope, receive, send)
        else:
            await self._call_with_key(scope, receive, send, key, values[0])

    async def _call_with_key(self, scope: Scope, receive: Receive, send: Send, key: str, sent: bytes) -> None:
        body = await _read_body(scope, receive, self._max_body)
        if body is None:
            await self._refuse(scope, send, Refused(ended_early_fault()))
            return
        if not body.fits:
            if self._required:
                await self._refuse(scope, send, Refused(too_large_fault()))
                return
            # The key is not echoed: it is not honoured for this request.
            warn_unkeyed(scope["method"], scope["path"], self._max_body)
            await self.app(scope, body.receive, send)
            return
        request = KeyedRequest(
            key=key,
            caller="",
            method=scope["method"],
            path=scope["path"],
            query=str(scope.get("query_string", b""), "latin-1"),
            body=body.content,
            status=0,
        )
        claimed = await self._claim(request, scope)
        if isinstance(claimed, Refused):
            await self._refuse(scope, _echo(send, sent), claimed)
        elif isinstance(claimed, Record):
            await send_response(scope, _echo(send, sent), replayed(claimed))
        else:
            try:
                await _Run(scope, _echo(send, sent), *claimed, self._max_body).run(self.app, body.receive)
            except BaseException:
                scope[ECHO] = sent
                raise

    async def close(self) -> None:
        """Close the store if this middleware opened it. Needed only with servers that do not send lifespan events."""
        await self._storage.close()

    async def _refuse(self, scope: Scope, send: Send, refused: Refused) -> None:
        await send_response(scope, send, self._response(request_info(scope), refused))


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
        self._around = handled_exception()
        self._fault: Fault | None = None
        self._started = self._settled = self._plain = False
        self._length: int | None = None
        self._copy = bytearray()
        self._size = 0

    async def run(self, app: App, receive: Receive) -> None:
        keys, claim = self._keys, self._claim
        self._scope[CLAIM] = claim
        extensions = self._scope.get("extensions")
        if extensions:
            # The application sends bytes, which can be stored, and does not let the server send a file.
            self._scope["extensions"] = {
                name: value for name, value in extensions.items() if name not in _FILES
            }
        renewal = asyncio.ensure_future(renew_lease(keys, claim))
        try:
            await app(self._scope, receive, self._send_message)
            if self._plain:
                await self._settle()
            elif not self._settled:
                # The application ended without a complete response.
                await self._settle_failure()
        except BaseException as exc:
            fault = fault_of_raised(exc, self._scope["method"])
            if self._plain and fault is None:
                await self._settle()
            elif not self._settled:
                await self._settle_failure(fault)
            raise
        finally:
            renewal.cancel()

    async def _send_message(self, message: Message) -> None:
        kind = message["type"]
        if kind == "http.response.start":
            self._start = message
            if message["status"] >= 500 and FAULT not in self._scope:
                # Frameworks send their plain 500 while they handle the exception, which a layer around may answer.
                self._fault = fault_of_raised(handled_exception(self._around), self._scope["method"])
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
            if self._may_be_raised():
                self._plain = True
                return
            self._settled = True
            await self._settle()

    def _may_be_raised(self) -> bool:
        """
        Return whether the exception behind a 500 may still be raised, which says more about the effect.

        Middleware that sends from another task, such as Starlette's BaseHTTPMiddleware, hides the exception that the
        framework below is handling.
        """
        assert self._start is not None
        return self._start["status"] == 500 and self._fault is None and FAULT not in self._scope

    async def _settle(self) -> None:
        """Store the outcome of a request."""
        start = self._start
        assert start is not None
        fault = self._scope.get(FAULT)
        answered = Answered(
            status=start["status"],
            headers=[
                (str(name, "latin-1"), str(value, "latin-1")) for name, value in start.get("headers", ())
            ],
            body=bytes(self._copy),
            whole=self._size <= self._max_body,
            fault=fault or self._fault,
            rewritten=fault is None and self._fault is not None,
        )
        await write_outcome(settle(self._keys, self._claim, answered))

    async def _settle_failure(self, fault: Fault | None = None) -> None:
        """Store the outcome of a request that ended without a complete response."""
        await write_outcome(settle_failure(self._keys, self._claim, fault))


_FILES = frozenset({"http.response.pathsend", "http.response.zerocopysend"})


async def commit(scope: Scope, work: Callable[[Transaction], T], *, status: int = 200) -> tuple[int, bytes]:
    """
    Run `work` and store its result as the response of this request's key, in one transaction (SQLite and memory).

    In Starlette and FastAPI, `amends.bindings.starlette.once` is shorter.

        def work(tx: Transaction) -> object:
            tx.sql("INSERT INTO orders VALUES ('book')")
            return {"placed": "book"}

        status, body = await commit(request.scope, work, status=201)

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


async def _read_body(scope: Scope, receive: Receive, limit: int) -> _Body | None:
    """
    Read the request's body. A streamed body, whose length is not declared, is left to the application.

    Returns None if the client disconnected.
    """
    length = _content_length(scope["headers"])
    if length is not None and length > limit:
        return _Body(None, receive, fits=False)
    messages: list[Message] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return None
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
