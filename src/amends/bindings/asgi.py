"""
Any ASGI application, with failures an agent can act on.

    from amends.bindings.asgi import Problems

    app = Problems(app)

Raised FaultErrors, exceptions nobody expected, and error responses that say little (a plain 404 or 405) are answered
with problem details; pages about the codes are served below `/errors/` where the application has nothing there. Other
headers of a response stay; websockets and everything that is no HTTP request pass untouched.

A failure after the response has begun cannot be told any more: it is logged, and the exception goes on to the server,
which closes the connection so that nobody takes the half for the whole.
"""

from __future__ import annotations

from typing import Any

from amends.core.fault import Fault
from amends.dialects.problem import MEDIA_TYPE
from amends.http.application_errors import GONE, fault_for, waiting
from amends.http.asgi import FAULT, App, Message, Receive, Scope, Send, asked, header, reply
from amends.http.bodies import LIMIT, improved, rewritable
from amends.http.negotiation import wanted
from amends.http.responses import LOG, Answer, Settings, answer, plain_path
from amends.serving.tracing import trace_id

__all__ = ["Problems"]

_PROBLEM = (b"content-type", MEDIA_TYPE.encode())

_WAITING, _PASSING, _HOLDING, _DONE = range(4)


class Problems:
    """The middleware. Put it innermost, so that what others add to responses is added to failures too."""

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
            pages: where the pages about codes are; None: nowhere.
            base_url: the address callers know the application by, where the request's own is not it.
            settings: all of these at once, instead.

        """
        self.app = app
        self.settings = settings or Settings(pages=pages, base_url=base_url)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One connection."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        phase, held, holding = _WAITING, bytearray(), None

        async def sent(message: Message) -> None:
            nonlocal phase, holding
            kind = message["type"]
            if kind == "http.response.start":
                if message["status"] >= 400 and self._plain(scope, message):
                    phase, holding = _HOLDING, message
                    return
                phase = _PASSING
            elif phase == _HOLDING and kind == "http.response.body":
                assert holding is not None
                held.extend(message.get("body", b""))
                more = message.get("more_body", False)
                if more and len(held) <= LIMIT:
                    return
                phase = _PASSING if more else _DONE
                if not more and await self._improve(scope, send, holding, bytes(held)):
                    return
                await send(holding)
                message = {"type": kind, "body": bytes(held), "more_body": more}
            elif kind == "http.response.body" and not message.get("more_body", False):
                phase = _DONE
            await send(message)

        try:
            await self.app(scope, receive, sent)
            if phase in {_WAITING, _HOLDING}:
                raise RuntimeError("the application ended without a response")  # noqa: TRY301
        except Exception as exc:
            if phase in {_WAITING, _HOLDING}:
                await self._failed(scope, send, exc)
            elif phase == _DONE:
                self._late(scope, exc, "after its response was complete")
            else:
                self._late(scope, exc, "in the middle of its response")
                raise

    def _plain(self, scope: Scope, start: Message) -> bool:
        headers = start.get("headers", ())
        if headers and headers[0] == _PROBLEM:
            # What was answered from here says enough, and begins like this.
            return False
        kind = header(headers, b"content-type") or ""
        accept = header(scope["headers"], b"accept")
        packed = header(headers, b"content-encoding")
        return rewritable(start["status"], kind, wanted(accept), packed)

    async def _improve(self, scope: Scope, send: Send, start: Message, body: bytes) -> bool:
        """Say better what the framework said; whether that was done."""
        headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in start["headers"]]
        fields = {name.lower(): value for name, value in headers}
        fault = improved(start["status"], fields.get("content-type", ""), body)
        if fault is None:
            return False
        await reply(scope, send, self._answer(scope, waiting(fault, fields), headers=headers))
        return True

    async def _failed(self, scope: Scope, send: Send, exc: Exception) -> None:
        fault = fault_for(_alone(exc))
        expected = fault is GONE or (fault.origin is None and getattr(exc, "fault", None) is not None)
        await reply(scope, send, self._answer(scope, fault, cause=None if expected else exc))

    def _answer(self, scope: Scope, fault: Fault, **more: Any) -> Answer:
        scope[FAULT] = fault
        return answer(fault, asked(scope), self.settings, **more)

    @staticmethod
    def _late(scope: Scope, exc: Exception, when: str) -> None:
        """Nothing can be said to the client any more; the operator gets everything."""
        found = asked(scope)
        id = trace_id(found.traceparent)
        LOG.error(
            "%s %s failed %s trace_id=%s",
            found.method,
            plain_path(found.path),
            when,
            id,
            exc_info=exc,
            extra={"trace_id": id, "code": fault_for(exc).code},
        )


def _alone(exc: Exception) -> BaseException:
    """The exception in a group of one, as task groups raise it."""
    found: BaseException = exc
    while isinstance(found, BaseExceptionGroup) and len(found.exceptions) == 1:
        found = found.exceptions[0]
    return found
