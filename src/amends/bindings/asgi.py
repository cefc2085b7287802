"""
Problem details for any ASGI application.

    from amends.bindings.asgi import Problems

    app = Problems(app)

The middleware answers with problem details when the application raises a FaultError or an unexpected exception, or
returns an unstructured error response such as a plain 404 or 405. An exception that a framework below turned into a plain
500 (Starlette, FastAPI, Quart, Litestar, and applications mounted in them) is answered as what it is. It serves a page for each error code below `/errors/`
if the application answers 404 there. Other response headers are kept.

The failure of a WebSocket before it is accepted is answered with a problem document too, where the server supports denial
responses, else with 403; an accepted one is closed with a code and a reason. Lifespan events and other types of ASGI
pass through.

If the application fails after the response has started, the exception is logged and raised to the server, which closes
the connection, so that the client does not take a partial body for a complete one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from sys import exception
from typing import TYPE_CHECKING

import msgspec

from amends.core.wrong_calls import explains_wrong_calls
from amends.dialects.outgoing import outgoing
from amends.foreign.groups import single
from amends.http.application_errors import (
    fault_for,
    has_code,
    states,
)
from amends.http.asgi import FAULT, LATE, exception_answer, header, request_info, send_response
from amends.http.asgi_types import App, Message, Receive, Scope, Send
from amends.http.bodies import LIMIT, fault_from_body, may_rewrite, rewrite
from amends.http.current import CURRENT
from amends.http.handled import (
    begin_request,
    end_request,
    handled_exception,
    remembered_exception,
    watch_frameworks,
)
from amends.http.responses import LOG, Settings, quote_path
from amends.http.sockets import DENIAL, can_deny, close_message, closes
from amends.recovery.clock import CLOCK
from amends.serving.tracing import trace_id

if TYPE_CHECKING:
    import asyncio

__all__ = ["Problems"]


class Problems:
    """
    ASGI middleware that answers every failure with problem details, for frameworks without a binding of their own.

        app = Problems(app, errors={SeatTaken: "CONFLICT"})

    Put it innermost, so that headers which other middlewares add to responses are added to error responses too.
    """

    @explains_wrong_calls
    def __init__(
        self,
        app: App,
        *,
        pages: str | None = "/errors",
        base_url: str | None = None,
        hosts: Sequence[str] | None = None,
        errors: Mapping[type[BaseException], str] | None = None,
        settings: Settings | None = None,
        passes: Callable[[BaseException], bool] | None = None,
    ) -> None:
        """
        Args:
            app: the application.
            pages: the path of the error pages; None serves none.
            base_url: the URL that callers use for the application; `type` and `doc_uri` begin with it.
            hosts: without a `base_url`, the `Host` names that these URLs may be made from (see `Settings.hosts`).
            errors: the codes of exception classes of yours, `{SeatTaken: "CONFLICT"}`.
            settings: all settings in one value, instead of the other arguments.
            passes: returns whether an exception is left to the layers around, which have a handler for it.

        """
        self.app = app
        self.settings = settings or Settings(pages=pages, base_url=base_url, hosts=hosts, errors=errors or {})
        self._passes = passes or (lambda exc: False)
        self._watched = watch_frameworks(app)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one ASGI connection."""
        if scope["type"] != "http":
            if scope["type"] == "websocket":
                await serve_socket(self.app, scope, receive, send, self.settings, watched=self._watched)
            else:
                await self.app(scope, receive, send)
            return
        request = begin_request() if self._watched else None
        # Every successful request comes here. A success costs 1.04 of the bare application's (target 1.05, bench/http.py),
        # so nothing is prepared that only failures need, and few variables are shared with `send_or_hold`.
        exchange = (self.settings, scope, send, exception(), self._passes)
        sent: Message | None = None
        held: _HeldStart | None = None
        failure: _Failure | None = None
        token = CURRENT.set((request_info, scope, self.settings, CLOCK.now()))

        def send_or_hold(message: Message) -> Awaitable[None]:
            nonlocal sent, held, failure
            if failure is not None:
                return failure.send(message)
            if held is not None:
                return held.send(message)
            kind = message["type"]
            if kind == "http.response.start":
                if message["status"] >= 400:
                    failure = _Failure(*exchange)
                    return failure.send(message)
                if _may_fail_first(message):
                    held = _HeldStart(send, message)
                    return held.begin()
                sent = message
            elif kind == "http.response.body":
                sent = message
            return send(message)

        try:
            await self.app(scope, receive, send_or_hold)
            if held is not None:
                await held.end()
            elif sent is None:
                await (failure or _Failure(*exchange)).end()
        except Exception as exc:
            failure = failure or _Failure(
                *exchange, _phase_after(sent if held is None else await held.stop())
            )
            if failure.phase in _UNSENT and self._passes(single(_first_raised(exc))):
                raise
            if not await failure.answer(exc):
                raise
        finally:
            if held is not None:
                held.cancel()
            # An ASGI client in the same process calls the application in its own context.
            CURRENT.reset(token)
            if request is not None:
                end_request(request)


_WAITING, _PASSING, _HOLDING, _HELD, _DONE, _REPLACED = range(6)
"""No response yet; the response is passed on; an error response is held back to be rewritten; a plain 500 is held back until
the application ends, because it may raise the exception behind it; the response is sent; the application's response was
replaced, and the rest of it is dropped."""
_UNANSWERED = frozenset({_WAITING, _HOLDING})
_UNSENT = _UNANSWERED | {_HELD}


_HOLD = 0.1
"""The longest time in seconds that the start of a stream is held back for its first chunk."""


def _may_fail_first(start: Message) -> bool:
    """
    Return whether a successful response is a stream, which may fail before its first chunk.

    A response that states its length is complete. Readers of server-sent events wait for the headers.
    """
    for name, value in start.get("headers", ()):
        kind = name.lower()
        if kind == b"content-length" or (kind == b"content-type" and b"text/event-stream" in value.lower()):
            return False
    return True


class _HeldStart:
    """The start of a stream, which is held back until its first chunk or until the time is over."""

    def __init__(self, forward: Send, start: Message) -> None:
        self._forward, self._start = forward, start
        self._last: Message | None = None
        self._sending: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None

    async def begin(self) -> None:
        # The servers have loaded it; without a stream it is not needed.
        import asyncio

        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:  # another event loop than that of asyncio
            await self._release()
        else:
            self._timer = loop.call_later(_HOLD, self._release_late)

    def _release_late(self) -> None:
        import asyncio

        self._last = self._start
        self._sending = asyncio.ensure_future(self._forward(self._start))

    async def _release(self) -> None:
        self.cancel()
        if self._last is None:
            self._last = self._start
            await self._forward(self._start)
        elif self._sending is not None:
            sending, self._sending = self._sending, None
            await sending

    async def send(self, message: Message) -> None:
        """Send a message after the start."""
        await self._release()
        if message["type"] == "http.response.body":
            self._last = message
        await self._forward(message)

    async def end(self) -> None:
        """Send the start of a response whose application has ended without a body."""
        await self._release()

    async def stop(self) -> Message | None:
        """Return the last message that was sent; None if the start was not, and will not be."""
        self.cancel()
        if self._sending is not None:
            await self._release()
        return self._last

    def cancel(self) -> None:
        """Do not send the start when the time is over."""
        if self._timer is not None:
            self._timer.cancel()


def _phase_after(sent: Message | None) -> int:
    """Return the phase of a response that was passed on, by the last message of it."""
    if sent is None:
        return _WAITING
    complete = sent["type"] == "http.response.body" and not sent.get("more_body")
    return _DONE if complete else _PASSING


class _Failure(msgspec.Struct):
    """A failed request, and what was sent for it so far."""

    settings: Settings
    scope: Scope
    forward: Send
    """Sends a message to the server."""
    around: BaseException | None
    """The exception that was being handled when the request came in: it is not the application's."""
    passes: Callable[[BaseException], bool]
    """Returns whether the layers around have a handler for an exception."""
    phase: int = _WAITING
    start: Message = {}
    """The beginning of a response that is held back."""
    held: bytes = b""
    behind: BaseException | None = None
    """The exception behind a 500 of the application's framework."""

    async def send(self, message: Message) -> None:
        """Hold an error response back until it is complete, and send a problem document instead if it is a plain one."""
        kind = message["type"]
        if self.phase == _REPLACED:
            return
        if kind == "http.response.start":
            if FAULT in self.scope:
                # An exception handler of a binding has made this response.
                self.phase = _PASSING
                await self.forward(message)
                return
            if message["status"] >= 500:
                exc = handled_exception(self.around)
                if exc is not None and (message["status"] == 500 or states(exc, message["status"])):
                    self.behind = exc
                if message["status"] == 500 and exc is not None and self._is_typed(exc):
                    self.phase = _REPLACED
                    await self._send_error(exc, _decoded(message["headers"]))
                    return
            if self._may_rewrite(message):
                self.phase, self.start = _HOLDING, message
                return
            self.phase = _PASSING
        elif self.phase == _HOLDING and kind == "http.response.body":
            self.held += message.get("body", b"")
            more = message.get("more_body", False)
            if more and len(self.held) <= LIMIT:
                return
            if not more and self._may_be_raised():
                self.phase = _HELD
                return
            self.phase = _PASSING if more else _DONE
            if not more and await self._rewrite(self.behind):
                return
            # The application's own response: its exception was not logged here.
            self.behind = None
            await self.forward(self.start)
            message = {"type": kind, "body": self.held, "more_body": more}
        elif kind == "http.response.body" and not message.get("more_body", False):
            self.phase = _DONE
        elif self.phase == _HOLDING:
            # The body is a file that the server sends (`http.response.pathsend`): a page of the application's own.
            self.phase = _PASSING
            await self.forward(self.start)
        await self.forward(message)

    async def end(self) -> None:
        """Send what is held back, after the application has returned."""
        if self.phase in _UNANSWERED:
            raise RuntimeError("the application ended without a response")
        if self.phase == _HELD:
            self.phase = _DONE
            await self._rewrite(self.behind)

    async def answer(self, exc: BaseException) -> bool:
        """Answer the exception that the application raised; return False if that is no longer possible."""
        if self.phase == _HELD:
            await self._send_error(_first_raised(exc), _decoded(self.start["headers"]))
        elif self.phase in _UNANSWERED:
            await self._send_error(_first_raised(exc))
        elif self.behind is not None and self.behind in {exc, exc.__cause__}:
            # Raised again by the framework that sent the response.
            pass
        elif self.phase in {_DONE, _REPLACED}:
            self.log_late_error(exc, "after its response was complete")
        else:
            self.log_late_error(exc, "in the middle of its response")
            return False
        return True

    def _is_typed(self, exc: BaseException) -> bool:
        """Return whether an exception has a code of its own."""
        return has_code(exc, self.settings)

    def _may_rewrite(self, start: Message) -> bool:
        headers = start.get("headers", ())
        return may_rewrite(
            start["status"],
            header(headers, b"content-type") or "",
            header(self.scope["headers"], b"accept"),
            header(headers, b"content-encoding"),
        )

    def _may_be_raised(self) -> bool:
        """
        Return whether a framework made the response from an exception that it may raise again, and that is needed.

        Middleware that sends from another task, such as Starlette's BaseHTTPMiddleware, hides the exception that the
        framework below is handling. One that a handler around is registered for has to be raised to it.
        """
        if self.behind is not None and not self.passes(single(self.behind)):
            return False
        content_type = header(self.start["headers"], b"content-type") or ""
        return self.start["status"] == 500 and fault_from_body(500, content_type, self.held) is not None

    async def _rewrite(self, cause: BaseException | None) -> bool:
        """Send the framework's error response as a problem document; return False if it must stay as it is."""
        found = rewrite(
            self.start["status"],
            _decoded(self.start["headers"]),
            self.held,
            request_info(self.scope),
            self.settings,
            cause,
        )
        if found is None:
            return False
        self.scope[FAULT], response = found
        await send_response(self.scope, self.forward, response)
        return True

    async def _send_error(self, exc: BaseException, headers: Iterable[tuple[str, str]] = ()) -> None:
        response = exception_answer(self.scope, exc, self.settings, headers)
        await send_response(self.scope, self.forward, response)

    def log_late_error(self, exc: BaseException, when: str) -> None:
        """Log a failure that can no longer be answered."""
        self.scope[LATE] = exc
        request = request_info(self.scope)
        id = trace_id(request.traceparent)
        LOG.error(
            "%s %s failed %s trace_id=%s",
            request.method,
            quote_path(request.root + request.path),
            when,
            id,
            exc_info=exc,
            extra={"trace_id": id, "code": outgoing(fault_for(exc), "telemetry").code},
        )


async def serve_socket(
    app: App, scope: Scope, receive: Receive, send: Send, settings: Settings, *, watched: bool = False
) -> None:
    """
    Serve one WebSocket, and answer its failures.

    Args:
        app: the application.
        scope: the connection's scope.
        receive: receives the server's messages.
        send: sends messages to the server.
        settings: the application's settings.
        watched: there may be an application of Quart or Litestar inside.

    """
    request = begin_request() if watched else None
    token = CURRENT.set((request_info, scope, settings, CLOCK.now()))
    try:
        await _Socket(settings, scope, receive, send).run(app)
    finally:
        CURRENT.reset(token)
        if request is not None:
            end_request(request)


class _Socket:
    """One WebSocket, and what was sent for it so far."""

    def __init__(self, settings: Settings, scope: Scope, receive: Receive, send: Send) -> None:
        self._settings, self._scope, self._receive, self._send = settings, scope, receive, send
        self._accepted = self._closed = self._left = False
        # Before it is accepted, a WebSocket is answered as any request: by the same messages under other names.
        self._failure = _Failure(settings, scope, self._deny, exception(), lambda exc: False)

    async def run(self, app: App) -> None:
        try:
            await app(self._scope, self._watched_receive, self._watched_send)
            if self._failure.phase == _HELD:
                await self._failure.end()
        except Exception as exc:
            # Nothing can be sent to a client that has left.
            if self._left or not await self._answer(exc):
                raise

    async def _watched_receive(self) -> Message:
        message = await self._receive()
        if message["type"] == "websocket.disconnect":
            self._left = True
        return message

    async def _watched_send(self, message: Message) -> None:
        kind = message["type"]
        if kind.startswith(f"{DENIAL}http.response."):
            await self._respond({**message, "type": kind.removeprefix(DENIAL)})
            return
        if kind == "websocket.accept":
            self._accepted = True
        elif kind == "websocket.close":
            exc = remembered_exception()
            if exc is not None and not self._closed and not closes(exc):
                # Quart closes with 1000, and Litestar with text of the exception.
                await self._answer(exc)
                return
            self._closed = True
        await self._send(message)

    async def _respond(self, message: Message) -> None:
        """Send the application's response; it closes a WebSocket that is accepted."""
        if not self._accepted:
            await self._failure.send(message)
        elif not self._closed and message["type"] == "http.response.start":
            await self._close(message["status"])

    async def _deny(self, message: Message) -> None:
        if can_deny(self._scope):
            self._closed = True
            await self._send({**message, "type": f"{DENIAL}{message['type']}"})
        elif message["type"] == "http.response.start":
            await self._close(message["status"])

    async def _close(self, status: int) -> None:
        self._closed = True
        await self._send(close_message(self._scope, status))

    async def _answer(self, exc: BaseException) -> bool:
        """Answer the exception of the application; return False if that is no longer possible."""
        if self._closed:
            self._failure.log_late_error(exc, "after its WebSocket was closed")
            return True
        try:
            if not self._accepted:
                return await self._failure.answer(exc)
            response = exception_answer(self._scope, _first_raised(exc), self._settings)
            await self._close(response.status)
        except OSError:
            # The server raises it for a client that has left.
            return False
        return True


_REPLACED_BY = frozenset({("RuntimeError", "starlette"), ("LitestarException", "litestar")})
"""The classes of exceptions that frameworks raise instead of the application's, and the frameworks."""


def _first_raised(exc: BaseException) -> BaseException:
    """
    Return the exception that the application raised, if Starlette or Litestar raises another because of it.

    They do so after a response has begun, Starlette for an exception with a handler.
    """
    trace = exc.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    module = "" if trace is None else str(trace.tb_frame.f_globals.get("__name__"))
    replaced = (type(exc).__name__, module.partition(".")[0]) in _REPLACED_BY
    return exc.__cause__ if replaced and exc.__cause__ is not None else exc


def _decoded(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[str, str]]:
    return [(name.decode("latin-1"), value.decode("latin-1")) for name, value in headers]
