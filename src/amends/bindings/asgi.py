"""
Problem details for any ASGI application.

    from amends.bindings.asgi import Problems

    app = Problems(app)

The middleware answers with problem details when the application raises a FaultError or an unexpected exception, or
returns an unstructured error response such as a plain 404 or 405. An exception that a framework below turned into a plain
500 (Starlette, FastAPI, Quart, Litestar, and applications mounted in them) is answered as what it is. It serves a page for each error code below `/errors/`
if the application answers 404 there. Other response headers are kept. Websockets and lifespan events pass through.

If the application fails after the response has started, the exception is logged and raised to the server, which closes
the connection, so that the client does not take a partial body for a complete one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from amends.core.fault import Fault
from amends.errors.base import FaultError
from amends.http.application_errors import (
    fault_for,
    is_expected,
    unwrap_group,
    with_header_wait,
)
from amends.http.asgi import FAULT, LATE, exception_answer, header, request_info, send_response
from amends.http.asgi_types import App, Message, Receive, Scope, Send
from amends.http.bodies import LIMIT, fault_from_body, may_rewrite
from amends.http.current import CURRENT
from amends.http.handled import begin_request, handled_exception, watch_quart
from amends.http.responses import LOG, RawResponse, Settings, error_response, quote_path
from amends.serving.tracing import trace_id

__all__ = ["Problems"]

_WAITING, _PASSING, _HOLDING, _HELD, _DONE, _REPLACED = range(6)
"""No response yet; the response is passed on; an error response is held back to be rewritten; a plain 500 is held back until
the application ends, because it may raise the exception behind it; the response is sent; the application's response was
replaced, and the rest of it is dropped."""


class Problems:
    """
    ASGI middleware that answers every failure with problem details, for frameworks without a binding of their own.

        app = Problems(app, errors={SeatTaken: "CONFLICT"})

    Put it innermost, so that headers which other middlewares add to responses are added to error responses too.
    """

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
        self._quart = watch_quart(app)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one ASGI connection."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        phase, held, start = _WAITING, bytearray(), None
        if self._quart:
            begin_request()
        around, answered = handled_exception(), None
        token = CURRENT.set(lambda: (request_info(scope), self.settings))

        async def send_or_hold(message: Message) -> None:
            nonlocal phase, start, answered
            kind = message["type"]
            if phase == _REPLACED:
                return
            if kind == "http.response.start":
                if message["status"] == 500:
                    answered = handled_exception(around)
                    if answered is not None and self._is_typed(answered):
                        phase = _REPLACED
                        await self._send_error(scope, send, answered, _decoded(message["headers"]))
                        return
                if message["status"] >= 400 and self._may_rewrite(scope, message):
                    phase, start = _HOLDING, message
                    return
                phase = _PASSING
            elif phase == _HOLDING and kind == "http.response.body":
                assert start is not None
                held.extend(message.get("body", b""))
                more = message.get("more_body", False)
                if more and len(held) <= LIMIT:
                    return
                if not more and answered is None and self._may_be_raised(start, held):
                    # Middleware that sends from another task, such as Starlette's BaseHTTPMiddleware, hides the
                    # exception that the framework below is handling. The framework raises it again.
                    phase = _HELD
                    return
                phase = _PASSING if more else _DONE
                if not more and await self._rewrite(scope, send, start, bytes(held), answered):
                    return
                # The application's own response: its exception was not logged here.
                answered = None
                await send(start)
                message = {"type": kind, "body": bytes(held), "more_body": more}
            elif kind == "http.response.body" and not message.get("more_body", False):
                phase = _DONE
            await send(message)

        try:
            await self.app(scope, receive, send_or_hold)
            if phase in {_WAITING, _HOLDING}:
                raise RuntimeError("the application ended without a response")  # noqa: TRY301
            if phase == _HELD:
                assert start is not None
                phase = _DONE
                await self._rewrite(scope, send, start, bytes(held), None)
        except Exception as exc:
            if phase == _HELD:
                assert start is not None
                await self._send_error(scope, send, exc, _decoded(start["headers"]))
            elif phase in {_WAITING, _HOLDING}:
                if self._passes(unwrap_group(exc)):
                    raise
                await self._send_error(scope, send, exc)
            elif answered is not None and answered in {exc, exc.__cause__}:
                # Raised again by the framework that sent the response.
                return
            elif phase in {_DONE, _REPLACED}:
                self._log_late_error(scope, exc, "after its response was complete")
            else:
                self._log_late_error(scope, exc, "in the middle of its response")
                raise
        finally:
            # An ASGI client in the same process calls the application in its own context.
            CURRENT.reset(token)

    def _is_typed(self, exc: BaseException) -> bool:
        """Return whether an exception has a code of its own."""
        raised = unwrap_group(exc)
        return isinstance(raised, FaultError) or is_expected(raised, self.settings)

    def _may_rewrite(self, scope: Scope, start: Message) -> bool:
        headers = start.get("headers", ())
        return may_rewrite(
            start["status"],
            header(headers, b"content-type") or "",
            header(scope["headers"], b"accept"),
            header(headers, b"content-encoding"),
        )

    @staticmethod
    def _may_be_raised(start: Message, body: bytes | bytearray) -> bool:
        """Return whether a framework made the response from an exception that it may raise again."""
        content_type = header(start["headers"], b"content-type") or ""
        return start["status"] == 500 and fault_from_body(500, content_type, bytes(body)) is not None

    async def _rewrite(
        self, scope: Scope, send: Send, start: Message, body: bytes, cause: BaseException | None
    ) -> bool:
        """Send the framework's error response as a problem document; return False if it must stay as it is."""
        headers = _decoded(start["headers"])
        fields = {name.lower(): value for name, value in headers}
        fault = fault_from_body(start["status"], fields.get("content-type", ""), body)
        if fault is None:
            return False
        if cause is not None:
            fault = fault_for(unwrap_group(cause), scope["method"], self.settings)
        response = self._error_response(scope, with_header_wait(fault, fields), headers=headers, cause=cause)
        await send_response(scope, send, response)
        return True

    async def _send_error(
        self, scope: Scope, send: Send, exc: BaseException, headers: Iterable[tuple[str, str]] = ()
    ) -> None:
        await send_response(scope, send, exception_answer(scope, exc, self.settings, headers))

    def _error_response(self, scope: Scope, fault: Fault, **options: Any) -> RawResponse:
        scope[FAULT] = fault
        return error_response(fault, request_info(scope), self.settings, **options)

    @staticmethod
    def _log_late_error(scope: Scope, exc: Exception, when: str) -> None:
        """Log a failure that can no longer be answered."""
        scope[LATE] = exc
        request = request_info(scope)
        id = trace_id(request.traceparent)
        LOG.error(
            "%s %s failed %s trace_id=%s",
            request.method,
            quote_path(request.root + request.path),
            when,
            id,
            exc_info=exc,
            extra={"trace_id": id, "code": fault_for(exc).code},
        )


def _decoded(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[str, str]]:
    return [(name.decode("latin-1"), value.decode("latin-1")) for name, value in headers]
