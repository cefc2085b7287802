"""Services that harm their callers: endless and compressed answers, redirects to other addresses, schemas that grow."""

import asyncio
import gzip
import http
import json
import sys
import tracemalloc

import pytest
from websockets.asyncio.server import serve as listen

from amends.audit.surfaces import Answer, Evidence, score
from amends.audit.surfaces.arcp import observe_arcp
from amends.audit.surfaces.exchange import MAX_BODY, Exchange
from amends.audit.surfaces.html import html
from amends.audit.surfaces.jsonrpc import HttpPeer, without_credentials
from amends.audit.surfaces.mcp import observe_mcp
from amends.audit.surfaces.openapi import operations
from amends.audit.surfaces.proxy import Proxy
from tests.audit.test_surfaces import run
from tests.http.serving import serve

MEGABYTE = 1 << 20
BOMB = gzip.compress(bytes(200 * MEGABYTE))


async def endless(scope, receive, send):
    """Send an answer that never ends."""
    await send({"type": "http.response.start", "status": 404, "headers": []})
    while True:
        await send({"type": "http.response.body", "body": bytes(MEGABYTE), "more_body": True})
        await asyncio.sleep(0)


async def compressed(scope, receive, send):
    """Send 200 MB in 200 KB."""
    headers = [(b"content-encoding", b"gzip"), (b"content-length", str(len(BOMB)).encode())]
    await send({"type": "http.response.start", "status": 404, "headers": headers})
    await send({"type": "http.response.body", "body": BOMB})


@pytest.mark.parametrize(
    ("app", "through"),
    [(endless, True), (compressed, True), (compressed, False)],
    ids=["endless, proxy", "compressed, proxy", "compressed"],
)
async def test_the_memory_of_an_answer_is_bounded(app, through):
    """Neither the client nor the proxy keeps more than it reads."""
    transport = Proxy(app, cancels=True) if through else None
    async with Exchange("http://testserver", app=app, transport=transport) as exchange:
        tracemalloc.start()
        reply = await exchange.send("GET", "/")
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert (reply.status, len(reply.body)) == (404, MAX_BODY)
    assert peak < 32 * MEGABYTE


@pytest.mark.parametrize("through", [False, True], ids=["direct", "proxy"])
@pytest.mark.parametrize(
    ("coding", "body", "expected"),
    [("gzip", gzip.compress(b"{}"), b"{}"), ("gzip", b"no gzip", b"no gzip"), ("br", b"?", b"?")],
    ids=["gzip", "no gzip", "another"],
)
async def test_compressed_answers(coding, body, expected, through):
    """A service that compresses although it was not asked to is read; what cannot be read stays as it is."""

    async def app(scope, receive, send):
        assert dict(scope["headers"])[b"accept-encoding"] == b"identity"
        headers = [(b"content-encoding", coding.encode())]
        await send({"type": "http.response.start", "status": 404, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    transport = Proxy(app, cancels=True) if through else None
    async with Exchange("http://testserver", app=app, transport=transport) as exchange:
        reply = await exchange.send("GET", "/")
    assert reply.body == expected


def test_a_schema_that_contains_itself():
    """Sixty members that are each the same schema: an example would have 60 to the power of 8 values."""
    members = {f"m{number}": {"$ref": "#/components/schemas/A"} for number in range(60)}
    schema = {"type": "object", "required": list(members), "properties": members}
    body = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/A"}}}}
    document = {
        "paths": {"/x": {"post": {"requestBody": body}}},
        "components": {"schemas": {"A": schema}},
    }
    (operation,) = operations(document)
    assert (operation.valid_body, operation.required_members) == (None, tuple(members))


async def test_a_runtime_that_redirects(monkeypatch):
    """No other address is contacted, neither that of a redirect nor a proxy, so none gets the token."""
    received = []

    async def other(socket):
        received.append(socket.request.path)

    def redirect(connection, request):
        response = connection.respond(http.HTTPStatus.FOUND, "")
        response.headers["Location"] = f"ws://127.0.0.1:{elsewhere.sockets[0].getsockname()[1]}/x"
        return response

    async with (
        listen(other, "127.0.0.1", 0) as elsewhere,
        listen(other, "127.0.0.1", 0, process_request=redirect) as runtime,
    ):
        for name in ("http_proxy", "all_proxy"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{elsewhere.sockets[0].getsockname()[1]}")
        monkeypatch.delenv("no_proxy", raising=False)
        port = runtime.sockets[0].getsockname()[1]
        evidence = await observe_arcp(f"ws://127.0.0.1:{port}/arcp", token="secret-token")
    assert received == []
    assert {(one.outcome, one.because) for one in evidence.answers} == {
        ("not-probed", "redirected with 302, which is not followed")
    }


SURROGATES = rb'{"jsonrpc": "2.0", "id": null, "error": {"code": -32601, "message": "\ud800", "\udfff": 1}}'
CARD = rb'{"name": "\ud800\u001b[31m", "url": "\ud800", "protocolVersion": "0.3"}'


async def surrogates(scope, receive, send):
    """Answer with JSON that no encoder writes."""
    start = {
        "type": "http.response.start",
        "status": 200,
        "headers": [(b"content-type", b"application/json")],
    }
    await send(start)
    await send({"type": "http.response.body", "body": CARD if scope["method"] == "GET" else SURROGATES})


def test_text_that_cannot_be_encoded():
    """Lone surrogates in an answer and in a name."""
    with serve(surrogates) as url:
        code, out = run("a2a", url, "--json")
    report = json.loads(out)
    assert (code, report["at_least"]) == (0, 3)
    out.encode()


ENDLESS = """
import sys
while True:
    sys.stdout.write("x" * 65536)
"""


async def test_a_process_that_writes_without_end(tmp_path):
    """Its output fills all buffers; it is ended nevertheless."""
    (tmp_path / "server.py").write_text(ENDLESS)
    async with asyncio.timeout(30):
        evidence = await observe_mcp(command=[sys.executable, str(tmp_path / "server.py")])
    assert {one.outcome for one in evidence.answers} == {"no-answer"}


def test_credentials_in_the_query_of_a_server():
    """MCP services take keys in the query. It is sent, and no report has it."""
    queries = []

    async def echo(scope, receive, send):
        queries.append(scope["query_string"])
        said = {
            "jsonrpc": "2.0",
            "id": None,
            "error": {"code": -32600, "message": f"no {scope['query_string']}"},
        }
        start = {
            "type": "http.response.start",
            "status": 200,
            "headers": [(b"content-type", b"application/json")],
        }
        await send(start)
        await send({"type": "http.response.body", "body": json.dumps(said).encode()})

    with serve(echo) as url:
        _, out = run("mcp", f"{url}/mcp?code=violets-7", "--json")
    assert set(queries) == {b"code=violets-7"}
    assert "violets" not in out


@pytest.mark.parametrize(
    ("kind", "url", "says"),
    [
        ("http", "http://ada:violets@127.0.0.1:1", "a password"),
        ("mcp", "http://ada:violets@127.0.0.1:1/mcp", "a password"),
        ("a2a", "http://127.0.0.1:1/?key=violets", "a query"),
        ("http", "http://127.0.0.1:1/#violets", "a fragment"),
        ("http", "http://[violets", "an address"),
        ("arcp", "http://127.0.0.1:1", "ws: or wss:"),
    ],
)
def test_addresses_that_are_refused(kind, url, says):
    """Before anything is sent."""
    code, out = run(kind, url, "--json")
    assert code == 2
    error = json.loads(out)["error"]
    assert says in error["message"]
    assert "violets" not in error["message"]


def test_an_address_that_only_redirects():
    """As that of a site which moved to https: the address is wrong, and the report says so."""

    async def moved(scope, receive, send):
        headers = [(b"location", b"https://127.0.0.1:1/")]
        await send({"type": "http.response.start", "status": 308, "headers": headers})
        await send({"type": "http.response.body"})

    with serve(moved) as url:
        code, out = run("http", url, "--json")
    assert (code, json.loads(out)["error"]["field"]) == (2, "URL")
    assert "redirected with 308" in out


def test_a_baseline_that_is_no_text(tmp_path):
    """Before anything is sent."""
    (tmp_path / "accepted.txt").write_bytes(b"\xff\xfe")
    code, out = run("http", "http://127.0.0.1:1", "--json", "--baseline", str(tmp_path / "accepted.txt"))
    assert (code, json.loads(out)["error"]["field"]) == (2, "--baseline")


def test_characters_of_a_page():
    """Names and reasons have no invisible characters in HTML, either."""
    one = Answer(probe="x", sent="tools/call \u202etxt\x1b", outcome="no-answer", because="\u2066")
    page = html(score(Evidence(surface="mcp", target="x", answers=[one], version="\x9b<b>")))
    assert not set(page) & set("\u202e\x1b\u2066\x9b")
    assert "&lt;b&gt;" in page


async def test_a_stream_that_stays_open_after_the_answer():
    """The answer is read, and the stream is left: the peer does not wait for its end."""

    async def open_stream(scope, receive, send):
        if scope["type"] != "http":
            return
        headers = [(b"content-type", b"text/event-stream")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await receive()
        for event in ("id: 1\ndata: \n\n", 'data: {"jsonrpc":"2.0","id":1,"result":{"seen":1}}\n\n'):
            await send({"type": "http.response.body", "body": event.encode(), "more_body": True})
        while (await receive())["type"] != "http.disconnect":
            pass

    with serve(open_stream) as url:
        async with Exchange(url) as exchange, asyncio.timeout(8):
            assert (await HttpPeer(exchange, "/").call("ping", {}))["result"] == {"seen": 1}
            answers = await without_credentials(exchange, "/", "initialize", {})
            assert [each.outcome for each in answers] == ["not-probed"] * 2
