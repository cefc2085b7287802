"""
MCP clients and servers of different generations, over HTTP: see `generations` for what is translated.

Which generation a server speaks is found out by a request that it refuses. A server that speaks both is never translated.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING
from uuid import uuid4

import aiohttp
import msgspec
from yarl import URL

from amends.gateway import generations
from amends.gateway.answers import (
    EVENT_END,
    Answer,
    FailedTry,
    WrittenAnswer,
    closed_on_error,
    data_of,
    first_event,
    is_stream,
    read_failure,
    read_response,
    read_up_to,
)
from amends.gateway.generations import Client
from amends.gateway.rpc import Message, loses_session, read_members

if TYPE_CHECKING:
    from amends.gateway.mcp import McpCall, McpUpstream

__all__ = ["Bridge"]

SESSION = "mcp-session-id"
_OURS = "amends-"
"""The ids of sessions that the gateway keeps for a server without sessions begin with this."""
_KEPT = 10_000
_LARGEST = 16 * 1024 * 1024
"""Bytes of an answer or event that is translated."""
_JSON = [(b"content-type", b"application/json")]
_PER_REQUEST = frozenset(
    {
        *(
            "content-length",
            "content-type",
            "accept",
            "accept-encoding",
            "last-event-id",
            "user-agent",
            "date",
        ),
        *("traceparent", "tracestate", "baggage", "idempotency-key", "x-request-id"),
    }
)
"""Headers that do not say who the caller is. Every other is part of the identity of a session."""
_POST = [("accept", "application/json, text/event-stream"), ("content-type", "application/json")]

Translate = Callable[[Message], Message]


class _Session:
    """A session at the server for clients that have none."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.id: str | None = None
        """The server's id; empty if it names none."""
        self.result: dict[str, object] = {}
        """What it said about itself."""


class Bridge:
    """Translates the calls of one upstream where its generation and the client's differ."""

    def __init__(self, upstream: McpUpstream) -> None:
        self._upstream = upstream
        self._modern_only: bool | None = None
        self._legacy_only: bool | None = None
        self._clients: OrderedDict[str, Client] = OrderedDict()
        self._sessions: OrderedDict[tuple[tuple[str, str], ...], _Session] = OrderedDict()
        self.marked: dict[str, dict[tuple[str, ...], str]] = {}
        """The arguments of tools that a server of 2026-07-28 wants in headers, too."""

    # Decisions -------------------------------------------------------------------------------------------------

    async def answer(self, call: McpCall) -> Answer | None:
        """Return the answer to a call that is translated; None for one that passes as it is."""
        client = self._clients.get(call.client_session or "")
        if client is not None:
            return await self._for_legacy_client(call, client)
        if call.client_session is not None and call.client_session.startswith(_OURS):
            return _written({"error": "the session has ended: initialize again"}, 404)
        rpc = call.rpc
        if rpc is not None and rpc.method == "initialize" and self._modern_only:
            return await self._open_client(call)
        if rpc is not None and self._legacy_only and generations.is_modern(rpc.params):
            return await self._for_modern_client(call)
        return None

    def may_differ(self, call: McpCall, status: int, body: bytes) -> bool:
        """Return whether an answer can be the refusal of another generation, and note one that shows the same."""
        rpc = call.rpc
        if rpc is None or not rpc.wants_answer:
            return False
        modern, opens = generations.is_modern(rpc.params), rpc.method == "initialize"
        known = self._legacy_only if modern else self._modern_only if opens else False
        if known is not None:
            return False
        if generations.refuses_generation(status, body):
            return True
        if status < 300:
            self._legacy_only = False if modern else self._legacy_only
            self._modern_only = False if opens else self._modern_only
        return False

    async def translated(self, call: McpCall, *, send: bool) -> Answer | None:
        """Find out which generation a server speaks that has failed a call, and return the translated answer; None without `send`."""
        assert call.rpc is not None
        modern = generations.is_modern(call.rpc.params)
        client = (Client.of_envelope if modern else Client.of_initialize)(call.rpc.params)
        discovered = await self._discover(call, client)
        if not modern:
            self._modern_only = discovered is not None
            return await self._open_client(call) if discovered is not None else None
        if discovered is not None:
            self._legacy_only = False
            return None
        if await self._session(call, client) is None:
            return None
        self._legacy_only = True
        return await self._for_modern_client(call) if send else None

    # A client with a session, a server without -----------------------------------------------------------------

    async def _open_client(self, call: McpCall) -> Answer | None:
        assert call.rpc is not None
        client = Client.of_initialize(call.rpc.params)
        discovered = await self._discover(call, client)
        if discovered is None:
            self._modern_only = None
            return None
        id = _OURS + uuid4().hex
        self._clients[id] = client
        if len(self._clients) > _KEPT:
            self._clients.popitem(last=False)
        result = generations.initialize_result(discovered, client, self._upstream.config.name)
        answer = generations.response(call.rpc.id, result)
        return _written(answer, 200, (SESSION.encode(), id.encode()))

    async def _discover(self, call: McpCall, client: Client) -> dict[str, object] | None:
        headers = [*_identity(call), *_POST, *generations.routing_headers("server/discover", {})]
        found = await self._ask(headers, generations.discover_request(client))
        versions = None if found is None else found.get("supportedVersions")
        return found if isinstance(versions, list) and generations.MODERN in versions else None

    async def _for_legacy_client(self, call: McpCall, client: Client) -> Answer:
        assert call.client_session is not None
        self._clients.move_to_end(call.client_session)
        rpc = call.rpc
        if call.method != "POST":
            if call.method == "DELETE":
                del self._clients[call.client_session]
            return WrittenAnswer(204 if call.method == "DELETE" else 405, [(b"allow", b"POST, DELETE")], b"")
        if rpc is None or not rpc.wants_answer:
            return WrittenAnswer(202, [], b"")
        if rpc.method == "ping":
            return _written(generations.response(rpc.id, {}))
        if rpc.method == "initialize":
            return await self._open_client(call) or _written(generations.error_response(rpc.id, rpc.method))
        if rpc.method not in generations.PASSED:
            return _written(generations.error_response(rpc.id, rpc.method))
        if rpc.tool is not None and rpc.tool not in self.marked:
            await self.lists_tools(call)
        message = generations.request_to_modern(read_members(bytes(call.body.data)) or {}, client)
        headers = [*_identity(call), *_POST, *generations.routing_headers(rpc.method, rpc.params)]
        headers += generations.argument_headers(self.marked.get(rpc.tool or "", {}), rpc.params)
        answer = await self._read(await self._post(headers, message), call, generations.response_to_legacy)
        assert answer is not None
        return answer

    # A client without a session, a server with one -------------------------------------------------------------

    async def _for_modern_client(self, call: McpCall) -> Answer | None:
        rpc = call.rpc
        assert rpc is not None
        if not rpc.wants_answer:
            return WrittenAnswer(202, [], b"")
        client = Client.of_envelope(rpc.params)
        session = await self._session(call, client)
        if session is None:
            self._legacy_only = None
            return None
        if rpc.method == "server/discover":
            return _written(generations.response(rpc.id, generations.discover_result(session.result)))
        if rpc.method not in generations.PASSED:
            return _written(generations.error_response(rpc.id, rpc.method), 404)
        message = generations.request_to_legacy(read_members(bytes(call.body.data)) or {})
        method, used = rpc.method, session.id
        answer = None
        for last in (False, True):
            response = await self._post(_in_session(call, session), message)
            answer = await self._read(
                response, call, lambda found: generations.response_to_modern(found, method), last=last
            )
            if answer is not None:
                break
            session = await self._session(call, client, lost=used) or session
        return answer

    async def _session(self, call: McpCall, client: Client, lost: str | None = None) -> _Session | None:
        """Return the session of a caller; open it if there is none, or if the server has lost the one with this id."""
        key = tuple(sorted(_identity(call)))
        session = self._sessions.setdefault(key, _Session())
        self._sessions.move_to_end(key)
        if len(self._sessions) > _KEPT:
            self._sessions.popitem(last=False)
        async with session.lock:
            if session.id is None or session.id == lost:
                headers = [*_identity(call), *_POST]
                response = await self._post(headers, generations.initialize_request(client))
                result = await self._result(response)
                if result is None or not isinstance(result.get("protocolVersion"), str):
                    session.id = None
                    return None
                session.id, session.result = response.headers.get(SESSION, ""), result
                done = await self._post(_in_session(call, session), _INITIALIZED)
                done.close()
        return session

    # Both ------------------------------------------------------------------------------------------------------

    async def lists_tools(self, call: McpCall) -> bool:
        """Let the upstream learn its tools if this call is translated; return whether it is."""
        client = self._clients.get(call.client_session or "")
        if client is None and not (
            self._legacy_only and call.rpc is not None and generations.is_modern(call.rpc.params)
        ):
            return False
        message: Message = {
            "jsonrpc": msgspec.Raw(b'"2.0"'),
            "id": msgspec.Raw(b'"amends-gateway"'),
            "method": msgspec.Raw(b'"tools/list"'),
        }
        if client is not None:
            headers = [*_identity(call), *_POST, *generations.routing_headers("tools/list", {})]
            found = await self._ask(headers, generations.request_to_modern(message, client))
        else:
            session = self._sessions.get(tuple(sorted(_identity(call))))
            found = None if session is None else await self._ask(_in_session(call, session), message)
        if found is not None:
            self._upstream.learn({"result": found})
        return True

    async def _ask(self, headers: list[tuple[str, str]], message: Message) -> dict[str, object] | None:
        return await self._result(await self._post(headers, message))

    async def _post(self, headers: list[tuple[str, str]], message: Message) -> aiohttp.ClientResponse:
        return await self._upstream.session.post(
            URL(self._upstream.config.url, encoded=True),
            headers=headers,
            data=msgspec.json.encode(message),
            allow_redirects=False,
        )

    async def _result(self, response: aiohttp.ClientResponse) -> dict[str, object] | None:
        """Return the result in an answer of which nothing else is needed."""
        async with response:
            if response.status != 200:
                return None
            async with asyncio.timeout(self._upstream.config.timeout):
                data = await read_response(response, _LARGEST)
        message = read_members(data) or {}
        try:
            result = msgspec.json.decode(message.get("result", b"null"))
        except (msgspec.MsgspecError, ValueError, RecursionError):
            return None
        return result if isinstance(result, dict) else None

    async def _read(
        self, response: aiohttp.ClientResponse, call: McpCall, translate: Translate, *, last: bool = True
    ) -> Answer | None:
        """
        Return the translated answer, and raise FailedTry for a failed one.

        None if the server has lost the session and executed nothing, unless this is the last try.
        """
        rpc = call.rpc
        assert rpc is not None
        stream = is_stream(response)
        with closed_on_error(response):
            if response.status >= 400:
                fault, failed = await read_failure(response, self._upstream.config.vendor)
                data = failed.read
            else:
                data = await (first_event(response) if stream else read_up_to(response, _LARGEST))
        if response.status >= 400:
            if not last and loses_session(response.status, data):
                failed.close()
                return None
            if response.status not in {400, 404} or "error" not in (read_members(data) or {}):
                raise FailedTry.of(fault, failed)
        answer: Answer
        if stream:
            answer = _TranslatedStream(
                response, data, translate, lambda event: self._upstream.watch(event, call, rpc)
            )
        else:
            whole = read_members(data)
            kept = [each for each in Answer(response).headers if each[0] not in _REWRITTEN]
            # In the generation with sessions an error has the status 200: 404 would mean that the session is lost.
            status = 200 if response.status in {400, 404} else response.status
            answer = WrittenAnswer(
                status, kept, data if whole is None else msgspec.json.encode(translate(whole))
            )
            response.close()
        found = self._upstream.examine(data, call, rpc, stream=stream)
        if found is not None:
            raise FailedTry.of(found, answer)
        return answer


_INITIALIZED: Message = {
    "jsonrpc": msgspec.Raw(b'"2.0"'),
    "method": msgspec.Raw(b'"notifications/initialized"'),
}
_REWRITTEN = frozenset({b"content-length", SESSION.encode()})


class _TranslatedStream(Answer):
    """A stream of server-sent events whose messages are translated one by one."""

    __slots__ = ("_rest", "_translate", "_watch")

    def __init__(
        self,
        response: aiohttp.ClientResponse,
        read: bytes,
        translate: Translate,
        watch: Callable[[bytes], object],
    ) -> None:
        super().__init__(response, b"")
        self._rest = bytearray(read)
        self._watch = watch
        self._translate = translate

    @property
    def headers(self) -> list[tuple[bytes, bytes]]:
        """The headers for the caller; the length changes."""
        return [each for each in super().headers if each[0] not in _REWRITTEN]

    @property
    def whole(self) -> bool:
        """Never: the events that were read are translated when they are sent."""
        return False

    async def pieces(self) -> AsyncIterator[bytes]:
        """Iterate over the events."""
        rest, content = self._rest, self.response.content
        while True:
            while end := EVENT_END.search(rest):
                event = bytes(rest[: end.end()])
                del rest[: end.end()]
                yield self._event(event)
            if len(rest) > _LARGEST:
                raise aiohttp.ClientPayloadError("an event is too large")
            piece = await content.readany()
            if not piece:
                break
            rest += piece
        if rest:
            yield bytes(rest)

    def _event(self, event: bytes) -> bytes:
        data = data_of(event)
        self._watch(data)
        message = read_members(data)
        if message is None:
            return event
        if "method" in message and "id" in message:
            return b""  # A question to the client, which it was not said to answer.
        if "method" in message:
            return event
        lines = [line for line in event.splitlines() if line and not line.startswith(b"data:")]
        written = b"data: " + msgspec.json.encode(self._translate(message))
        return b"\n".join([*lines, written, b"", b""])


def _identity(call: McpCall) -> list[tuple[str, str]]:
    """Return the headers that say who the caller is."""
    return [
        (name, value)
        for name, value in call.headers.sent
        if name not in _PER_REQUEST and not name.startswith("mcp-")
    ]


def _in_session(call: McpCall, session: _Session) -> list[tuple[str, str]]:
    headers = [*_identity(call), *_POST, ("mcp-protocol-version", str(session.result.get("protocolVersion")))]
    return [*headers, (SESSION, session.id)] if session.id else headers


def _written(message: object, status: int = 200, *headers: tuple[bytes, bytes]) -> WrittenAnswer:
    return WrittenAnswer(status, [*_JSON, *headers], msgspec.json.encode(message))
