"""
Cancel requests whose client disconnected or whose time is over, and record their outcome (P11).

    app = Cancellable(Problems(app), "sqlite:///operations.db")

The handler is cancelled, and what it declared (`amends.http.intent`) is recorded with the state that it had reached. The
status resource `GET /operations/{id}` returns the outcome; the id is the request's `Idempotency-Key`, or the trace id of
its `traceparent`. A request whose `Request-Timeout` (seconds, our own header) is over is answered with 408 and the
intent. If the client disconnected, the outcome is only recorded. A handler that ignores the cancellation is recorded
when it ends. A handler that runs in a thread cannot be stopped, and its outcome is unknown.
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
from amends.core.wrong_calls import explains_wrong_calls
from amends.durable.keys import key_name
from amends.errors.base import FaultError
from amends.http.asgi import FAULT, header, request_info, send_response
from amends.http.asgi_types import App, Message, Receive, Scope, Send
from amends.http.idempotency import caller_id
from amends.http.intent import CURRENT, Intent
from amends.http.read_ahead import ReadAhead
from amends.http.responses import LOG, RawResponse, Settings, error_response, quote_path
from amends.http.storage import Storage
from amends.serving.tracing import trace_id
from amends.stores import Store, StoreError, Table

__all__ = ["Cancellable", "Outcome"]

TABLE = "amends.http.operations"


End = Literal["running", "finished", "cancelled", "failed", "unknown"]


class Outcome(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """
    The outcome of a request that was cancelled, as the status resource returns it.

        response = client.get("/operations/inv-17")
        outcome = msgspec.json.decode(response.content, type=Outcome)
        if outcome.outcome == "cancelled":
            print("stopped at", outcome.intent["state_before_cancel"])
    """

    id: str
    outcome: End
    """
    running: the handler still runs; finished: it completed despite the cancellation; cancelled: it stopped; failed: it
    raised an exception, also one that the application answered with an error; unknown: it runs in a thread, which cannot be
    stopped.
    """
    intent: dict[str, Any]
    trace_id: str
    after_ms: int
    status: int | None = None
    """The status of the response that a finished or failed handler made."""


class _Options(msgspec.Struct, frozen=True, kw_only=True):
    operations: str
    grace: float
    longest: float
    read_ahead: int
    expires_in: float
    caller: Callable[[Scope], str]
    settings: Settings


class Cancellable:
    """
    ASGI middleware that cancels requests and serves the status resource. Put it around all others.

        app.add_middleware(Cancellable, store="sqlite:///operations.db")
    """

    @explains_wrong_calls
    def __init__(
        self,
        app: App,
        store: Store | str,
        *,
        operations: str = "/operations",
        grace: float = 5.0,
        longest: float = 3600.0,
        read_ahead: int = 4_194_304,
        expires_in: float = 86400.0,
        caller: Callable[[Scope], str] = caller_id,
        settings: Settings | None = None,
    ) -> None:
        """
        Args:
            app: the application, wrapped in `Problems`.
            store: an open store, or a URL that is opened at the first request and closed with the lifespan.
            operations: the path of the status resource. Requests for unknown ids go to the application.
            grace: seconds that a cancelled handler has for cleaning up before the response is sent.
            longest: the largest `Request-Timeout` in seconds.
            read_ahead: bytes of a body that are read before the handler asks for them. Servers report that a client left after
                the body; behind more than these bytes it is noticed when the handler reads on.
            expires_in: seconds until an outcome is forgotten.
            caller: returns the id of the caller; a caller sees only its own outcomes.
            settings: the settings given to `Problems`.

        """
        self.app = app
        self._storage = Storage(store)
        self._options = _Options(
            operations=operations.rstrip("/"),
            grace=grace,
            longest=longest,
            read_ahead=read_ahead,
            expires_in=expires_in,
            caller=caller,
            settings=settings or Settings(),
        )
        self._background: set[asyncio.Task[None]] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one ASGI connection."""
        if scope["type"] == "lifespan":
            await self._storage.lifespan(self.app, scope, receive, send)
            return
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        options = self._options
        if scope["method"] in {"GET", "HEAD"} and scope["path"].startswith(f"{options.operations}/"):
            try:
                response = await self._status_response(scope)
            except StoreError as error:
                fault = FaultError(code="SERVICE_UNAVAILABLE", vocabulary="http").fault
                response = error_response(
                    fault, request_info(scope), options.settings, cause=error, serve_pages=False
                )
            if response is not None:
                await send_response(scope, send, response)
                return
        await _Request(self, options, scope, receive, send).run()

    async def close(self) -> None:
        """Close the store if this middleware opened it. Needed only with servers that do not send lifespan events."""
        await self._storage.close()

    async def table(self) -> Table:
        """Return the table of outcomes."""
        return (await self._storage.get()).table(TABLE)

    async def _status_response(self, scope: Scope) -> RawResponse | None:
        id = unquote(scope["path"][len(self._options.operations) + 1 :])
        row = await (await self.table()).get(key_name(self._options.caller(scope), id))
        if row is None:
            return None
        headers = [("content-type", "application/json"), ("cache-control", "no-store")]
        headers.append(("content-length", str(len(row.value))))
        return RawResponse(200, headers, row.value)

    async def record(self, scope: Scope, outcome: Outcome) -> None:
        """Log and store an outcome. A failure of the store is logged and not raised."""
        LOG.warning(
            "%s %s was cancelled: outcome %s, state %s trace_id=%s",
            scope["method"],
            quote_path(scope["path"]),
            outcome.outcome,
            outcome.intent.get("state_before_cancel"),
            outcome.trace_id,
            extra={"trace_id": outcome.trace_id, "code": "CANCELLED", "intent": outcome.intent},
        )
        try:
            table = await self.table()
            name = key_name(self._options.caller(scope), outcome.id)
            await table.put(name, msgspec.json.encode(outcome), expires_in=self._options.expires_in)
        except StoreError:
            LOG.exception("an outcome could not be recorded trace_id=%s", outcome.trace_id)

    def keep(self, task: asyncio.Task[None]) -> None:
        """Hold a reference to a background task until it is done."""
        self._background.add(task)
        task.add_done_callback(self._background.discard)


class _Request:
    """Runs the application for one request, and cancels it if necessary."""

    def __init__(
        self, owner: Cancellable, options: _Options, scope: Scope, receive: Receive, send: Send
    ) -> None:
        self._owner, self._options = owner, options
        self._scope, self._receive, self._send = scope, receive, send
        self._info = request_info(scope)
        self._trace_id = trace_id(self._info.traceparent)
        self._id = header(scope["headers"], b"idempotency-key") or self._trace_id
        self._intent = Intent(f"{scope['method']} {scope['path']}")
        self._messages = ReadAhead(options.read_ahead)
        self._started = self._ended = self._cancelled = False
        self._status: int | None = None

    async def run(self) -> None:
        """Run the application until it ends, the client disconnects, or the time is over."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        seconds = _parse_timeout(header(self._scope["headers"], b"request-timeout"), self._options.longest)
        CURRENT.set(self._intent)
        work: asyncio.Task[None] = asyncio.ensure_future(
            self._owner.app(self._scope, self._messages.get, self._forward)
        )
        CURRENT.set(None)
        reader = asyncio.ensure_future(self._read_messages())
        try:
            await asyncio.wait({work, reader}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            if not work.done() and reader.done() and self._ended:
                # The client has received its response; the handler does background work.
                await asyncio.wait({work})
            if not work.done():
                await self._cancel(work, round((loop.time() - began) * 1000), disconnected=reader.done())
                return
            work.result()
        finally:
            reader.cancel()
            if not work.done() and not self._cancelled:
                # The server shuts down and cancelled this task.
                work.cancel()
                with suppress(asyncio.CancelledError):
                    await work

    async def _read_messages(self) -> None:
        """Pass the client's messages to the application until the client disconnects."""
        while True:
            message = await self._receive()
            await self._messages.put(message)
            if message["type"] == "http.disconnect":
                return

    async def _forward(self, message: Message) -> None:
        """Send the application's messages to the client, until the request is cancelled."""
        if message["type"] == "http.response.start":
            self._status = message["status"]
        if self._cancelled:
            return
        self._started = True
        if message["type"] == "http.response.body" and not message.get("more_body", False):
            self._ended = True
        await self._send(message)

    async def _cancel(self, work: asyncio.Task[None], after_ms: int, *, disconnected: bool) -> None:
        """Cancel the handler, record the outcome, and answer 408 if the client is still connected."""
        self._cancelled = True
        intent = self._intent.as_dict(self._id, self._status_path)
        work.cancel()
        await asyncio.wait({work}, timeout=self._options.grace)
        await self._owner.record(self._scope, self._outcome(work, intent, after_ms))
        if not work.done():
            self._owner.keep(asyncio.ensure_future(self._record_when_done(work, intent, after_ms)))
        if disconnected:
            return
        if self._started:
            raise TimeoutError("the request's time was over in the middle of its response")
        fault = Fault(
            code="CANCELLED",
            vocabulary="http",
            status=408,
            message=f"The request was aborted when its time was over, after {after_ms} ms",
            intent=intent,
            trace_id=self._trace_id,
            details={"operation_id": self._id, "status_path": self._status_path},
        )
        response = error_response(fault, self._info, self._options.settings)
        await send_response(self._scope, self._send, response)

    async def _record_when_done(
        self, work: asyncio.Task[None], intent: dict[str, object], after_ms: int
    ) -> None:
        await asyncio.wait({work})
        await self._owner.record(self._scope, self._outcome(work, intent, after_ms))

    def _outcome(self, work: asyncio.Task[None], intent: dict[str, object], after_ms: int) -> Outcome:
        outcome: End = "running"
        if work.done():
            # A cancelled task does not stop the thread that it waits for, which may complete later.
            stopped: End = "unknown" if _runs_in_thread(self._scope) else "cancelled"
            failed = not work.cancelled() and (work.exception() is not None or self._answered_error())
            outcome = stopped if work.cancelled() else "failed" if failed else "finished"
        return Outcome(
            id=self._id,
            outcome=outcome,
            intent=intent,
            trace_id=self._trace_id,
            after_ms=after_ms,
            status=self._status if outcome in {"finished", "failed"} else None,
        )

    def _answered_error(self) -> bool:
        """Return whether the application answered with an error, which a binding did for an exception of the handler."""
        return self._status is not None and (
            self._status >= 500 or (self._status >= 400 and FAULT in self._scope)
        )

    @property
    def _status_path(self) -> str:
        return f"{self._info.root}{self._options.operations}/{quote(self._id, safe='')}"


def _runs_in_thread(scope: Scope) -> bool:
    """Return whether the endpoint is a plain function, which Starlette runs in a thread."""
    endpoint = scope.get("endpoint")
    return (isfunction(endpoint) or ismethod(endpoint)) and not iscoroutinefunction(endpoint)


def _parse_timeout(value: str | None, longest: float) -> float | None:
    """Return the seconds of a `Request-Timeout`, at most `longest`; None if it is absent or invalid."""
    try:
        seconds = float(value) if value and len(value) < 32 else 0.0
    except ValueError:
        return None
    return min(seconds, longest) if isfinite(seconds) and seconds > 0 else None
