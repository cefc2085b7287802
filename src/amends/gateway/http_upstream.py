"""
One HTTP upstream: forwards calls, and repeats failed ones where a repeat is safe.

A call that succeeds at once takes the short way through `handle`. Only a failure builds a `Call` with an operation and
runs the flow of `amends.recovery`. After the first byte of an answer was sent to the caller nothing is repeated.
"""

from __future__ import annotations

import asyncio
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
from amends.gateway.bodies import KEPT, Body, BodyFailed, CallerGone, TooLarge, TooSlow, read_body
from amends.gateway.config import UpstreamConfig
from amends.gateway.connections import new_session
from amends.gateway.crowd import Crowd
from amends.gateway.headers import BadRequest, RequestHeaders, request_headers, traverses, with_credentials
from amends.gateway.health import INTERVAL
from amends.gateway.refusals import FACTS, refusal, send_and_read_on, send_problem, send_whole
from amends.gateway.repeats import Repeats, until_near, waited_in
from amends.gateway.stats import Stats, UpstreamStatus
from amends.http.asgi_types import Receive, Scope, Send
from amends.http.key_support import KeySupport
from amends.recovery.clock import CLOCK
from amends.recovery.failover import Failover
from amends.recovery.history import Attempt
from amends.recovery.incoming import left, outgoing_left
from amends.recovery.operation_flow import Outcome
from amends.recovery.origins import CREDENTIALS, route_scope
from amends.recovery.scope import time_left, tries_left
from amends.recovery.upstream import Upstream
from amends.serving.tracing import trace_id
from amends.vendors.computing import only_computes, route_computes
from amends.vendors.model import Vendor
from amends.vendors.registry import is_service, vendor, vendor_of_origin

__all__ = ["NO_BODY", "SMALL", "Call", "HttpUpstream"]


SMALL = 64 * 1024
"""An answer of this size is read before it is sent, so that a connection that breaks in it can be repeated."""
_BODILESS = frozenset({"GET", "HEAD", "OPTIONS", "DELETE"})
_REFUSED = frozenset({"CONNECT", "TRACE"})
_IO = (aiohttp.ClientError, TimeoutError, OSError)
NO_BODY = Body(b"", None, 0, 0.0)
SEGMENTS = 4
"""Segments of a path that make a route: `/api/v1/orders/17` and `/api/v1/users/17` are two."""
KEPT_COMPUTED = 8 * 1024 * 1024
"""Bytes of the body of a model's call that are kept; images are part of it."""
_MOST_HELD = 128 * 1024 * 1024
"""Bytes of such bodies that one upstream keeps. Calls beyond it are streamed, and not repeated."""
HELD_BACK = "The upstream is held back after failures, so this call was not sent"
_WHO = frozenset(name.encode() for name in CREDENTIALS)


class Call:
    """One call that did not succeed at once."""

    __slots__ = (
        "_route",
        "answer",
        "body",
        "computes",
        "failed",
        "flying",
        "headers",
        "method",
        "path",
        "repeated",
        "trace",
        "url",
    )

    def __init__(self, method: str, path: str, url: URL, headers: RequestHeaders, body: Body) -> None:
        self.method = method
        self.path = path
        self.url = url
        self.headers = headers
        self.body = body
        self._route = ""
        self.flying: str | None = None
        """The route under which it is counted among the calls in flight."""
        self.computes: bool | None = None
        """Whether it only computes; None: not known yet."""
        self.trace = trace_id(headers.traceparent)
        self.repeated = False
        """Whether a try was made before."""
        self.failed = False
        """Whether the answer reports a failure that is passed on and was recorded."""
        self.answer: Answer | None = None
        """The failed answer of the last try that got one; its connection is open until it is passed on or superseded."""

    @property
    def route(self) -> str:
        """Its credential and route: whose failures say something about this call."""
        if not self._route:
            self._route = route_scope(self.method, self.path, dict(self.headers.sent), segments=SEGMENTS)
        return self._route

    def keep(self, answer: Answer | None) -> None:
        """Keep the failed answer of the last try, or that it got none, and close that of the try before."""
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
        self.crowd = Crowd(config.concurrency)
        parts = urlsplit(config.url)
        self.vendor = config.vendor or vendor_of_origin(f"{parts.scheme}://{parts.netloc}")
        """The service, by the user's word or by its host."""
        self.service: Vendor | None = None
        if self.vendor is not None and is_service(self.vendor) and config.kind == "http":
            self.service = vendor(self.vendor)
        self.last_failure: Fault | None = None
        self.down = False
        """Whether its health path says that it does not work."""
        self._held_bytes = 0
        """Bytes of large bodies that are kept for repeats."""
        self.upstream = Upstream(config.name, vendor=self.vendor, own=config.own, keyed=config.keyed)
        self.origin = f"{parts.scheme}://{parts.netloc}"
        self.base = self.origin + parts.path.rstrip("/")
        self.proofs = KeySupport()
        self._troubled = False
        self._session: aiohttp.ClientSession | None = None

    @property
    def _is_idle(self) -> bool:
        """Whether a call can be sent without asking whether it may be."""
        return self.upstream.idle and not self.down

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

    def held(self) -> dict[str, float]:
        """Return the credentials and routes that are held back, each with the seconds until a call may be sent."""
        return self.upstream.held(CLOCK.now())

    def set_down(self) -> None:
        """Answer for the upstream until its health path answers again."""
        self.down = self._troubled = True

    def status(self) -> UpstreamStatus:
        """Return the figures for the page."""
        stats, found, held = self.stats, self.upstream.snapshot(), self.held()
        ramps = any(self.upstream.scope(name).snapshot().state == "ramp" for name in found.scopes)
        last = self.last_failure
        return UpstreamStatus(
            name=self.config.name,
            kind=self.config.kind,
            prefix=self.config.prefix or "/",
            state="shut" if held or self.down else "ramp" if ramps else found.state,
            resumes_in=max(held.values(), default=INTERVAL if self.down else 0.0),
            waiting=self.crowd.waiting,
            in_flight=self.crowd.in_flight,
            calls=stats.calls,
            failed=stats.failed,
            recovered=stats.recovered,
            refused=stats.refused,
            rate=stats.rate(),
            p50=stats.quantile(0.5),
            p99=stats.quantile(0.99),
            codes=dict(stats.codes.most_common(20)),
            down=self.down,
            held=tuple(sorted({" ".join(name.split(" ")[:2]) for name in held})),
            last_failure="" if last is None else f"{last.code} {last.status or ''}".rstrip(),
        )

    def scope_for(self, call: Call) -> Upstream:
        """Return the state of a call's credential and route."""
        return self.upstream.scope(call.route)

    def service_for(self, call: Call) -> Upstream | Failover:
        """Return what recovery calls."""
        return self.scope_for(call)

    # One call --------------------------------------------------------------------------------------------------

    async def handle(self, scope: Scope, receive: Receive, send: Send, rest: bytes) -> None:
        """Forward one request. `rest` is its path below the prefix."""
        stats = self.stats
        stats.calls += 1
        crowd, route = self.crowd, None
        if crowd.crowded:
            route = _route_of(scope, rest)
            if not crowd.admits(route):
                await self.refuse(
                    send, scope, refusal(503, "Too many calls of this upstream are in flight", wait=1)
                )
                return
            scope["amends.route"] = route
        crowd.enter(route)
        began = monotonic()
        try:
            await self._forward(scope, receive, send, rest, began)
        finally:
            crowd.leave(route)
            stats.ends.append(monotonic())

    async def _forward(self, scope: Scope, receive: Receive, send: Send, rest: bytes, began: float) -> None:
        method: str = scope["method"]
        try:
            headers = request_headers(scope["headers"], scope["http_version"])
            if traverses(rest) or method in _REFUSED:
                raise BadRequest("" if method in _REFUSED else "the path leaves its prefix")  # noqa: TRY301
            body = NO_BODY
            if headers.length or headers.chunked or (method not in _BODILESS and headers.length is None):
                most = self._kept_bytes(method, rest, headers.length)
                body = await read_body(
                    receive, headers.length, self.config.max_body, self.config.timeout, most
                )
        except BadRequest as error:
            await self.refuse(
                send, scope, refusal(405 if method in _REFUSED else 400, str(error)), close=True
            )
            return
        except (TooLarge, TooSlow, CallerGone) as error:
            await self.refuse_body(scope, receive, send, error)
            return
        large = len(body.data) if len(body.data) > KEPT else 0
        self._held_bytes += large
        try:
            await self._call(scope, send, rest, headers, body, began)
        except BodyFailed:
            await self.refuse_body(scope, receive, send, body.failure)
        finally:
            self._held_bytes -= large

    def _kept_bytes(self, method: str, rest: bytes, length: int | None) -> int:
        """Return how many bytes of a body are kept for repeats: more for calls of models, whose conversations are long."""
        if self.service is None or length is None or length <= KEPT or length > KEPT_COMPUTED:
            return KEPT
        if self._held_bytes + length > _MOST_HELD:
            return KEPT
        path = urlsplit(self.base).path + rest.decode("latin-1")
        return KEPT_COMPUTED if route_computes(self.service, method, path) else KEPT

    async def _call(
        self, scope: Scope, send: Send, rest: bytes, headers: RequestHeaders, body: Body, began: float
    ) -> None:
        method: str = scope["method"]
        query: bytes = scope["query_string"]
        target = self.target(rest.decode("latin-1"))
        if query:
            target = f"{target}?{query.decode('latin-1')}"
        url = URL(target, encoded=True)
        call: Call | None = None
        sent = CLOCK.now()
        if self._troubled or self.config.kind != "http":
            call = self.new_call(method, rest, url, headers, body)
            call.flying = scope.get("amends.route")
        if call is not None and self._troubled:
            await self._recover(call, None, send, began)
            return
        try:
            if headers.limit is None or headers.limit >= self.config.timeout:
                answer = await self._first_try(method, rest, url, headers, body, call)
            else:
                async with asyncio.timeout(until_near(headers.limit) - (monotonic() - began)):
                    answer = await self._first_try(method, rest, url, headers, body, call)
        except (FailedTry, *_IO) as error:
            if call is None:
                call = self.new_call(method, rest, url, headers, body)
                call.flying = scope.get("amends.route")
            await self._recover(call, self._outcome(sent, error), send, began)
            return
        self.stats.answered(monotonic() - began)
        if call is not None and call.failed:
            answer.extra = self.facts(call.trace, 1, ())
        await self._send(send, answer, method, rest)

    async def _first_try(
        self, method: str, rest: bytes, url: URL, headers: RequestHeaders, body: Body, call: Call | None
    ) -> Answer:
        """Make the first try; without a `Call` while nothing but its answer has to be known."""
        if call is not None:
            return await self.attempt(call)
        response = await self._request(method, url, headers, body)
        status = response.status
        if headers.key is not None:
            self._note_proof(headers.key, rest, response, len(body.data))
        if status >= 400 or self.vendor is not None:
            return await self.examined(response, self.new_call(method, rest, url, headers, body))
        length = response.content_length
        with closed_on_error(response):
            small = length is not None and length <= SMALL
            return Answer(response, await read_up_to(response, SMALL, within=BODY_TIME) if small else b"")

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
            self.stats.failed_with(fault.code)
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
        operation = Operation.of_http(
            call.method,
            name=f"{call.method} {call.path.partition('?')[0]}",
            key=key if honoured else None,
            url=f"{self.base}{call.path}",
            trace_id=call.trace,
        )
        return replace(operation, binding="gateway", computes=self.computes(call))

    def computes(self, call: Call) -> bool:
        """Return whether a call only computes, so that a repeat costs its price and nothing else."""
        if call.computes is None:
            service, path = self.service, urlsplit(self.base).path + call.path
            call.computes = (
                service is not None
                and self.config.repeat_computations
                and call.body.whole
                and route_computes(service, call.method, path)
                and only_computes(
                    service,
                    call.body.data,
                    {name.lower(): value for name, value in call.headers.sent},
                    call.url.raw_query_string,
                )
            )
        return call.computes

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
                headers=with_credentials(headers.sent, self.config.credentials)
                if self.config.credentials
                else headers.sent,
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
        if response.status >= 400:
            return await read_failure(response, self.vendor, own=self.config.own)
        if self.vendor is not None and is_stream(response):
            data = await first_event(response)
            return failure_in_stream(data, self.vendor), Answer(response, data)
        length = response.content_length
        if length is not None and length <= SMALL:
            return None, Answer(response, await read_up_to(response, SMALL, within=BODY_TIME))
        return None, Answer(response)

    async def _recover(self, call: Call, first: Outcome | None, send: Send, began: float) -> None:
        """Repeat a failed call as far as that is safe and somebody waits for it, and send the last answer."""
        self._troubled = True
        crowd, route = self.crowd, call.route
        room = crowd.has_room_to_wait(route)
        crowd.leave(call.flying)
        crowd.park(route)
        try:
            await self.before_repeats(call)
            repeats = Repeats(self, call, first, began, room=room)
            await repeats.run()
        except BaseException:
            call.keep(None)
            raise
        finally:
            crowd.unpark(route)
            crowd.enter(call.flying)
            self._troubled = not self._is_idle
        stats, tries, answer = self.stats, repeats.tries, repeats.answer
        stats.repeats += max(0, tries - 1)
        stats.waited += repeats.waited
        facts = self.facts(call.trace, repeats.reported_tries, repeats.history, self.served_by(call))
        if answer is None:
            assert repeats.error is not None
            await self._give_up(call, repeats, facts, send, began)
            return
        call.keep(None)
        if first is not None or tries > 1 or call.failed:
            stats.recovered += tries > 1
            answer.extra = facts
        stats.answered(monotonic() - began)
        await self._send(send, answer, call.method, call.path.encode("latin-1"))

    def served_by(self, call: Call) -> str:
        """Return the name of the upstream that was called last."""
        return self.config.name

    def facts(
        self, trace: str, tries: int, history: Sequence[Attempt], name: str = ""
    ) -> list[tuple[bytes, bytes]]:
        """Return the headers that say which upstream failed, how many tries were made and how long they waited."""
        seconds = waited_in(history)
        return [
            (FACTS["upstream"], (name or self.config.name).encode()),
            (FACTS["tries"], b"%d" % tries),
            (FACTS["waited"], b"%.3f" % seconds),
            (FACTS["trace"], trace.encode()),
        ]

    async def _give_up(
        self, call: Call, repeats: Repeats, facts: list[tuple[bytes, bytes]], send: Send, began: float
    ) -> None:
        """Pass the last failure on: the upstream's own answer unchanged, or a problem of ours if there is none."""
        stats, answer, error = self.stats, call.answer, repeats.error
        assert error is not None
        stats.failed_with(error.fault.code)
        stats.answered(monotonic() - began)
        self.last_failure = error.fault
        if error.fault.executed is not Executed.NO and error.fault.retryable and not repeats.repeatable:
            stats.doubts += 1
        if answer is None:
            await self.send_own(send, call, error.fault, facts, sent=repeats.tries > 0)
        elif self.config.translate and not _has_format(answer, error.fault, self.config.translate):
            answer.close()
            await self.send_translated(send, call, error.fault, facts)
        else:
            answer.extra = facts
            await self._send(send, answer, call.method, call.path.encode("latin-1"))

    async def send_own(
        self, send: Send, call: Call, fault: Fault, facts: list[tuple[bytes, bytes]], *, sent: bool = True
    ) -> None:
        """Answer for an upstream that gave no answer, or to which the call was not `sent` because it is held back."""
        if not sent:
            # The code and the status are those of another call's failure; nothing else of it is.
            own = replace(refusal(503, HELD_BACK, wait=fault.retry_after), code=fault.code)
            own = replace(
                own, vocabulary=fault.vocabulary, recovery=fault.recovery, status=fault.status or 503
            )
            await send_problem(send, replace(own, trace_id=call.trace), facts)
            return
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


def _route_of(scope: Scope, rest: bytes) -> str:
    """Return the credential and route of a request whose headers are not read yet."""
    headers = {
        name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"] if name in _WHO
    }
    return route_scope(scope["method"], rest.decode("latin-1"), headers, segments=SEGMENTS)


def _has_format(answer: Answer, fault: Fault, name: str) -> bool:
    """Return whether a failed answer has the format that it would be translated to; then it passes unchanged."""
    if name == "problem":
        return any(
            header == b"content-type" and MEDIA_TYPE.encode() in value for header, value in answer.headers
        )
    return fault.origin is not None and fault.origin.dialect == name
