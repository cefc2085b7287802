"""
Problem details for any ASGI application.

    from amends.bindings.asgi import Problems

    app = Problems(app)

The middleware answers with problem details when the application raises a FaultError or an unexpected exception, or
returns an unstructured error response such as a plain 404 or 405. It serves a page for each error code below `/errors/`
if the application answers 404 there. Other response headers are kept. Websockets and lifespan events pass through.

If the application fails after the response has started, the exception is logged and raised to the server, which closes
the connection, so that the client does not take a partial body for a complete one.
"""

from __future__ import annotations

from typing import Any

from amends.core.fault import Fault
from amends.http.application_errors import CLIENT_DISCONNECTED, fault_for, is_expected, with_header_wait
from amends.http.asgi import FAULT, App, Message, Receive, Scope, Send, header, request_info, send_response
from amends.http.bodies import LIMIT, fault_from_body, may_rewrite
from amends.http.negotiation import preferred_form
from amends.http.responses import LOG, RawResponse, Settings, error_response, quote_path
from amends.serving.tracing import trace_id

__all__ = ["Problems"]

_WAITING, _PASSING, _HOLDING, _DONE = range(4)
"""No response yet; the response is passed on; an error response is held back to be rewritten; the response is sent."""


class Problems:
    """
    ASGI middleware that answers every failure with problem details.

    Put it innermost, so that headers which other middlewares add to responses are added to error responses too.
    """

    def __init__(
        self,
        app: App,
        *,
        pages: str | None = "/errors",
        base_url: str | None = None,
        settings: Settings | None = None,
    ) -> None:
        """
        Args:
            app: the application.
            pages: the path of the error pages; None serves none.
            base_url: the URL that callers use for the application, if it differs from the request's own.
            settings: all settings in one value, instead of the other arguments.

        """
        self.app = app
        self.settings = settings or Settings(pages=pages, base_url=base_url)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one ASGI connection."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        phase, held, start = _WAITING, bytearray(), None

        async def send_or_hold(message: Message) -> None:
            nonlocal phase, start
            kind = message["type"]
            if kind == "http.response.start":
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
                phase = _PASSING if more else _DONE
                if not more and await self._rewrite(scope, send, start, bytes(held)):
                    return
                await send(start)
                message = {"type": kind, "body": bytes(held), "more_body": more}
            elif kind == "http.response.body" and not message.get("more_body", False):
                phase = _DONE
            await send(message)

        try:
            await self.app(scope, receive, send_or_hold)
            if phase in {_WAITING, _HOLDING}:
                raise RuntimeError("the application ended without a response")  # noqa: TRY301
        except Exception as exc:
            if phase in {_WAITING, _HOLDING}:
                await self._send_error(scope, send, exc)
            elif phase == _DONE:
                self._log_late_error(scope, exc, "after its response was complete")
            else:
                self._log_late_error(scope, exc, "in the middle of its response")
                raise

    def _may_rewrite(self, scope: Scope, start: Message) -> bool:
        headers = start.get("headers", ())
        return may_rewrite(
            start["status"],
            header(headers, b"content-type") or "",
            preferred_form(header(scope["headers"], b"accept")),
            header(headers, b"content-encoding"),
        )

    async def _rewrite(self, scope: Scope, send: Send, start: Message, body: bytes) -> bool:
        """Send the framework's error response as a problem document; return False if it must stay as it is."""
        headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in start["headers"]]
        fields = {name.lower(): value for name, value in headers}
        fault = fault_from_body(start["status"], fields.get("content-type", ""), body)
        if fault is None:
            return False
        response = self._error_response(scope, with_header_wait(fault, fields), headers=headers)
        await send_response(scope, send, response)
        return True

    async def _send_error(self, scope: Scope, send: Send, exc: Exception) -> None:
        raised = _unwrap_group(exc)
        fault = fault_for(raised)
        cause = None if fault is CLIENT_DISCONNECTED or is_expected(raised) else exc
        await send_response(scope, send, self._error_response(scope, fault, cause=cause))

    def _error_response(self, scope: Scope, fault: Fault, **options: Any) -> RawResponse:
        scope[FAULT] = fault
        return error_response(fault, request_info(scope), self.settings, **options)

    @staticmethod
    def _log_late_error(scope: Scope, exc: Exception, when: str) -> None:
        """Log a failure that can no longer be answered."""
        request = request_info(scope)
        id = trace_id(request.traceparent)
        LOG.error(
            "%s %s failed %s trace_id=%s",
            request.method,
            quote_path(request.path),
            when,
            id,
            exc_info=exc,
            extra={"trace_id": id, "code": fault_for(exc).code},
        )


def _unwrap_group(exc: BaseException) -> BaseException:
    """Return the exception inside groups of one, as task groups raise them."""
    while isinstance(exc, BaseExceptionGroup) and len(exc.exceptions) == 1:
        exc = exc.exceptions[0]
    return exc
