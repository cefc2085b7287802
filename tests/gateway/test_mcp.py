"""MCP through the gateway: sessions that survive a restart, tools by their annotations, errors unchanged."""

import asyncio
import json

import pytest

import amends
from amends.gateway import answers
from amends.testing import FakeClock
from tests.gateway.peers import Upstream, answer, free_port, get, http, raw, serving
from tests.gateway.test_http_upstream import parts

JSON = b"content-type: application/json"
TOOLS = {
    "result": {
        "tools": [
            {"name": "look", "annotations": {"readOnlyHint": True}},
            {"name": "put", "annotations": {"idempotentHint": True}},
            {"name": "pay", "annotations": {}},
        ]
    }
}


class Server:
    """A small MCP server with sessions; `fail` answers the next calls of tools."""

    def __init__(self):
        self.sessions, self.numbers, self.fail, self.calls, self.seen = set(), 0, [], [], []
        self.lost = answer(404, b"{}", JSON)

    async def __call__(self, request, writer):
        head, _, body = request.partition(b"\r\n\r\n")
        lines = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:])
        session = lines.get(b"mcp-session-id", b"").decode()
        message = json.loads(body)
        self.seen.append((message["method"], session, lines.get(b"authorization")))
        if message["method"] == "initialize":
            self.numbers += 1
            self.sessions.add(f"s{self.numbers}")
            result = {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "x"}}
            self._write(writer, message, {"result": result}, b"mcp-session-id: s%d" % self.numbers)
        elif session not in self.sessions:
            writer.write(self.lost)
        elif "id" not in message:
            writer.write(answer(202))
        elif message["method"] == "tools/list":
            self._write(writer, message, TOOLS)
        else:
            self.calls.append(message["params"]["name"])
            step = self.fail.pop(0) if self.fail else {"result": {"content": [], "isError": False}}
            if step == "close":
                return True
            if isinstance(step, bytes):
                writer.write(step)
            else:
                self._write(writer, message, step)
        return False

    @staticmethod
    def _write(writer, message, members, *headers):
        body = json.dumps({"jsonrpc": "2.0", "id": message["id"], **members}).encode()
        writer.write(answer(200, body, JSON, *headers))


class Client:
    def __init__(self, gateway):
        self.gateway, self.session, self.number = gateway, "", 0

    async def send(self, method, *, notify=False, **params):
        self.number += 1
        message = {"jsonrpc": "2.0", "method": method, "params": params}
        if not notify:
            message["id"] = self.number
        headers = [JSON, b"accept: application/json, text/event-stream", b"authorization: Bearer t"]
        if self.session:
            headers.append(b"mcp-session-id: " + self.session.encode())
        request = get("/seats", *headers, method="POST", body=json.dumps(message).encode())
        status, found, body = parts(await raw(self.gateway, request))
        self.headers = dict(found)
        self.session = self.headers.get(b"mcp-session-id", b"").decode() or self.session
        return status, self.read(body) if body else None

    @staticmethod
    def read(body):
        return json.loads(body)

    async def start(self):
        await self.send("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo={"name": "c"})
        await self.send("notifications/initialized", notify=True)

    async def call(self, tool):
        return await self.send("tools/call", name=tool, arguments={})


class StreamClient(Client):
    """Reads the response out of a stream."""

    @staticmethod
    def read(body):
        events = [line[6:] for line in body.splitlines() if line.startswith(b"data: {")]
        return json.loads(events[-1]) if events else None


def mcp(up, **options):
    return http(
        up, **({"name": "seats", "kind": "mcp", "url": f"{up.url}/mcp", "prefix": "/seats"} | options)
    )


async def test_a_lost_session_is_opened_again():
    """The client keeps its id; its own initialize and its credentials are used; several requests open it once."""
    server = Server()
    async with Upstream(server) as up, serving(mcp(up)) as gateway:
        client = Client(gateway)
        await client.start()
        for _ in range(2):
            server.sessions.clear()
            status, found = await client.call("pay")
            assert (status, found["result"]["isError"]) == (200, False)
        assert client.session == "s1"
        assert server.calls == ["pay", "pay"]
        assert ("initialize", "", b"bearer t") in server.seen[3:]
        stranger = Client(gateway)
        stranger.session = "unknown"
        assert (await stranger.call("pay"))[0] == 404


@pytest.mark.parametrize(("tool", "calls"), [("look", 2), ("put", 2), ("pay", 1), ("unknown", 1)])
async def test_tools_are_repeated_by_their_annotations(tool, calls):
    """The annotations are asked for when a call has failed; an unannotated tool is not repeated."""
    server = Server()
    async with Upstream(server) as up, serving(mcp(up)) as gateway:
        client = Client(gateway)
        await client.start()
        server.fail = ["close"]
        status, found = await client.call(tool)
        assert len(server.calls) == calls
        if calls == 2:
            assert found["result"]["isError"] is False
        else:
            assert (status, found["id"]) == (200, client.number)
            assert found["error"]["data"]["adcp_error"]["code"] == "SERVICE_UNAVAILABLE"
        assert client.headers[b"amends-upstream"] == b"seats"


ERRORS = [
    {"error": {"code": -32602, "message": "No such seat", "data": {"seat": [1, None, 2.50], "x": {}}}},
    {"result": {"isError": True, "content": [{"type": "text", "text": "Disk full"}], "_meta": {"a/b": 1}}},
    {
        "result": {
            "isError": True,
            "content": [{"type": "text", "text": "x"}],
            "structuredContent": {
                "adcp_error": {
                    "code": "CONFLICT",
                    "message": "Taken",
                    "recovery": "correctable",
                    "details": {"k": 1},
                }
            },
        }
    },
]


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("stream", [False, True])
async def test_errors_pass_unchanged_and_count_as_failures(error, stream, tmp_path):
    """`code`, `message`, `data`, `isError`, `structuredContent`, `_meta`: byte for byte, as JSON and as a stream."""
    body = b'{ "jsonrpc":"2.0","id":3, ' + json.dumps(error).encode()[1:]
    whole = answer(200, body, JSON)
    if stream:
        event = b"event: message\ndata: " + body + b"\n\n"
        whole = answer(200, event, b"content-type: text/event-stream")
    server = Server()
    async with Upstream(server) as up, serving(mcp(up)) as gateway:
        with amends.record(f"sqlite:///{tmp_path}/r.db") as recorder:
            client = Client(gateway)
            await client.start()
            server.fail = [whole]
            message = b'{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"pay"}}'
            request = get("/seats", JSON, b"mcp-session-id: s1", method="POST", body=message)
            _, headers, found = parts(await raw(gateway, request))
            headers = dict(headers)
            assert found == whole.partition(b"\r\n\r\n")[2]
            assert headers[b"amends-upstream"] == b"seats"
            assert gateway.statuses()[0].failed == 1
            await asyncio.to_thread(recorder.flush)
            assert recorder.recent()[0].trace_id == headers[b"amends-trace"].decode()
            assert [event.name for event in recorder.recent()] == ["tools/call pay"]


class StreamingServer(Server):
    """Answers as a stream: an id without data, as servers with an event store send it, then the `before`, then the response."""

    before = (b"id: 1\ndata: \n\n", b": ping\n\n")

    @classmethod
    def _write(cls, writer, message, members, *headers):
        async def stream():
            for event in (*cls.before, b"data: %b\n\n" % body):
                writer.write(b"%x\r\n%b\r\n" % (len(event), event))
                await asyncio.sleep(0.01)  # each in a packet of its own
            writer.write(b"0\r\n\r\n")

        body = json.dumps({"jsonrpc": "2.0", "id": message["id"], **members}).encode()
        lines = [
            b"HTTP/1.1 200 OK",
            b"content-type: text/event-stream",
            b"transfer-encoding: chunked",
            *headers,
        ]
        writer.write(b"\r\n".join([*lines, b"", b""]))
        cls.writing = asyncio.ensure_future(stream())


PROGRESS = b'data: {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1}}\n\n'


@pytest.mark.parametrize("before", [StreamingServer.before, (*StreamingServer.before, PROGRESS)])
async def test_a_failure_later_in_a_stream_is_recorded(before, monkeypatch, tmp_path):
    """It passes unchanged, and is no success, whatever the server sends before it."""
    monkeypatch.setattr(StreamingServer, "before", before)
    server = StreamingServer()
    async with Upstream(server) as up, serving(mcp(up)) as gateway:
        with amends.record(f"sqlite:///{tmp_path}/r.db") as recorder:
            client = StreamClient(gateway)
            await client.start()
            for error in ERRORS:
                server.fail = [error]
                _, found = await client.call("pay")
                assert {name: found[name] for name in error} == error
            await client.call("pay")
            await asyncio.to_thread(recorder.flush)
            assert len(recorder.recent()) == gateway.statuses()[0].failed == len(ERRORS)


async def test_requests_of_the_gateway_are_answered_with_streams():
    """A lost session is opened again, annotations are learned, and a failure before the first event with data is repeated."""
    server = StreamingServer()
    limited = {"code": "RATE_LIMITED", "message": "Slow down", "recovery": "transient", "retry_after": 0.01}
    async with Upstream(server) as up, serving(mcp(up)) as gateway:
        client = StreamClient(gateway)
        await client.start()
        server.sessions.clear()
        server.fail = [{"result": {"isError": True, "structuredContent": {"adcp_error": limited}}}]
        assert (await client.call("pay"))[1]["result"]["isError"] is False
        server.fail = ["close"]
        assert (await client.call("look"))[1]["result"]["isError"] is False
        assert server.calls == ["pay", "pay", "look", "look"]


async def test_the_beginning_of_a_stream_is_held_back_for_a_moment_only(monkeypatch):
    """A caller that waits for signs of life gets them."""
    monkeypatch.setattr(answers, "HELD", 0.01)

    async def slow(request, writer):
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n: ping\n\n")
        await asyncio.sleep(3600)

    async with Upstream(slow) as up, serving(mcp(up)) as gateway:
        message = b'{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"pay"}}'
        found = await raw(gateway, get("/seats", JSON, method="POST", body=message), until=b": ping\n\n")
        assert found.endswith(b": ping\n\n\r\n")


async def test_an_adcp_error_that_invites_a_repeat_is_repeated():
    """A rate limit inside a tool's result, with a wait."""
    server = Server()
    limited = {"code": "RATE_LIMITED", "message": "Slow down", "recovery": "transient", "retry_after": 1}
    result = {"isError": True, "content": [], "structuredContent": {"adcp_error": limited}}
    async with Upstream(server) as up, serving(mcp(up)) as gateway:
        client = Client(gateway)
        await client.start()
        server.fail = [{"result": result}]
        _, found = await client.call("pay")
        assert found["result"]["isError"] is False
        assert server.calls == ["pay", "pay"]


async def test_a_server_that_is_down_answers_with_an_error_of_its_request():
    """A JSON-RPC error for a request, a problem for the rest."""
    async with Upstream() as up:
        config = mcp(up, url=f"http://127.0.0.1:{free_port()}/mcp", policy=amends.Policy(attempts=1))
        async with serving(config) as gateway:
            client = Client(gateway)
            status, found = await client.call("pay")
            assert (status, found["error"]["data"]["adcp_error"]["recovery"]) == (200, "transient")
            status, found = await client.send("notifications/cancelled", notify=True)
            assert (status, found["status"]) == (502, 502)


async def test_the_legacy_transport():
    """The path in its first event gets the gateway's prefix, and leads back to the server."""
    stream = b"event: endpoint\r\ndata: /messages/?session_id=7\r\n\r\n"
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"

    async def open_stream(request, writer):
        writer.write(head + stream)
        return True

    async with Upstream(open_stream, answer(202, b"Accepted")) as up:  # noqa: SIM117
        async with serving(mcp(up, url=f"{up.url}/sse")) as gateway:
            _, _, body = parts(await raw(gateway, get("/seats")))
            assert b"data: /seats/messages/?session_id=7" in body
            status, _, _ = parts(
                await raw(gateway, get("/seats/messages/?session_id=7", method="POST", body=b"{}"))
            )
            assert status == 202
            assert up.requests[1].startswith(b"POST /messages/?session_id=7 ")


LOST_400 = b'{"jsonrpc":"2.0","id":"x","error":{"code":-32600,"message":"Bad Request: No valid session ID provided"}}'


async def test_a_lost_session_that_is_answered_with_400_is_opened_once():
    """As older servers do. Calls at the same time share the new session."""
    server = Server()
    server.lost = answer(400, LOST_400, JSON)
    async with Upstream(server) as up, serving(mcp(up)) as gateway:
        client = Client(gateway)
        await client.start()
        server.sessions.clear()
        found = await asyncio.gather(*(client.call("look") for _ in range(8)))
        assert {status for status, _ in found} == {200}
        assert [method for method, *_ in server.seen].count("initialize") == 2
        refused = answer(
            400, b'{"jsonrpc":"2.0","id":9,"error":{"code":-32602,"message":"Bad arguments"}}', JSON
        )
        server.fail = [refused]
        status, body = await client.call("pay")
        assert (status, body["error"]["code"]) == (400, -32602)
        assert [method for method, *_ in server.seen].count("initialize") == 2


async def test_a_redirect_is_not_followed_when_a_session_is_opened_again():
    """Its credentials go to the configured address only."""
    server = Server()
    async with (
        Upstream(answer(200, b"{}", JSON)) as other,
        Upstream(server) as up,
        serving(mcp(up)) as gateway,
    ):
        client = Client(gateway)
        await client.start()
        up.script = [server.lost, answer(307, b"", b"location: " + other.url.encode())]
        assert (await client.call("look"))[0] == 404
        assert other.requests == []


async def test_annotations_of_a_server_without_sessions_are_asked_for():
    """With the envelope and headers of its generation."""
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}
    seen = []

    async def serve(request, writer):
        head, _, body = request.partition(b"\r\n\r\n")
        message = json.loads(body)
        named = b"mcp-method: " + message["method"].encode() in head
        seen.append((message["method"], named, message["params"]["_meta"] == meta, b"mcp-name" in head))
        if message["method"] == "tools/list":
            Server._write(writer, message, TOOLS)
        elif len(seen) == 1:
            return True
        else:
            Server._write(writer, message, {"result": {"content": []}})
        return False

    async with Upstream(serve) as up, serving(mcp(up)) as gateway:
        body = json.dumps(
            {
                "jsonrpc": "2.0",
                "id": 1,
                "method": "tools/call",
                "params": {"name": "look", "arguments": {}, "_meta": meta},
            }
        ).encode()
        headers = (b"mcp-protocol-version: 2026-07-28", b"mcp-method: tools/call", b"mcp-name: look")
        status, _, _ = parts(await raw(gateway, get("/seats", JSON, *headers, method="POST", body=body)))
    assert status == 200
    assert seen == [
        ("tools/call", True, True, True),
        ("tools/list", True, True, False),
        ("tools/call", True, True, True),
    ]


@pytest.mark.parametrize(
    "failure",
    [
        answer(503, b"<html>db.internal</html>"),
        {"error": {"code": -32000, "message": "at db.internal"}},
        {"result": {"content": [{"type": "text", "text": "at db.internal"}], "isError": True}},
    ],
)
async def test_translation_to_adcp_when_asked(failure):
    """A tool's failure becomes a result with an AdCP error, another one an error of its request."""
    server = Server()
    async with Upstream(server) as up, serving(mcp(up, translate="adcp")) as gateway:
        client = Client(gateway)
        await client.start()
        server.fail = [failure] * 3
        status, found = await client.call("pay")
        error = found["result"]["structuredContent"]["adcp_error"]
        assert (status, found["id"], found["result"]["isError"]) == (200, client.number, True)
        assert error["code"]
        assert "db.internal" not in json.dumps(found)
        up.script = [answer(503, b"no")]
        status, found = await client.send("tools/list")
        assert (status, found["error"]["data"]["adcp_error"]["code"]) == (200, "SERVICE_UNAVAILABLE")


async def test_a_call_without_an_answer_is_in_doubt():
    """A host that reads only AdCP's members is not told to repeat a tool that may have run; a reading tool is no doubt."""
    server = Server()
    async with Upstream(server) as up, serving(mcp(up)) as gateway:
        client = Client(gateway)
        await client.start()
        for tool, recovery in (("pay", "terminal"), ("look", "transient")):
            server.fail = ["close"] * 9
            _, found = await client.call(tool)
            data = found["error"]["data"]
            assert data["adcp_error"]["recovery"] == recovery
            assert data["amends/fault"]["executed"] == "maybe"
            assert ("Check before you send it again" in found["error"]["message"]) == (tool == "pay")


async def test_a_caller_that_states_its_tries_repeats_itself():
    """It would not learn of tries that are made here: a failed tool is a successful answer of HTTP."""
    limited = {
        "code": "RATE_LIMITED",
        "message": "Later",
        "recovery": "transient",
        "retry_after": 1,
    }
    failed = {"result": {"content": [], "isError": True, "structuredContent": {"adcp_error": limited}}}
    for meta, calls in (({}, 3), ({"amends/left": "3"}, 1)):
        server = Server()
        async with Upstream(server) as up, serving(mcp(up)) as gateway:
            client = Client(gateway)
            await client.start()
            server.fail = [failed] * 9
            with FakeClock():
                _, found = await client.send("tools/call", name="pay", arguments={}, _meta=meta)
            assert found["result"]["isError"]
            assert server.calls == ["pay"] * calls
