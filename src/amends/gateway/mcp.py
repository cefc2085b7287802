"""
An MCP server behind the gateway, over streamable HTTP or the legacy SSE transport.

- A session that the server lost (404) is opened again with the client's own `initialize`, and the request is sent again:
  it was not executed. The client keeps its session id.
- A tool is repeated if its annotations say that a repeat is safe. They are learned from listings that pass, and asked for
  when a call has failed.
- JSON-RPC errors and tool errors pass unchanged: `code`, `message`, `data`, `isError`, `structuredContent`, `_meta`.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from urllib.parse import urlsplit

import aiohttp
import msgspec
from msgspec.structs import replace
from yarl import URL

from amends.carriers.mcp import result
from amends.core import recording
from amends.core.enums import Executed
from amends.core.fault import Fault
from amends.core.operation import Operation
from amends.core.vocabularies.adcp import VOCABULARY
from amends.core.wire import compact
from amends.dialects import record
from amends.foreign import from_upstream
from amends.foreign.in_doubt import in_doubt
from amends.gateway.answers import (
    BODY_TIME,
    EVENT_END,
    LARGEST_EVENT,
    Answer,
    FailedTry,
    WatchedStream,
    WrittenAnswer,
    data_of,
    first_event,
    is_stream,
    read_failure,
    read_response,
    read_up_to,
    send_answer,
)
from amends.gateway.bodies import Body
from amends.gateway.bridge import Bridge
from amends.gateway.config import UpstreamConfig
from amends.gateway.generations import is_modern, marked_tools, refuses_request
from amends.gateway.headers import RequestHeaders
from amends.gateway.http_upstream import SMALL, Call, HttpUpstream
from amends.gateway.refusals import send_whole
from amends.gateway.rpc import (
    READS,
    Request,
    answers_in,
    failure_in,
    loses_session,
    may_have_failed,
    read_request,
    tool_operations,
)
from amends.http.asgi_types import Send
from amends.recovery.incoming import left_in
from amends.serving.adcp_error import error_object, sentence

__all__ = ["SESSION", "McpUpstream", "adcp_body", "rpc_error_body"]

SESSION = "mcp-session-id"
_VERSION = "mcp-protocol-version"
_WRITTEN = "2025-11-25"
"""The version of the protocol whose form translated results have."""
_SESSIONS = 10_000
"""Sessions whose `initialize` is remembered, each of a few hundred bytes."""
_TOOLS = 10_000
_LARGEST_INITIALIZE = 16 * 1024
_LARGEST_LISTING = 1_000_000
_INITIALIZED = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'
_LIST = b'{"jsonrpc":"2.0","id":"amends-gateway","method":"tools/list","params":{}}'


class _Session:
    """One session of a client."""

    __slots__ = ("current", "initialize", "lock")

    def __init__(self, current: str, initialize: bytes) -> None:
        self.current = current
        """The id that the server knows it by now."""
        self.initialize = initialize
        self.lock = asyncio.Lock()


class McpCall(Call):
    """A call of an MCP server, with what was read of its request."""

    __slots__ = ("client_session", "native", "reopened", "rpc")

    def __init__(self, method: str, path: str, url: URL, headers: RequestHeaders, body: Body) -> None:
        super().__init__(method, path, url, headers, body)
        self.rpc: Request | None = read_request(body.data) if method == "POST" and body.whole else None
        self.client_session = next((value for name, value in headers.sent if name == SESSION), None)
        self.reopened = False
        self.native: Fault | None = None
        """The failure in an answer that says nothing about repeating it."""


class McpUpstream(HttpUpstream):
    """Forwards to one MCP server; `A2aUpstream` reads JSON-RPC in the same way."""

    def __init__(self, config: UpstreamConfig) -> None:
        super().__init__(config)
        self._sessions: OrderedDict[str, _Session] = OrderedDict()
        self._tools: dict[str, Operation] = {}
        self.bridge = Bridge(self)

    def target(self, rest: str) -> str:
        """Return the endpoint's address; a path below it, as the legacy transport names, is one of the same server."""
        return self.config.url if rest in {"", "/"} else self.origin + rest

    def new_call(self, method: str, rest: bytes, url: URL, headers: RequestHeaders, body: Body) -> McpCall:
        """Return the call with its session id as the server knows it."""
        call = McpCall(method, rest.decode("latin-1"), url, headers, body)
        self._use_session(call)
        return call

    def _use_session(self, call: McpCall) -> None:
        session = self._sessions.get(call.client_session or "")
        if session is not None and call.client_session is not None:
            self._sessions.move_to_end(call.client_session)
            sent = call.headers.sent
            call.headers.sent = [
                (name, session.current if name == SESSION else value) for name, value in sent
            ]

    async def attempt(self, call: Call) -> Answer:
        """Make one try, translated if the server speaks another generation of the protocol than the client."""
        assert isinstance(call, McpCall)
        answer = await self.bridge.answer(call)
        if answer is not None:
            return answer
        failed: FailedTry | None = None
        try:
            answer = await super().attempt(call)
        except FailedTry as error:
            failed, answer = error, error.answer
        if answer is not None and self.bridge.may_differ(call, answer.status, answer.read):
            # What may have been executed is not sent again; the next call is translated.
            refused = refuses_request(answer.status, answer.read)
            translated = await self.bridge.translated(call, send=refused or self.operation(call).repeatable)
            if translated is not None:
                answer.close()
                return translated
        if failed is not None:
            raise failed
        assert answer is not None
        return answer

    # Reading ---------------------------------------------------------------------------------------------------

    async def read(self, response: aiohttp.ClientResponse, call: Call) -> tuple[Fault | None, Answer]:
        """Read an answer as far as the first event, learn from it, and open a lost session again."""
        assert isinstance(call, McpCall)
        rpc = call.rpc
        if response.status >= 400:
            fault, failed = await read_failure(response, self.config.vendor)
            lost = not call.reopened and loses_session(response.status, failed.read)
            if lost and await self._reopen(call):
                failed.close()
                return await self.read(await self.request(call), call)
            return fault, failed
        if call.method == "DELETE" and call.client_session is not None:
            self._sessions.pop(call.client_session, None)
        stream = is_stream(response)
        if call.method == "GET" and stream and call.path in {"", "/"}:
            return None, Answer(response, await self._rewritten(response))
        if rpc is None or not rpc.wants_answer:
            return None, Answer(response)
        if rpc.method == "initialize":
            self._remember(call, response)
        length = response.content_length
        if stream:
            data = await first_event(response)
        elif length is None or length <= SMALL:
            # Servers that write their answers in chunks give no length.
            data = await read_up_to(response, SMALL, within=BODY_TIME)
            if not response.content.at_eof():
                return None, Answer(response, data)
        else:
            return None, Answer(response)
        found = self.examine(data, call, rpc, stream=stream)
        if found is None and call.native is not None and self.config.translate:
            response.close()
            return None, self._translated(rpc, call.native)
        if stream and found is None and not call.failed:
            if self.config.translate:
                return None, _TranslatedFailures(
                    response,
                    data,
                    lambda event: self.watch(event, call, rpc),
                    lambda event: self._failed_event(event, rpc),
                )
            return None, WatchedStream(response, data, lambda event: self.watch(event, call, rpc))
        return found, Answer(response, data)

    def examine(self, data: bytes, call: McpCall, rpc: Request, *, stream: bool) -> Fault | None:
        """Return the structured failure in an answer, and record any other."""
        if rpc.method == "tools/list":
            for message in answers_in(data, stream=stream):
                self.learn(message)
        if not may_have_failed(data):
            return None
        for message in answers_in(data, stream=stream):
            fault = failure_in(message, via=self.config.kind)
            if fault is not None:
                return fault
            fault = failure_in(message, via=self.config.kind, native=True)
            if fault is not None:
                # A failed task of A2A keeps its form: it has an id that the caller needs.
                call.native = fault if self.config.kind == "mcp" or _is_error(message) else None
                self._record(fault, call, rpc)
        return None

    def watch(self, event: bytes, call: McpCall, rpc: Request) -> None:
        """Record the failure in an event of a stream that is being passed on, the first of a call."""
        if call.failed or not may_have_failed(event):
            return
        for message in answers_in(event, stream=False):
            fault = failure_in(message, via=self.config.kind, native=True)
            if fault is not None:
                self._record(fault, call, rpc)

    def _failed_event(self, event: bytes, rpc: Request) -> bytes | None:
        """Return the translated data of an event of a stream that is a failed answer, or None."""
        if not may_have_failed(event):
            return None
        for message in answers_in(event, stream=False):
            fault = failure_in(message, via=self.config.kind, native=True)
            if fault is not None and (self.config.kind == "mcp" or _is_error(message)):
                dialect = None if fault.origin is None else fault.origin.dialect
                return None if dialect == self.config.translate else adcp_body(rpc, fault, self.config)
        return None

    def _record(self, fault: Fault, call: McpCall, rpc: Request) -> None:
        call.failed = True
        self.stats.failed_with(fault.code)
        recording.emit(
            "gateway", "passed-on", fault, name=_name(rpc), trace_id=call.trace, upstream=self.config.name
        )

    def learn(self, message: object) -> None:
        """Note what a listing of tools says about repeating them, and about headers of their arguments."""
        found = tool_operations(message)
        if len(self._tools) + len(found) <= _TOOLS:
            self._tools.update(found)
            self.bridge.marked.update(marked_tools(message))

    async def _rewritten(self, response: aiohttp.ClientResponse) -> bytes:
        """Return the first event of a stream; the legacy transport's names a path, which gets the gateway's prefix."""
        if response.headers.get(SESSION) or self.config.prefix == "":
            return b""
        if "/sse" not in urlsplit(self.config.url).path:
            return b""
        data = await first_event(response)
        if not data.startswith((b"event: endpoint", b"event:endpoint")):
            return data
        head, mark, tail = data.partition(b"data:")
        path = tail.lstrip()
        origin = self.origin.encode()
        path = path.removeprefix(origin)
        if not path.startswith(b"/"):
            return data
        return head + mark + b" " + self.config.prefix.encode() + path

    # Sessions --------------------------------------------------------------------------------------------------

    def _remember(self, call: McpCall, response: aiohttp.ClientResponse) -> None:
        """Remember the `initialize` of a new session."""
        id = response.headers.get(SESSION)
        if id is not None and len(call.body.data) <= _LARGEST_INITIALIZE and len(id) <= 512:
            self._sessions[id] = _Session(id, bytes(call.body.data))
            self._sessions.move_to_end(id)
            if len(self._sessions) > _SESSIONS:
                self._sessions.popitem(last=False)

    async def _reopen(self, call: McpCall) -> bool:
        """Open a session that the server has lost again. Return whether the request can be sent again."""
        client = call.client_session
        session = None if client is None else self._sessions.get(client)
        if session is None or not call.body.whole or call.method == "DELETE":
            return False
        call.reopened = True
        used = next(value for name, value in call.headers.sent if name == SESSION)
        async with session.lock:
            # Another call may have opened it in the meantime.
            if session.current == used and not await self._initialize(session, call):
                return False
        call.headers.sent = [
            (name, session.current if name == SESSION else value) for name, value in call.headers.sent
        ]
        return True

    async def _initialize(self, session: _Session, call: McpCall) -> bool:
        """Send the client's own `initialize` again, with the credentials of its current request."""
        dropped = {SESSION, _VERSION, "content-length", "last-event-id", "accept", "content-type"}
        headers = [(name, value) for name, value in call.headers.sent if name not in dropped]
        headers += [("accept", "application/json, text/event-stream"), ("content-type", "application/json")]
        url = URL(self.config.url, encoded=True)
        async with self.session.post(
            url, headers=headers, data=session.initialize, allow_redirects=False
        ) as response:
            id = response.headers.get(SESSION)
            if response.status != 200 or id is None:
                return False
            async with asyncio.timeout(self.config.timeout):
                data = await read_response(response, _LARGEST_LISTING)
            answers = answers_in(data, stream=False)
        result = answers[0].get("result") if answers and isinstance(answers[0], dict) else None
        if not isinstance(result, dict):
            return False
        version = result.get("protocolVersion")
        headers.append((SESSION, id))
        if isinstance(version, str):
            headers.append((_VERSION, version))
        async with self.session.post(url, headers=headers, data=_INITIALIZED, allow_redirects=False):
            pass
        session.current = id
        return True

    # Recovery --------------------------------------------------------------------------------------------------

    def operation(self, call: Call) -> Operation:
        """Return what is known about repeating a call: its method, or the annotations of its tool."""
        assert isinstance(call, McpCall)
        rpc = call.rpc
        if rpc is None:
            return replace(super().operation(call), read_only=call.method == "GET")
        tool = rpc.tool
        known = self._tools.get(tool) if tool is not None else None
        found = known or Operation(read_only=rpc.method in READS)
        return replace(
            found, name=_name(rpc), url=self.config.url, trace_id=call.trace, binding="gateway", method="POST"
        )

    def caller_repeats(self, call: Call) -> bool:
        """
        Whether the caller states how many calls it has left: then it repeats failed calls itself.

        A failed tool or task is a successful answer of HTTP, whose headers no client reads.
        """
        assert isinstance(call, McpCall)
        stated = None if call.rpc is None else call.rpc.left
        return any(left_in(text, 0.0).tries is not None for text in (stated, call.headers.left))

    async def before_repeats(self, call: Call) -> None:
        """Ask for the annotations of a tool that are not known yet."""
        assert isinstance(call, McpCall)
        tool = None if call.rpc is None else call.rpc.tool
        if tool is None or tool in self._tools:
            return
        try:
            async with asyncio.timeout(self.config.connect_timeout):
                if await self.bridge.lists_tools(call):
                    return
                await self._list_tools(call)
        except (aiohttp.ClientError, TimeoutError, OSError):
            return

    async def _list_tools(self, call: McpCall) -> None:
        """List the tools with the headers and the envelope of a call."""
        assert call.rpc is not None
        params = call.rpc.params
        dropped = ("content-length", "mcp-method", "mcp-name", "mcp-param-")
        headers = [(name, value) for name, value in call.headers.sent if not name.startswith(dropped)]
        data = _LIST
        if isinstance(params, dict) and is_modern(params):
            headers.append(("mcp-method", "tools/list"))
            data = compact({**msgspec.json.decode(_LIST), "params": {"_meta": params["_meta"]}}) or b""
        url = URL(self.config.url, encoded=True)
        async with self.session.post(url, headers=headers, data=data, allow_redirects=False) as response:
            data = await read_response(response, _LARGEST_LISTING)
        for message in answers_in(data, stream=False):
            self.learn(message)

    async def send_own(
        self, send: Send, call: Call, fault: Fault, facts: list[tuple[bytes, bytes]], *, sent: bool = True
    ) -> None:
        """Answer for a server that gave no answer: a JSON-RPC error if the call has an id."""
        assert isinstance(call, McpCall)
        if call.rpc is None or not call.rpc.wants_answer:
            await super().send_own(send, call, fault, facts, sent=sent)
            return
        body = rpc_error_body(call.rpc.id, fault, operation=self.operation(call))
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body)), *facts]
        await send_whole(send, 200, headers, body)

    async def send_translated(
        self, send: Send, call: Call, fault: Fault, facts: list[tuple[bytes, bytes]]
    ) -> None:
        """Answer with the failure as an AdCP error: of the tool that was called, else of the request."""
        assert isinstance(call, McpCall)
        if call.rpc is None or not call.rpc.wants_answer:
            await super().send_translated(send, call, fault, facts)
            return
        answer = self._translated(call.rpc, fault)
        answer.extra = facts
        await send_answer(send, answer)

    def _translated(self, rpc: Request, fault: Fault) -> WrittenAnswer:
        body = adcp_body(rpc, fault, self.config)
        return WrittenAnswer(200, [(b"content-type", b"application/json")], body)


class _TranslatedFailures(WatchedStream):
    """A stream of server-sent events in which a failed answer is translated. Other events pass as they are."""

    __slots__ = ("_buffer", "_translate")

    def __init__(
        self,
        response: aiohttp.ClientResponse,
        read: bytes,
        watch: Callable[[bytes], object],
        translate: Callable[[bytes], bytes | None],
    ) -> None:
        super().__init__(response, b"", watch)
        self._buffer = bytearray(read)
        self._translate = translate

    @property
    def headers(self) -> list[tuple[bytes, bytes]]:
        """The headers for the caller; the length changes."""
        return [header for header in super().headers if header[0] != b"content-length"]

    @property
    def whole(self) -> bool:
        """Never: what was read is translated when it is sent."""
        return False

    async def pieces(self) -> AsyncIterator[bytes]:
        """Iterate over the events."""
        buffer, content = self._buffer, self.response.content
        while True:
            while end := EVENT_END.search(buffer):
                event = bytes(buffer[: end.end()])
                del buffer[: end.end()]
                yield self._event(event)
            if len(buffer) > LARGEST_EVENT:
                raise aiohttp.ClientPayloadError("an event is too large to be translated")
            piece = await content.readany()
            if not piece:
                break
            buffer += piece
        if buffer:
            yield self._event(bytes(buffer))

    def _event(self, event: bytes) -> bytes:
        data = data_of(event)
        self._watch(data)
        written = self._translate(data)
        if written is None:
            return event
        lines = [line for line in event.splitlines() if line and not line.startswith(b"data:")]
        return b"\n".join([*lines, b"data: " + written, b"", b""])


def adcp_body(rpc: Request, fault: Fault, config: UpstreamConfig) -> bytes:
    """Return a failure as an AdCP error: as the result of the tool that was called, else as an error of the request."""
    if rpc.tool is None or config.kind == "a2a":
        return rpc_error_body(rpc.id, fault, own=config.own)
    error = error_object(from_upstream(fault, own=config.own))
    found = result(error, protocol=_WRITTEN, sentence=sentence(error))
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (bytes(rpc.id), compact(found) or b"{}")


def rpc_error_body(
    id: msgspec.Raw, fault: Fault, *, own: bool = False, operation: Operation | None = None
) -> bytes:
    """
    Return a JSON-RPC error with an AdCP error in its data.

    Args:
        id: of the request.
        fault: the failure.
        own: the service is part of our own system.
        operation: the request, if it got no answer. One that changes something is in doubt (M2).

    """
    told = from_upstream(fault, own=own)
    if operation is not None:
        doubtful = fault.executed is not Executed.NO and fault.retryable and not operation.repeatable
        told = in_doubt(told, VOCABULARY.name) if doubtful else told
    error = error_object(told)
    data: dict[str, object] = {"adcp_error": error}
    if operation is not None:
        data |= record.beside(told)
    message = {"code": -32603, "message": error.get("message") or error["code"], "data": data}
    return b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (bytes(id), compact(message) or b"{}")


def _name(rpc: Request) -> str:
    return f"{rpc.method} {rpc.tool}" if rpc.tool is not None else rpc.method


def _is_error(message: object) -> bool:
    """Return whether a message of JSON-RPC is an error, and no result that reports one."""
    return isinstance(message, dict) and "error" in message
