"""
Requests that are cut short: the client went away, or its time is over (P11).

    app = Cancellable(Problems(app), "sqlite:///operations.db")

The handler is cancelled, what it had declared (`amends.http.intent`) is recorded with the state it was in, and the
status resource tells what became of it: `GET /operations/{id}`, where the id is the request's `Idempotency-Key`, or the
trace id of its `traceparent`. A request whose `Request-Timeout` (seconds, our header) is over is answered 408 with the
intent; one whose client is gone is only recorded. A handler that goes on regardless is recorded when it ends; one that
runs in a thread cannot be stopped, and its outcome is unknown.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from inspect import iscoroutinefunction, isfunction, ismethod
from math import isfinite
from typing import Any, Literal
from urllib.parse import quote, unquote

import msgspec

from amends.core.fault import Fault
from amends.http.asgi import App, Message, Receive, Scope, Send, asked, header, reply
from amends.http.idempotency import caller_of
from amends.http.idempotency_store import key_of
from amends.http.intent import CURRENT, Intent
from amends.http.responses import LOG, Answer, Settings, answer, plain_path
from amends.http.storage import Storage
from amends.serving.tracing import trace_id
from amends.stores import Store, StoreError, Table

__all__ = ["Cancellable", "Outcome"]

TABLE = "amends.http.operations"


class Outcome(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What became of a request that was cut short."""

    id: str
    outcome: Literal["running", "finished", "cancelled", "failed", "unknown"]
    """Still at work; done in spite of it; stopped; ended by an exception; it ran in a thread, which nobody can stop."""
    intent: dict[str, Any]
    trace_id: str
    after_ms: int
    status: int | None = None
    """The status it would have been answered with, where it finished."""


class Cancellable:
    """The middleware. Put it around all others."""

    def __init__(
        self,
        app: App,
        store: Store | str,
        *,
        operations: str = "/operations",
        grace: float = 5.0,
        longest: float = 3600.0,
        expires_in: float = 86400.0,
        caller: Callable[[Scope], str] = caller_of,
        settings: Settings | None = None,
    ) -> None:
        """
        Args:
            app: the application, `Problems` around it.
            store: an open store, or the URL of one that is opened at the first request and closed at the lifespan's end.
            operations: where the status resource is. Ids it does not know are left to the application.
            grace: seconds a cancelled handler has for cleaning up before the answer is sent without waiting for it.
            longest: no `Request-Timeout` counts for more.
            expires_in: seconds an outcome is remembered.
            caller: whose operation it is; others do not see it.
            settings: those of `Problems`.

        """
        self.app = app
        self._storage = Storage(store)
        self._operations = operations.rstrip("/")
        self._grace, self._longest, self._expires_in = grace, longest, expires_in
        self._caller = caller
        self._settings = settings or Settings()
        self._later: set[asyncio.Task[None]] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One connection."""
        if scope["type"] == "lifespan":
            await self._storage.lifespan(self.app, scope, receive, send)
            return
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        if scope["method"] in {"GET", "HEAD"} and scope["path"].startswith(f"{self._operations}/"):
            try:
                found = await self._found(scope)
            except StoreError as error:
                away = Fault(code="SERVICE_UNAVAILABLE", vocabulary="http", status=503)
                found = answer(away, asked(scope), self._settings, cause=error, documented=False)
            if found is not None:
                await reply(scope, send, found)
                return
        await _Run(self, scope, receive, send).through()

    async def close(self) -> None:
        """Close the store, if it was opened here: for servers without a lifespan."""
        await self._storage.close()

    async def table(self) -> Table:
        """Where outcomes are kept."""
        return (await self._storage.get()).table(TABLE)

    async def _found(self, scope: Scope) -> Answer | None:
        id = unquote(scope["path"][len(self._operations) + 1 :])
        row = await (await self.table()).get(key_of(self._caller(scope), id))
        if row is None:
            return None
        headers = [("content-type", "application/json"), ("cache-control", "no-store")]
        headers.append(("content-length", str(len(row.value))))
        return Answer(200, headers, row.value)

    async def record(self, scope: Scope, outcome: Outcome) -> None:
        """Keep an outcome. A store that fails now is the operator's business."""
        LOG.warning(
            "%s %s was cut short: %s, in state %s trace_id=%s",
            scope["method"],
            plain_path(scope["path"]),
            outcome.outcome,
            outcome.intent.get("state_before_cancel"),
            outcome.trace_id,
            extra={"trace_id": outcome.trace_id, "code": "CANCELLED", "intent": outcome.intent},
        )
        try:
            table = await self.table()
            name = key_of(self._caller(scope), outcome.id)
            await table.put(name, msgspec.json.encode(outcome), expires_in=self._expires_in)
        except StoreError:
            LOG.exception("an outcome could not be recorded trace_id=%s", outcome.trace_id)


class _Run:
    """One request, watched."""

    def __init__(self, owner: Cancellable, scope: Scope, receive: Receive, send: Send) -> None:
        self._owner, self._scope, self._receive, self._send = owner, scope, receive, send
        self._asked = asked(scope)
        self._trace = trace_id(self._asked.traceparent)
        self._id = header(scope["headers"], b"idempotency-key") or self._trace
        self._intent = Intent(f"{scope['method']} {scope['path']}")
        self._messages: asyncio.Queue[Message] = asyncio.Queue(8)
        self._started = self._ended = self._cut = False
        self._status: int | None = None

    async def through(self) -> None:
        """Run the application until it ends, the client goes, or the time is over."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        seconds = _seconds(header(self._scope["headers"], b"request-timeout"), self._owner._longest)  # noqa: SLF001
        CURRENT.set(self._intent)
        work: asyncio.Task[None] = asyncio.ensure_future(
            self._owner.app(self._scope, self._messages.get, self._sent)
        )
        CURRENT.set(None)
        watch = asyncio.ensure_future(self._watch())
        try:
            await asyncio.wait({work, watch}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            if not work.done() and watch.done() and self._ended:
                # The response is out and the client satisfied; what runs on is background work.
                await asyncio.wait({work})
            if not work.done():
                await self._cut_short(work, round((loop.time() - began) * 1000), gone=watch.done())
                return
            work.result()
        finally:
            watch.cancel()
            if not work.done() and not self._cut:
                # The server itself shuts down.
                work.cancel()
                with suppress(asyncio.CancelledError):
                    await work

    async def _watch(self) -> None:
        """Hand on what the client sends, until it goes away."""
        while True:
            message = await self._receive()
            await self._messages.put(message)
            if message["type"] == "http.disconnect":
                return

    async def _sent(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._status = message["status"]
        if self._cut:
            return
        self._started = True
        if message["type"] == "http.response.body" and not message.get("more_body", False):
            self._ended = True
        await self._send(message)

    async def _cut_short(self, work: asyncio.Task[None], after: int, *, gone: bool) -> None:
        """Cancel, record, and answer where there is somebody to answer."""
        owner, self._cut = self._owner, True
        told = self._intent.told(self._id, self._path)
        work.cancel()
        await asyncio.wait({work}, timeout=owner._grace)  # noqa: SLF001
        await owner.record(self._scope, self._outcome(work, told, after))
        if not work.done():
            later = asyncio.ensure_future(self._recorded_later(work, told, after))
            owner._later.add(later)  # noqa: SLF001
            later.add_done_callback(owner._later.discard)  # noqa: SLF001
        if gone:
            return
        if self._started:
            raise TimeoutError("the request's time was over in the middle of its response")
        fault = Fault(
            code="CANCELLED",
            vocabulary="http",
            status=408,
            message=f"The request was aborted when its time was over, after {after} ms",
            intent=told,
            trace_id=self._trace,
            details={"operation_id": self._id, "status_path": self._path},
        )
        await reply(self._scope, self._send, answer(fault, self._asked, owner._settings))  # noqa: SLF001

    async def _recorded_later(self, work: asyncio.Task[None], told: dict[str, Any], after: int) -> None:
        await asyncio.wait({work})
        await self._owner.record(self._scope, self._outcome(work, told, after))

    def _outcome(self, work: asyncio.Task[None], told: dict[str, Any], after: int) -> Outcome:
        ended: Any = "running"
        if work.done():
            # A thread cannot be stopped: what it was at may have been done since.
            stopped = "unknown" if _in_thread(self._scope) else "cancelled"
            ended = stopped if work.cancelled() else "failed" if work.exception() else "finished"
        return Outcome(
            id=self._id,
            outcome=ended,
            intent=told,
            trace_id=self._trace,
            after_ms=after,
            status=self._status if ended == "finished" else None,
        )

    @property
    def _path(self) -> str:
        return f"{self._asked.root}{self._owner._operations}/{quote(self._id, safe='')}"  # noqa: SLF001


def _in_thread(scope: Scope) -> bool:
    """Whether Starlette ran a plain function for this request, which it does in a thread."""
    endpoint = scope.get("endpoint")
    return (isfunction(endpoint) or ismethod(endpoint)) and not iscoroutinefunction(endpoint)


def _seconds(value: str | None, longest: float) -> float | None:
    """What the client will still wait, or None."""
    try:
        seconds = float(value) if value and len(value) < 32 else 0.0
    except ValueError:
        return None
    return min(seconds, longest) if isfinite(seconds) and seconds > 0 else None
