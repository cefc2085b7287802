"""
A stdio MCP server as a streamable HTTP endpoint.

Each session has a process of its own; requests without a session (protocol 2026-07-28) share one. A process that has
ended is started again with the session's own `initialize`, and a request that changes nothing is sent again.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import OrderedDict
from time import monotonic
from typing import Any
from uuid import uuid4

import msgspec

from amends.core import recording
from amends.core.fault import Fault
from amends.core.operation import Operation
from amends.gateway.bodies import CallerGone, TooLarge, TooSlow, read_body
from amends.gateway.config import UpstreamConfig
from amends.gateway.headers import BadRequest, request_headers
from amends.gateway.http_upstream import HttpUpstream, Receive, Scope, Send
from amends.gateway.mcp import SESSION, rpc_error_body
from amends.gateway.refusals import refusal, send_whole
from amends.gateway.rpc import READS, failure_in, read_request, tool_operations
from amends.gateway.stdio_process import Gone, Message, StdioProcess, read_members
from amends.serving.tracing import trace_id

__all__ = ["StdioUpstream"]

_SESSIONS = 64
"""Processes at once. The session that was used least recently ends."""
_LARGEST = 4 * 1024 * 1024
_INITIALIZED: Message = {
    "jsonrpc": msgspec.Raw(b'"2.0"'),
    "method": msgspec.Raw(b'"notifications/initialized"'),
}
_ALIVE = 15.0
_JSON = [(b"content-type", b"application/json")]


class _Session:
    """A client's session and its process."""

    def __init__(self, id: str, command: tuple[str, ...]) -> None:
        self.id = id
        self.initialize: Message | None = None
        self.lock = asyncio.Lock()
        self.streams: list[asyncio.Queue[Message]] = []
        """The open streams of this session's client, the newest last."""
        self._command = command
        self._process: StdioProcess | None = None
        self.restarts = 0

    async def process(self) -> StdioProcess:
        """Return the running process; start it, and initialize it again if the session was initialized before."""
        async with self.lock:
            if self._process is not None and not self._process.ended:
                return self._process
            again = self._process is not None
            self._process = process = await StdioProcess.start(self._command)
            process.on_message = self._take
            if again:
                self.restarts += 1
            if again and self.initialize is not None:
                await process.request(self.initialize)
                await process.send(_INITIALIZED)
            return process

    def _take(self, message: Message) -> bool:
        if not self.streams or self.streams[-1].full():
            return False
        self.streams[-1].put_nowait(message)
        return True

    async def stop(self) -> None:
        """End the process."""
        if self._process is not None:
            await self._process.stop()


class StdioUpstream(HttpUpstream):
    """Serves one command."""

    def __init__(self, config: UpstreamConfig) -> None:
        super().__init__(config)
        self._sessions: OrderedDict[str, _Session] = OrderedDict()
        self._tools: dict[str, Operation] = {}

    async def close(self) -> None:
        """End all processes."""
        await asyncio.gather(*(each.stop() for each in self._sessions.values()))
        self._sessions.clear()

    async def handle(self, scope: Scope, receive: Receive, send: Send, rest: bytes) -> None:
        """Serve one request of an MCP client."""
        stats = self.stats
        stats.calls += 1
        stats.in_flight += 1
        began = monotonic()
        try:
            await self._serve(scope, receive, send)
        finally:
            stats.in_flight -= 1
            stats.ends.append(monotonic())
            stats.times.append(monotonic() - began)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            headers = request_headers(scope["headers"])
            if scope["method"] == "POST":
                body = await read_body(receive, headers.length, _LARGEST, self.config.timeout)
                text = bytes(body.data) if body.whole else b"".join([piece async for piece in body.to_send])
        except (BadRequest, TooLarge, TooSlow) as error:
            await self.refuse(send, scope, refusal(413 if isinstance(error, TooLarge) else 400), close=True)
            return
        except CallerGone:
            return
        id = next((value for name, value in headers.sent if name == SESSION), "")
        session = self._sessions.get(id) if id else None
        if session is None and id:
            await self.refuse(send, scope, refusal(404, "The session has ended: initialize again"))
        elif scope["method"] == "POST":
            accepts = next((value for name, value in headers.sent if name == "accept"), "")
            trace = trace_id(headers.traceparent)
            await self._post(send, scope, text, session, trace, streams="text/event-stream" in accepts)
        elif scope["method"] == "GET" and session is not None:
            await self._stream(send, receive, session)
        elif scope["method"] == "DELETE" and session is not None:
            del self._sessions[id]
            await session.stop()
            await send_whole(send, 204, [], b"")
        else:
            await self.refuse(send, scope, refusal(405, "POST a message, or GET the stream of a session"))

    async def _post(
        self, send: Send, scope: Scope, data: bytes, session: _Session | None, trace: str, *, streams: bool
    ) -> None:
        message = read_members(data)
        rpc = read_request(data)
        if message is None:
            await self.refuse(send, scope, refusal(400, "The body is not one JSON-RPC message"))
            return
        opened = rpc is not None and rpc.method == "initialize"
        if session is None:
            session = await self._new_session(uuid4().hex if opened else "")
        if rpc is None or not rpc.wants_answer:
            with contextlib.suppress(Gone, OSError):
                await (await session.process()).send(message)
            await send_whole(send, 202, [(b"content-length", b"0")], b"")
            return
        if opened:
            session.initialize = message
        asked = asyncio.ensure_future(self._ask(session, message, rpc.method, rpc.tool, trace))
        try:
            await self._answer(send, session, asked, opened=opened, streams=streams)
        finally:
            asked.cancel()

    async def _new_session(self, id: str) -> _Session:
        session = self._sessions.get(id)
        if session is None:
            session = self._sessions[id] = _Session(id, self.config.command)
            if len(self._sessions) > _SESSIONS:
                _, oldest = self._sessions.popitem(last=False)
                await oldest.stop()
        self._sessions.move_to_end(id)
        return session

    async def _ask(
        self, session: _Session, message: Message, method: str, tool: str | None, trace: str
    ) -> bytes:
        """Return the response. After the process has ended, a request that changes nothing is sent once more."""
        known = self._tools.get(tool or "")
        safe = method in READS or (known is not None and known.repeatable)
        fault = Fault(code="SERVICE_UNAVAILABLE", executed="maybe")  # type: ignore[arg-type]
        name = method if tool is None else f"{method} {tool}"
        for tries in (1, 2):
            started = False
            try:
                process = await session.process()
                started = True
                response = await process.request(message)
            except (Gone, OSError):
                fault = Fault(code="SERVICE_UNAVAILABLE", executed="maybe" if started else "no")  # type: ignore[arg-type]
                again = tries == 1 and (safe or not started)
                self._record("retry" if again else "gave-up", fault, name, trace, tries)
                if not again:
                    self.stats.failed += 1
                    self.stats.codes[fault.code] += 1
                    return rpc_error_body(message["id"], fault)
                continue
            if tries > 1:
                self.stats.recovered += 1
                self._record("recovered", fault, name, trace, tries)
            self._read(response, method, name, trace)
            return msgspec.json.encode(response)
        raise AssertionError("unreachable")

    def _record(self, outcome: str, fault: Fault, name: str, trace: str, tries: int) -> None:
        recording.emit(
            "gateway", outcome, fault, name=name, trace_id=trace, attempt=tries, upstream=self.config.name
        )

    def _read(self, response: Message, method: str, name: str, trace: str) -> None:
        """Learn annotations from a listing, and record a failure."""
        if method == "tools/list":
            self._tools.update(tool_operations(_plain(response)))
        if "error" in response or b'"isError"' in bytes(response.get("result", msgspec.Raw(b""))):
            fault = failure_in(_plain(response), native=True)
            if fault is not None:
                self.stats.failed += 1
                self.stats.codes[fault.code] += 1
                self._record("passed-on", fault, name, trace, 1)

    async def _answer(
        self, send: Send, session: _Session, asked: asyncio.Future[bytes], *, opened: bool, streams: bool
    ) -> None:
        """Send the response as JSON; as a stream if the server sends messages before it."""
        headers = [(SESSION.encode(), session.id.encode())] if opened and session.id else []
        messages: asyncio.Queue[Message] = asyncio.Queue(1000)
        if streams:
            session.streams.append(messages)
        try:
            if streams:
                first = asyncio.ensure_future(messages.get())
                while not asked.done() and not first.done():
                    await _first_of(asked, first)
                if first.done():
                    await _send_stream_start(send, headers)
                    await _send_event(send, msgspec.json.encode(first.result()))
                    await self._events(send, messages, asked)
                    return
                first.cancel()
            body = await asked
        finally:
            if streams:
                session.streams.remove(messages)
        length = (b"content-length", b"%d" % len(body))
        await send_whole(send, 200, [*_JSON, length, *headers], body)

    async def _events(
        self, send: Send, messages: asyncio.Queue[Message], asked: asyncio.Future[bytes]
    ) -> None:
        while not asked.done() or not messages.empty():
            following = asyncio.ensure_future(messages.get())
            await _first_of(asked, following)
            if following.done():
                await _send_event(send, msgspec.json.encode(following.result()))
            else:
                following.cancel()
        await _send_event(send, asked.result())
        await send({"type": "http.response.body", "body": b""})

    async def _stream(self, send: Send, receive: Receive, session: _Session) -> None:
        """Send the messages that the server sends by itself, until the client leaves."""
        messages: asyncio.Queue[Message] = asyncio.Queue(1000)
        process = await session.process()
        while process.waiting:
            messages.put_nowait(process.waiting.popleft())
        session.streams.insert(0, messages)
        await _send_stream_start(send, [])
        left = asyncio.ensure_future(_left(receive))
        try:
            while not left.done():
                following = asyncio.ensure_future(messages.get())
                await _first_of(left, following)
                if following.done():
                    await _send_event(send, msgspec.json.encode(following.result()))
                else:
                    following.cancel()
                    await send({"type": "http.response.body", "body": b": \n\n", "more_body": True})
        finally:
            left.cancel()
            session.streams.remove(messages)


async def _first_of(*futures: asyncio.Future[Any]) -> None:
    """Wait until one of them is done, at most until a sign of life is due."""
    await asyncio.wait(futures, return_when=asyncio.FIRST_COMPLETED, timeout=_ALIVE)


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _send_stream_start(send: Send, headers: list[tuple[bytes, bytes]]) -> None:
    kind = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-cache")]
    await send({"type": "http.response.start", "status": 200, "headers": [*kind, *headers]})


async def _send_event(send: Send, message: bytes) -> None:
    body = b"event: message\ndata: " + message + b"\n\n"
    await send({"type": "http.response.body", "body": body, "more_body": True})


def _plain(message: Message) -> Any:
    return msgspec.json.decode(msgspec.json.encode(message))
