"""
A stdio MCP server as a streamable HTTP endpoint.

Each session has a process of its own; requests without a session (protocol 2026-07-28) share one. A process that has
ended is started again with the session's own `initialize`, and a request that changes nothing is sent again. A server that
speaks the other generation of the protocol is translated, as `generations` describes.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import OrderedDict
from time import monotonic
from typing import NamedTuple
from uuid import uuid4

import msgspec
from msgspec.structs import replace

from amends.core import recording
from amends.core.fault import Fault
from amends.core.operation import Operation
from amends.errors.base import FaultError
from amends.gateway import generations
from amends.gateway.answers import FailedTry
from amends.gateway.bodies import CallerGone, TooLarge, TooSlow, read_body
from amends.gateway.config import UpstreamConfig
from amends.gateway.generations import Client
from amends.gateway.headers import BadRequest, RequestHeaders, request_headers
from amends.gateway.http_upstream import HttpUpstream
from amends.gateway.mcp import SESSION, adcp_body, rpc_error_body
from amends.gateway.refusals import refusal, send_whole
from amends.gateway.rpc import (
    READS,
    Message,
    Request,
    failure_in,
    read_members,
    read_request,
    tool_operations,
)
from amends.gateway.stdio_process import Gone, StdioProcess, Take
from amends.http.asgi_types import Receive, Scope, Send
from amends.recovery.clock import CLOCK
from amends.recovery.drivers import arun_flow
from amends.recovery.history import Attempt
from amends.recovery.incoming import left_in
from amends.recovery.operation_flow import Outcome
from amends.recovery.plan import Plan
from amends.serving.tracing import trace_id

__all__ = ["StdioUpstream"]

_SESSIONS = 64
"""Processes at once. The session that was used least recently ends."""
_LARGEST = 4 * 1024 * 1024
_QUEUED = 1000
"""Messages of the server that wait for a client to read its stream; further ones are dropped."""
_INITIALIZED: Message = {
    "jsonrpc": msgspec.Raw(b'"2.0"'),
    "method": msgspec.Raw(b'"notifications/initialized"'),
}
_ALIVE = 15.0
_JSON = [(b"content-type", b"application/json")]

Queue = asyncio.Queue[Message]


class _Response(NamedTuple):
    """A response for the caller, and the headers that say which upstream failed."""

    body: bytes
    facts: list[tuple[bytes, bytes]]


class _Session:
    """A client's session and its process."""

    def __init__(self, id: str, config: UpstreamConfig) -> None:
        self.id = id
        self.initialize: Message | None = None
        """Opens a session with a new process: the client's own, or ours for clients that have none."""
        self.streams: list[Queue] = []
        """The open streams of this session's client, the newest last."""
        self.client: Client | None = None
        """A client with a session, of a server that has none."""
        self.initialized: dict[str, object] | None = None
        """What a server with sessions said about itself, for clients that have none."""
        self.generation_known = False
        self._config = config
        self._lock = asyncio.Lock()
        self._process: StdioProcess | None = None
        self._stopped = False

    async def process(self) -> StdioProcess:
        """Return the running process; start it, and initialize it again if the session was initialized before."""
        async with self._lock:
            before = self._process
            if self._is_stopped():
                raise Gone
            if before is not None and not before.ended:
                return before
            if before is not None:
                # It may have closed its output only.
                await before.stop()
            self._process = process = await StdioProcess.start(self._config.command)
            if self._is_stopped():
                await process.stop()
                raise Gone
            process.on_message = self._take
            if before is not None and self.initialize is not None:
                try:
                    await process.request(self.initialize, seconds=self._config.timeout)
                    await process.send(_INITIALIZED)
                except TimeoutError:
                    await process.stop()
                    raise Gone from None
            return process

    def _is_stopped(self) -> bool:
        return self._stopped

    def _take(self, message: Message) -> bool:
        """Take a message that belongs to no request. One that several clients could get is dropped."""
        shared = not self.id
        if not self.streams or (shared and len(self.streams) > 1):
            return shared
        if not self.streams[-1].full():
            self.streams[-1].put_nowait(message)
        return True

    async def stop(self) -> None:
        """End the process; a call in flight does not start it again."""
        self._stopped = True
        if self._process is not None:
            await self._process.stop()


class StdioUpstream(HttpUpstream):
    """Serves one command."""

    local_pages = True

    def __init__(self, config: UpstreamConfig) -> None:
        super().__init__(config)
        self._sessions: OrderedDict[str, _Session] = OrderedDict()
        self._tools: dict[str, Operation] = {}

    async def close(self) -> None:
        """End all processes."""
        await asyncio.gather(*(each.stop() for each in self._sessions.values()))
        self._sessions.clear()

    # Requests --------------------------------------------------------------------------------------------------

    async def _forward(self, scope: Scope, receive: Receive, send: Send, rest: bytes, began: float) -> None:
        """Serve one request of an MCP client."""
        method: str = scope["method"]
        data = b""
        largest = min(_LARGEST, self.config.max_body)
        try:
            headers = request_headers(scope["headers"], scope["http_version"])
            if method == "POST":
                body = await read_body(receive, headers.length, largest, self.config.timeout)
                data = bytes(body.data) if body.whole else b"".join([piece async for piece in body.stream()])
        except BadRequest:
            await self.refuse(send, scope, refusal(400), close=True)
            return
        except (TooLarge, TooSlow, CallerGone) as error:
            await self.refuse_body(scope, receive, send, error)
            return
        id = _header(headers, SESSION)
        session = self._sessions.get(id) if id else None
        if session is None and id:
            await self.refuse(send, scope, refusal(404, "The session has ended: initialize again"))
        elif method == "POST":
            await self._post(send, scope, headers, data, session)
        elif method == "GET" and session is not None:
            await self._stream(send, receive, session)
        elif method == "DELETE" and session is not None:
            del self._sessions[id]
            await session.stop()
            await send_whole(send, 204, [], b"")
        else:
            await self.refuse(send, scope, refusal(405, "POST a message, or GET the stream of a session"))
        self.stats.answered(monotonic() - began)

    async def _post(
        self, send: Send, scope: Scope, headers: RequestHeaders, data: bytes, session: _Session | None
    ) -> None:
        message = read_members(data)
        rpc = read_request(data)
        if message is None:
            await self.refuse(send, scope, refusal(400, "The body is not one JSON-RPC message"))
            return
        opened = rpc is not None and rpc.method == "initialize"
        if session is None:
            session = await self._new_session(uuid4().hex if opened else "")
        self._sessions.move_to_end(session.id)
        if rpc is None or not rpc.wants_answer:
            with contextlib.suppress(Gone, OSError):
                await self._notify(session, message, rpc)
            await send_whole(send, 202, [(b"content-length", b"0")], b"")
            return
        if opened:
            session.initialize = message
        queue: Queue = asyncio.Queue(_QUEUED)
        trace = trace_id(headers.traceparent)
        asked = asyncio.ensure_future(self._ask(session, message, rpc, trace, _put_into(queue)))
        try:
            streams = "text/event-stream" in _header(headers, "accept")
            await self._answer(send, session, asked, queue, opened=opened, streams=streams)
        finally:
            asked.cancel()

    async def _notify(self, session: _Session, message: Message, rpc: Request | None) -> None:
        """Pass on a message that has no response."""
        if session.client is not None or (rpc is not None and not session.id):
            return  # There is no notification of a client that a server without sessions reads.
        process = await session.process()
        if rpc is not None and rpc.method == "notifications/cancelled":
            # The process knows the request by another number.
            params = read_members(bytes(message.get("params", b""))) or {}
            await process.cancel(bytes(params.get("requestId", b"")))
            return
        await process.send(message)

    async def _new_session(self, id: str) -> _Session:
        session = self._sessions.get(id)
        if session is None:
            session = self._sessions[id] = _Session(id, self.config)
            if len(self._sessions) > _SESSIONS:
                _, oldest = self._sessions.popitem(last=False)
                await oldest.stop()
        return session

    # Recovery --------------------------------------------------------------------------------------------------

    async def _ask(
        self, session: _Session, message: Message, rpc: Request, trace: str, take: Take
    ) -> _Response:
        """Return the response. A failure that says so, or of a request that changes nothing, is repeated."""
        known = self._tools.get(rpc.tool or "") or Operation(read_only=rpc.method in READS)
        operation = replace(known, name=_name(rpc), trace_id=trace, binding="gateway")
        begun = False
        tries = 0
        response: Message | None = None

        def taking(of_it: Message) -> None:
            nonlocal begun
            begun = True
            take(of_it)

        async def attempt() -> None:
            nonlocal response, tries
            response = None
            tries += 1
            response, again = await self._try(session, message, rpc, operation, taking)
            tries += again
            fault = failure_in(_plain(response))
            if fault is not None:
                raise FailedTry.of(fault, None)

        sent, history = CLOCK.now(), list[Attempt]()
        failed: FaultError | None = None
        try:
            await attempt()
        except FailedTry as first:
            failed = first
        if failed is not None and response is not None and not begun:
            outcome = Outcome(sent=sent, ended=CLOCK.now(), error=failed, fault=failed.fault)
            policy = self.config.policy
            if left_in(rpc.left, 0.0).tries is not None:
                # The caller repeats failed calls itself, and would not learn of tries that are made here.
                policy = replace(policy, attempts=1, rules={})
            plan = Plan(policy=policy, upstream=self.upstream, operation=operation).checked()
            try:
                await arun_flow(plan, attempt, (), {}, history, outcome)
            except FaultError as last:
                failed = last
            else:
                failed = None
                self.stats.recovered += 1
        elif failed is not None:
            self._record("gave-up", failed.fault, operation.name, trace, tries)
        facts = self.facts(trace, tries, history)
        if response is None:
            assert failed is not None
            self._count(failed.fault)
            unanswered = replace(failed.fault, attempt=tries)
            return _Response(rpc_error_body(message["id"], unanswered, operation=operation), facts)
        fault = failed.fault if failed is not None else self._read(response, rpc, trace)
        if fault is None:
            return _Response(msgspec.json.encode(response), facts if tries > 1 else [])
        self._count(fault)
        if self.config.translate and (fault.origin is None or fault.origin.dialect != self.config.translate):
            return _Response(adcp_body(rpc, fault, self.config), facts)
        return _Response(msgspec.json.encode(response), facts)

    async def _try(
        self, session: _Session, message: Message, rpc: Request, operation: Operation, take: Take
    ) -> tuple[Message, int]:
        """
        Return the response, and 1 if the request was sent to a new process, because the first had ended.

        Raises:
            FailedTry: there is no response.

        """
        ended: Fault | None = None
        for again in (0, 1):
            started = False
            try:
                await session.process()
                started = True
                response = await self._exchange(session, message, rpc, operation, take)
            except (Gone, OSError, TimeoutError) as error:
                late = isinstance(error, TimeoutError)
                code = "TIMEOUT" if late else "SERVICE_UNAVAILABLE"
                fault = Fault(code=code, executed="maybe" if started else "no")  # type: ignore[arg-type]
                only_once = left_in(rpc.left, 0.0).tries == 1
                if again or late or (started and (only_once or not operation.repeatable)):
                    raise FailedTry.of(fault, None) from None
                self._record("retry", fault, operation.name, operation.trace_id or "", 1)
                ended = fault
                continue
            if ended is not None:
                self.stats.recovered += 1
                self._record("recovered", ended, operation.name, operation.trace_id or "", 2)
            return response, again
        raise AssertionError("unreachable")

    async def _exchange(
        self, session: _Session, message: Message, rpc: Request, operation: Operation, take: Take
    ) -> Message:
        """Send a request, translated if the server speaks the other generation, and return the response."""
        if session.client is not None or session.initialized is not None:
            return await self._translated(session, message, rpc, take)
        process = await session.process()
        modern = generations.is_modern(rpc.params)
        response = await process.request(message, seconds=self.config.timeout, take=take, cancellable=modern)
        if session.generation_known or not (modern or rpc.method == "initialize"):
            return response
        session.generation_known = True
        body = msgspec.json.encode(response)
        if not generations.refuses_generation(200, body):
            return response
        found = await self._finds_other_generation(session, process, rpc, modern=modern)
        # What may have been executed is not sent again; the next call is translated.
        if found and (operation.repeatable or generations.refuses_request(200, body)):
            return await self._translated(session, message, rpc, take)
        return response

    async def _finds_other_generation(
        self, session: _Session, process: StdioProcess, rpc: Request, *, modern: bool
    ) -> bool:
        """Ask a server that refused a request in the words of the other generation."""
        client = (Client.of_envelope if modern else Client.of_initialize)(rpc.params)
        discovered = await self._result(process, generations.discover_request(client))
        if discovered is not None and not modern:
            session.client, session.initialize = client, None
            session.initialized = discovered
            return True
        if discovered is not None or not modern:
            return False
        initialize = generations.initialize_request(client)
        session.initialized = await self._result(process, initialize)
        if session.initialized is None:
            return False
        session.initialize = initialize
        await process.send(_INITIALIZED)
        return True

    async def _result(self, process: StdioProcess, message: Message) -> dict[str, object] | None:
        found = _plain(await process.request(message, seconds=self.config.timeout))
        result = found.get("result")
        return result if isinstance(result, dict) else None

    async def _translated(self, session: _Session, message: Message, rpc: Request, take: Take) -> Message:
        about = session.initialized or {}
        client = session.client
        if client is not None and rpc.method == "initialize":
            return generations.response(
                rpc.id, generations.initialize_result(about, client, self.config.name)
            )
        if client is not None and rpc.method == "ping":
            return generations.response(rpc.id, {})
        if client is None and not generations.is_modern(rpc.params):
            return generations.error_response(rpc.id, rpc.method)
        if client is None and rpc.method == "server/discover":
            return generations.response(rpc.id, generations.discover_result(about))
        if rpc.method not in generations.PASSED:
            return generations.error_response(rpc.id, rpc.method)
        process = await session.process()
        if client is not None:
            sent = generations.request_to_modern(message, client)
            response = await process.request(sent, seconds=self.config.timeout, take=take)
            return generations.response_to_legacy(response)
        sent = generations.request_to_legacy(message)
        response = await process.request(sent, seconds=self.config.timeout, take=take, cancellable=True)
        return generations.response_to_modern(response, rpc.method)

    def _record(self, outcome: str, fault: Fault, name: str, trace: str, tries: int) -> None:
        recording.emit(
            "gateway", outcome, fault, name=name, trace_id=trace, attempt=tries, upstream=self.config.name
        )

    def _read(self, response: Message, rpc: Request, trace: str) -> Fault | None:
        """Learn annotations from a listing; record a failure that says nothing about repeating it, and return it."""
        if rpc.method == "tools/list":
            self._tools.update(tool_operations(_plain(response)))
        if "error" not in response and b'"isError"' not in bytes(response.get("result", msgspec.Raw(b""))):
            return None
        fault = failure_in(_plain(response), native=True)
        if fault is not None:
            self._record("passed-on", fault, _name(rpc), trace, 1)
        return fault

    def _count(self, fault: Fault) -> None:
        self.stats.failed_with(fault.code)

    # Answers ---------------------------------------------------------------------------------------------------

    async def _answer(
        self,
        send: Send,
        session: _Session,
        asked: asyncio.Future[_Response],
        queue: Queue,
        *,
        opened: bool,
        streams: bool,
    ) -> None:
        """Send the response as JSON; as a stream if the server sends messages before it."""
        headers = [(SESSION.encode(), session.id.encode())] if opened and session.id else []
        if streams:
            session.streams.append(queue)
            try:
                if await _send_messages(send, queue, asked, headers):
                    await _send_event(send, asked.result().body)
                    await send({"type": "http.response.body", "body": b""})
                    return
            finally:
                session.streams.remove(queue)
        body, facts = await asked
        length = (b"content-length", b"%d" % len(body))
        await send_whole(send, 200, [*_JSON, length, *headers, *facts], body)

    async def _stream(self, send: Send, receive: Receive, session: _Session) -> None:
        """Send the messages that the server sends by itself, until the client leaves."""
        queue: Queue = asyncio.Queue(_QUEUED)
        try:
            process = await session.process()
        except (Gone, OSError):
            await send_whole(send, 502, [(b"content-length", b"0")], b"")
            return
        while process.waiting:
            queue.put_nowait(process.waiting.popleft())
        session.streams.insert(0, queue)
        left = asyncio.ensure_future(_left(receive))
        try:
            await _send_stream_start(send, [])
            await _send_messages(send, queue, left, None)
        finally:
            left.cancel()
            session.streams.remove(queue)


async def _send_messages(
    send: Send,
    queue: Queue,
    until: asyncio.Future[_Response] | asyncio.Future[None],
    headers: list[tuple[bytes, bytes]] | None,
) -> bool:
    """
    Send messages as events until a future is done, with signs of life between them.

    `headers`: the stream is begun by the first message; None: it has begun. Return whether it has.
    """
    following = asyncio.ensure_future(queue.get())
    try:
        while True:
            await asyncio.wait((until, following), return_when=asyncio.FIRST_COMPLETED, timeout=_ALIVE)
            if following.done():
                if headers is not None:
                    await _send_stream_start(send, headers)
                    headers = None
                await _send_event(send, msgspec.json.encode(following.result()))
                following = asyncio.ensure_future(queue.get())
            elif until.done():
                return headers is None
            elif headers is None:
                await send({"type": "http.response.body", "body": b": \n\n", "more_body": True})
    finally:
        following.cancel()


def _put_into(queue: Queue) -> Take:
    def put(message: Message) -> None:
        if not queue.full():
            queue.put_nowait(message)

    return put


def _name(rpc: Request) -> str:
    return rpc.method if rpc.tool is None else f"{rpc.method} {rpc.tool}"


def _header(headers: RequestHeaders, wanted: str) -> str:
    return next((value for name, value in headers.sent if name == wanted), "")


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _send_stream_start(send: Send, headers: list[tuple[bytes, bytes]]) -> None:
    kind = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-cache")]
    await send({"type": "http.response.start", "status": 200, "headers": [*kind, *headers]})


async def _send_event(send: Send, message: bytes) -> None:
    body = b"event: message\ndata: " + message + b"\n\n"
    await send({"type": "http.response.body", "body": body, "more_body": True})


def _plain(message: Message) -> dict[str, object]:
    return msgspec.json.decode(msgspec.json.encode(message), type=dict[str, object])
