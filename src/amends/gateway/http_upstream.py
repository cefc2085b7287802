"""
One HTTP upstream: forwards calls, and repeats failed ones where a repeat is safe.

A call that succeeds at once takes the short way through `handle`. Only a failure builds a `Call` with an operation and
runs the flow of `amends.recovery`. After the first byte of an answer was sent to the caller nothing is repeated.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from time import monotonic
from urllib.parse import urlsplit

import aiohttp
from msgspec.structs import replace
from yarl import URL

from amends.core import recording
from amends.core.enums import Executed
from amends.core.fault import Fault
from amends.core.operation import Operation
from amends.dialects.problem import MEDIA_TYPE
from amends.errors.base import FaultError
from amends.foreign import from_exception
from amends.foreign.in_doubt import in_doubt
from amends.gateway.answers import (
    BODY_TIME,
    Answer,
    FailedTry,
    closed_on_error,
    failure_in_stream,
    first_event,
    is_stream,
    read_failure,
    read_up_to,
    send_answer,
)
from amends.gateway.bodies import Body, BodyFailed, CallerGone, TooLarge, TooSlow, read_body
from amends.gateway.config import UpstreamConfig
from amends.gateway.connections import new_session
from amends.gateway.headers import BadRequest, RequestHeaders, request_headers, response_headers, traverses
from amends.gateway.refusals import FACTS, refusal, send_and_read_on, send_problem, send_whole
from amends.gateway.stats import Stats, UpstreamStatus
from amends.http.asgi_types import Receive, Scope, Send
from amends.http.key_support import KeySupport
from amends.recovery.clock import CLOCK
from amends.recovery.drivers import arun_flow
from amends.recovery.history import Attempt
from amends.recovery.incoming import handling, left, outgoing_left
from amends.recovery.operation_flow import Outcome
from amends.recovery.origins import route_scope
from amends.recovery.plan import Plan
from amends.recovery.scope import time_left, tries_left
from amends.recovery.upstream import Upstream
from amends.serving.tracing import trace_id

__all__ = ["NO_BODY", "SMALL", "Call", "HttpUpstream"]


SMALL = 64 * 1024
"""An answer of this size is read before it is sent, so that a connection that breaks in it can be repeated."""
_BODILESS = frozenset({"GET", "HEAD", "OPTIONS", "DELETE"})
_REFUSED = frozenset({"CONNECT", "TRACE"})
_IO = (aiohttp.ClientError, TimeoutError, OSError)
NO_BODY = Body(b"", None, 0, 0.0)


class Call:
    """One call that did not succeed at once."""

    __slots__ = ("answer", "body", "failed", "headers", "method", "path", "repeated", "trace", "url")

    def __init__(self, method: str, path: str, url: URL, headers: RequestHeaders, body: Body) -> None:
        self.method = method
        self.path = path
        self.url = url
        self.headers = headers
        self.body = body
        self.trace = trace_id(headers.traceparent)
        self.repeated = False
        """Whether a try was made before."""
        self.failed = False
        """Whether the answer reports a failure that is passed on and was recorded."""
        self.answer: Answer | None = None
        """The last failed answer; its connection is open until it is passed on or superseded."""

    def keep(self, answer: Answer | None) -> None:
        """Keep the failed answer of the last try, and close that of the try before."""
        if self.answer is not None and self.answer is not answer:
            self.answer.close()
        self.answer = answer


class HttpUpstream:
    """Forwards calls to one address. It owns its connections, so that other upstreams are not affected by it."""

    local_pages = False
    """Whether only pages of this machine may call it, whatever address the gateway listens on."""

    def __init__(self, config: UpstreamConfig) -> None:
        self.config = config
        self.stats = Stats()
        self.upstream = Upstream(config.name, vendor=config.vendor, own=config.own, keyed=config.keyed)
        parts = urlsplit(config.url)
        self.origin = f"{parts.scheme}://{parts.netloc}"
        self.base = self.origin + parts.path.rstrip("/")
        self.proofs = KeySupport()
        self._troubled = False
        self._session: aiohttp.ClientSession | None = None

    # Life ------------------------------------------------------------------------------------------------------

    @property
    def session(self) -> aiohttp.ClientSession:
        """The connections to the upstream; opened by the first call."""
        if self._session is None:
            self._session = new_session(self.config, self.origin)
        return self._session

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()

    def status(self) -> UpstreamStatus:
        """Return the figures for the page."""
        stats, found = self.stats, self.upstream.snapshot()
        return UpstreamStatus(
            name=self.config.name,
            kind=self.config.kind,
            prefix=self.config.prefix or "/",
            state=found.state,
            resumes_in=found.resumes_in,
            waiting=found.parked,
            in_flight=stats.in_flight,
            calls=stats.calls,
            failed=stats.failed,
            recovered=stats.recovered,
            refused=stats.refused,
            rate=stats.rate(),
            p50=stats.quantile(0.5),
            p99=stats.quantile(0.99),
            codes=dict(stats.codes.most_common(20)),
        )

    # One call --------------------------------------------------------------------------------------------------

    async def handle(self, scope: Scope, receive: Receive, send: Send, rest: bytes) -> None:
        """Forward one request. `rest` is its path below the prefix."""
        stats = self.stats
        stats.calls += 1
        if stats.in_flight >= self.config.concurrency:
            await self.refuse(
                send, scope, refusal(503, "Too many calls of this upstream are in flight", wait=1)
            )
            return
        stats.in_flight += 1
        began = monotonic()
        try:
            await self._forward(scope, receive, send, rest, began)
        finally:
            stats.in_flight -= 1
            stats.ends.append(monotonic())

    async def _forward(self, scope: Scope, receive: Receive, send: Send, rest: bytes, began: float) -> None:
        method: str = scope["method"]
        try:
            headers = request_headers(scope["headers"], scope["http_version"])
            if traverses(rest) or method in _REFUSED:
                raise BadRequest("" if method in _REFUSED else "the path leaves its prefix")  # noqa: TRY301
            body = NO_BODY
            if headers.length or headers.chunked or (method not in _BODILESS and headers.length is None):
                body = await read_body(receive, headers.length, self.config.max_body, self.config.timeout)
        except BadRequest as error:
            await self.refuse(
                send, scope, refusal(405 if method in _REFUSED else 400, str(error)), close=True
            )
            return
        except (TooLarge, TooSlow, CallerGone) as error:
            await self.refuse_body(scope, receive, send, error)
            return
        try:
            await self._call(scope, send, rest, headers, body, began)
        except BodyFailed:
            await self.refuse_body(scope, receive, send, body.failure)

    async def _call(
        self, scope: Scope, send: Send, rest: bytes, headers: RequestHeaders, body: Body, began: float
    ) -> None:
        method: str = scope["method"]
        query: bytes = scope["query_string"]
        target = self.target(rest.decode("latin-1"))
        if query:
            target = f"{target}?{query.decode('latin-1')}"
        url = URL(target, encoded=True)
        if self._troubled:
            call = self.new_call(method, rest, url, headers, body)
            await self._recover(call, None, send, began)
            return
        sent = CLOCK.now()
        if self.config.kind != "http":
            call = self.new_call(method, rest, url, headers, body)
            try:
                answer = await self.attempt(call)
            except (FailedTry, *_IO) as error:
                await self._recover(call, self._outcome(sent, error), send, began)
            else:
                self.stats.times.append(monotonic() - began)
                if call.failed:
                    answer.extra = self.facts(call.trace, 1, ())
                await self._send(send, answer, method, rest)
            return
        try:
            response = await self._request(method, url, headers, body)
            status = response.status
            if headers.key is not None:
                self._note_proof(headers.key, rest, response, len(body.data))
            if status < 400 and self.config.vendor is None:
                length = response.content_length
                small = length is not None and length <= SMALL
                with closed_on_error(response):
                    whole = await read_up_to(response, SMALL, within=BODY_TIME) if small else b""
                self.stats.times.append(monotonic() - began)
                if small and response.content.at_eof():
                    raw = response_headers(response.raw_headers, status)
                    await send_whole(send, status, raw, whole)
                    return
                answer = Answer(response, whole)
            else:
                answer = await self.examined(response, self.new_call(method, rest, url, headers, body))
        except (FailedTry, *_IO) as error:
            call = self.new_call(method, rest, url, headers, body)
            await self._recover(call, self._outcome(sent, error), send, began)
            return
        await self._send(send, answer, method, rest)

    def target(self, rest: str) -> str:
        """Return the address of a path below the prefix."""
        return self.base + rest

    def new_call(self, method: str, rest: bytes, url: URL, headers: RequestHeaders, body: Body) -> Call:
        """Return the description of a call that needs more than forwarding."""
        return Call(method, rest.decode("latin-1"), url, headers, body)

    async def refuse_body(self, scope: Scope, receive: Receive, send: Send, error: Exception | None) -> None:
        """Answer a caller whose body cannot be read, if it is still there."""
        if isinstance(error, TooLarge):
            await self.refuse(send_and_read_on(send, receive), scope, refusal(413), close=True)
        elif isinstance(error, TooSlow):
            await self.refuse(send, scope, refusal(408), close=True)

    async def refuse(self, send: Send, scope: Scope, fault: Fault, *, close: bool = False) -> None:
        """Answer a call that is not sent on."""
        self.stats.refused += 1
        trace = trace_id(None)
        name = f"{scope['method']} {scope['path']}"
        recording.emit(
            "gateway",
            "refused",
            fault,
            name=name,
            trace_id=trace,
            status=fault.status,
            upstream=self.config.name,
        )
        facts = [(FACTS["upstream"], self.config.name.encode()), (FACTS["trace"], trace.encode())]
        await send_problem(send, replace(fault, trace_id=trace), facts, close=close)

    async def _send(self, send: Send, answer: Answer, method: str, rest: bytes) -> None:
        """Send an answer. A failure in the middle closes the connection, so that the caller does not take it as whole."""
        try:
            await send_answer(send, answer)
        except _IO as error:
            if isinstance(error, TimeoutError) and method == "GET" and is_stream(answer.response):
                # A stream without events is no failure: it ends, and the caller opens it again.
                await send({"type": "http.response.body", "body": b""})
                answer.close()
                return
            fault = from_exception(error)
            self.stats.codes[fault.code] += 1
            self.stats.failed += 1
            recording.emit(
                "gateway",
                "passed-on",
                fault,
                name=f"{method} {rest.decode('latin-1')}",
                upstream=self.config.name,
                trace_id=trace_id(None),
                facts={"when": "in the middle of the answer"},
            )
            # The server closes the connection, because the answer is not complete.
            answer.close()
        except BaseException:
            answer.close()
            raise

    # Recovery --------------------------------------------------------------------------------------------------

    def operation(self, call: Call) -> Operation:
        """Return what is known about repeating a call: its method, and a key that the service honours."""
        key = call.headers.key
        # Clients add keys for services that may ignore them, so a key alone proves nothing.
        honoured = key is not None and self.proofs.honours(
            self.origin, call.path, call.method, key, size=len(call.body.data), said=self.config.keyed
        )
        return replace(
            Operation.of_http(
                call.method,
                name=f"{call.method} {call.path.partition('?')[0]}",
                key=key if honoured else None,
                url=f"{self.base}{call.path}",
                trace_id=call.trace,
            ),
            binding="gateway",
        )

    def _note_proof(self, key: str, rest: bytes, response: aiohttp.ClientResponse, size: int) -> None:
        """Note what an answer proves about idempotency keys."""
        succeeded = 200 <= response.status < 300
        path = rest.decode("latin-1")
        self.proofs.answered(self.origin, path, key, response.headers, succeeded=succeeded, size=size)

    def _outcome(self, sent: float, error: Exception) -> Outcome:
        fault = error.fault if isinstance(error, FaultError) else from_exception(error)
        return Outcome(sent=sent, ended=CLOCK.now(), error=error, fault=fault)

    def caller_repeats(self, call: Call) -> bool:
        """Whether only the caller may repeat a call, because it would not learn of tries that are made here."""
        return False

    async def before_repeats(self, call: Call) -> None:
        """Find out what has to be known before a call is repeated."""

    async def attempt(self, call: Call) -> Answer:
        """Make one try. Return the answer, or raise FailedTry or what the client library raises."""
        call.keep(None)
        return await self.examined(await self.request(call), call)

    async def request(self, call: Call) -> aiohttp.ClientResponse:
        """Send a call, and return its answer."""
        if call.repeated:
            given = left()
            stated = outgoing_left(tries_left(self.config.policy.attempts), time_left(), given.call)
            headers = copy(call.headers)
            headers.sent = call.headers.with_left(stated)
            return await self._request(call.method, call.url, headers, call.body)
        return await self._request(call.method, call.url, call.headers, call.body)

    async def _request(
        self, method: str, url: URL, headers: RequestHeaders, body: Body
    ) -> aiohttp.ClientResponse:
        try:
            return await self.session.request(
                method,
                url,
                headers=headers.sent,
                data=None if body is NO_BODY else body.to_send,
                allow_redirects=False,
            )
        except Exception as error:
            if body.failure is not None:
                raise BodyFailed from error
            raise

    async def examined(self, response: aiohttp.ClientResponse, call: Call) -> Answer:
        """Return an answer that did not fail; raise FailedTry for one that did."""
        with closed_on_error(response):
            fault, answer = await self.read(response, call)
        if fault is not None:
            raise FailedTry.of(fault, answer)
        return answer

    async def read(self, response: aiohttp.ClientResponse, call: Call) -> tuple[Fault | None, Answer]:
        """Read as much of an answer as shows whether it failed."""
        vendor = self.config.vendor
        if response.status >= 400:
            return await read_failure(response, vendor, own=self.config.own)
        if vendor is not None and is_stream(response):
            data = await first_event(response)
            return failure_in_stream(data, vendor), Answer(response, data)
        length = response.content_length
        if length is not None and length <= SMALL:
            return None, Answer(response, await read_up_to(response, SMALL, within=BODY_TIME))
        return None, Answer(response)

    async def _recover(self, call: Call, first: Outcome | None, send: Send, began: float) -> None:
        """Repeat a failed call as far as that is safe, and send the last answer."""
        self._troubled = True
        stats = self.stats
        tries = 0 if first is None else 1
        if first is not None and isinstance(first.error, FailedTry):
            call.keep(first.error.answer)

        async def attempt() -> Answer:
            nonlocal tries
            call.repeated = tries > 0
            tries += 1
            try:
                return await self.attempt(call)
            except FailedTry as failed:
                call.keep(failed.answer)
                raise

        policy = self.config.policy
        if not call.body.whole or self.caller_repeats(call):
            policy = replace(policy, attempts=1, rules={})
        await self.before_repeats(call)
        scoped = self.upstream.scope(route_scope(call.method, call.path, dict(call.headers.sent)))
        history: list[Attempt] = []
        plan = Plan(policy=policy, upstream=scoped, operation=self.operation(call)).checked()
        try:
            with handling(call.headers.traceparent, call.headers.left):
                answer = await arun_flow(plan, attempt, (), {}, history, first)
        except FaultError as error:
            # Tries that the upstream made below count, too.
            made = max(tries, error.fault.attempt or 0)
            error.fault = replace(error.fault, attempt=made)
            await self._give_up(call, error, self.facts(call.trace, made, history), send, began)
            return
        finally:
            self._troubled = not self.upstream.idle
        if first is not None or tries > 1 or call.failed:
            stats.recovered += tries > 1
            answer.extra = self.facts(call.trace, tries, history)
        stats.times.append(monotonic() - began)
        await self._send(send, answer, call.method, call.path.encode("latin-1"))

    def facts(self, trace: str, tries: int, history: Sequence[Attempt]) -> list[tuple[bytes, bytes]]:
        """Return the headers that say which upstream failed, how many tries were made and how long they waited."""
        seconds = 0.0
        if history:
            # The time between the tries: a wait and the time in the queue of the upstream overlap.
            last = history[-1]
            whole = last.started + last.duration - (history[0].started - history[0].parked)
            seconds = max(0.0, whole - sum(each.duration for each in history))
        return [
            (FACTS["upstream"], self.config.name.encode()),
            (FACTS["tries"], b"%d" % tries),
            (FACTS["waited"], b"%.3f" % seconds),
            (FACTS["trace"], trace.encode()),
        ]

    async def _give_up(
        self, call: Call, error: FaultError, facts: list[tuple[bytes, bytes]], send: Send, began: float
    ) -> None:
        """Pass the last failure on: the upstream's own answer unchanged, or a problem of ours if there is none."""
        stats, answer = self.stats, call.answer
        stats.failed += 1
        stats.codes[error.fault.code] += 1
        stats.times.append(monotonic() - began)
        if answer is None:
            await self.send_own(send, call, error.fault, facts)
        elif self.config.translate and not _has_format(answer, error.fault, self.config.translate):
            answer.close()
            await self.send_translated(send, call, error.fault, facts)
        else:
            answer.extra = facts
            await self._send(send, answer, call.method, call.path.encode("latin-1"))

    async def send_own(self, send: Send, call: Call, fault: Fault, facts: list[tuple[bytes, bytes]]) -> None:
        """Answer for an upstream that gave no answer."""
        status = 504 if fault.code == "TIMEOUT" else 503 if fault.retry_after is not None else 502
        own = refusal(status, wait=fault.retry_after)
        if fault.executed is not Executed.NO and fault.retryable and not self.operation(call).repeatable:
            # The call may have had its effect: the caller checks before it sends it again (M2).
            own = in_doubt(replace(own, attempt=fault.attempt), "http")
        await send_problem(send, replace(own, executed=fault.executed, trace_id=call.trace), facts)

    async def send_translated(
        self, send: Send, call: Call, fault: Fault, facts: list[tuple[bytes, bytes]]
    ) -> None:
        """Answer with the failure in the format that the configuration asks for."""
        from amends.core.wire import compact
        from amends.dialects import adcp
        from amends.foreign import from_upstream

        if self.config.translate == "problem":
            await send_problem(send, replace(fault, trace_id=fault.trace_id or call.trace), facts)
            return
        translated = from_upstream(fault, own=self.config.own)
        body = compact({"adcp_error": adcp.encode_alone(translated)}) or b"{}"
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body)), *facts]
        await send_whole(send, fault.status or 502, headers, body)


def _has_format(answer: Answer, fault: Fault, name: str) -> bool:
    """Return whether a failed answer has the format that it would be translated to; then it passes unchanged."""
    if name == "problem":
        return any(
            header == b"content-type" and MEDIA_TYPE.encode() in value for header, value in answer.headers
        )
    return fault.origin is not None and fault.origin.dialect == name
