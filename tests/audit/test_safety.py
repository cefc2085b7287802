"""What the audits send: only what reads or has to be refused, to one address, bounded, and with a name."""

import asyncio
import json
import sys
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import jsonschema
import pytest
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

from amends.audit.surfaces.a2a import observe_a2a
from amends.audit.surfaces.exchange import (
    MAX_PROBES,
    PER_SECOND,
    USER_AGENT,
    Budget,
    Exchange,
    OutOfProbesError,
)
from amends.audit.surfaces.http import MAX_LIMIT_CALLS, observe_http
from amends.audit.surfaces.mcp import observe_mcp

SCHEMA = {
    "type": "object",
    "required": ["seats"],
    "properties": {"seats": {"type": "integer"}, "train": {"type": "string"}},
}
BODY = {"requestBody": {"content": {"application/json": {"schema": SCHEMA}}}}
PATHS = {
    f"/orders{number}": {
        "get": {"parameters": [{"name": "limit", "in": "query", "schema": {"type": "integer"}}]},
        **{method: BODY for method in ("post", "put", "patch", "delete")},
    }
    for number in range(5)
}
DESCRIBED = {"openapi": "3.1.0", "paths": PATHS}
READS = {"GET", "SEARCH"}


@contextmanager
def recording(status, headers=()):
    """A service on loopback that records every request with its time, and answers all with one status."""
    received = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self):
            length = int(self.headers.get("Content-Length") or 0)
            body = self.rfile.read(length)
            received.append((time.monotonic(), self.command, self.path, self.headers["User-Agent"], body))
            self.send_response(status)
            for name, value in headers:
                self.send_header(name, value)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_SEARCH = answer  # noqa: N815

        def log_message(self, *_):
            pass

    running = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{running.server_port}", received
    finally:
        running.shutdown()
        running.server_close()


def writes(received):
    return [(method, body) for _, method, _, _, body in received if method not in READS]


def is_valid(body):
    try:
        jsonschema.validate(json.loads(body), SCHEMA)
    except (ValueError, jsonschema.ValidationError):
        return False
    return True


@pytest.mark.parametrize("status", [422, 200])
def test_nothing_that_could_change_state(status):
    """Without --writes no request that a service may act on is sent; after one that was accepted, no further body."""
    with recording(status) as (url, received):
        evidence = asyncio.run(observe_http(url, openapi=DESCRIBED))
    bodies = [body for _, body in writes(received)]
    assert not any(map(is_valid, bodies))
    assert b"{}" not in bodies
    assert "DELETE" not in {method for method, _ in writes(received)}
    assert len(bodies) == (9 if status == 422 else 1)
    assert {agent for _, _, _, agent, _ in received} == {USER_AGENT}
    assert len(received) <= MAX_PROBES
    seconds = received[-1][0] - received[0][0]
    assert len(received) <= seconds * PER_SECOND + 2
    reads = [path for _, method, path, _, _ in received if method in READS]
    assert max(map(reads.count, reads)) <= 12  # no burst
    assert any(one.probe == "rate-limit" and one.outcome == "not-probed" for one in evidence.answers)


def test_the_flags_say_what_they_send():
    """--writes adds bodies without members; --rate-limit adds at most 60 reads, beside the other probes."""
    with recording(422) as (url, received):
        asyncio.run(observe_http(url, openapi=DESCRIBED, writes=True))
        assert b"{}" in [body for _, body in writes(received)]
    limited = []

    async def app(scope, receive, send):
        limited.append(scope["method"])
        await send({"type": "http.response.start", "status": 404, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    asyncio.run(observe_http("http://testserver", app=app, rate_limit=True))
    assert MAX_LIMIT_CALLS <= len(limited) <= MAX_PROBES + MAX_LIMIT_CALLS
    assert set(limited) == READS


def test_no_other_address(tmp_path):
    """A redirect, a card and a document that name another host lead nowhere."""
    with recording(200) as (other, elsewhere):
        with recording(307, [("Location", f"{other}/x")]) as (url, received):
            asyncio.run(observe_http(url, openapi={**DESCRIBED, "servers": [{"url": other}]}))
            asyncio.run(observe_mcp(f"{url}/mcp"))
            assert received

        async def card(request):
            return JSONResponse({"name": "x", "url": f"{other}/rpc", "protocolVersion": "0.3"})

        app = Starlette(routes=[Route("/.well-known/agent-card.json", card)])
        asyncio.run(observe_a2a("http://testserver", app=app))
        assert elsewhere == []


TOOLS = """
import json, sys
schema = {"type": "object", "required": ["path"], "properties": {"path": {"type": "string"}}}
def tool(name, **hints):
    return {"name": name, "inputSchema": schema, "annotations": hints}
tools = [tool("wipe", destructiveHint=True), tool("look", readOnlyHint=True), tool("plain")]
if sys.argv[2] == "no-reads":
    tools.pop(1)
for line in sys.stdin:
    frame = json.loads(line)
    with open(sys.argv[1], "a") as file:
        file.write(line)
    if "id" in frame:
        answer = {"jsonrpc": "2.0", "id": frame["id"]}
        if frame["method"] == "initialize":
            answer["result"] = {"capabilities": {"tools": {}}}
        elif frame["method"] == "tools/list":
            answer["result"] = {"tools": tools}
        else:
            answer["error"] = {"code": -32602, "message": "no"}
        print(json.dumps(answer), flush=True)
"""


@pytest.mark.parametrize(
    ("offered", "flag", "called"),
    [
        ("reads", False, {"look"}),
        ("no-reads", False, {"plain"}),
        ("reads", True, {"look", "plain", "wipe"}),
    ],
)
def test_tools_that_may_change_something(tmp_path, offered, flag, called):
    """Tools that read are called first; others, with arguments they must refuse, if there are none; destructive ones never."""
    (tmp_path / "server.py").write_text(TOOLS)
    log = tmp_path / "log"
    command = [sys.executable, str(tmp_path / "server.py"), str(log), offered]
    asyncio.run(observe_mcp(command=command, writes=flag))
    frames = [json.loads(line) for line in log.read_text().splitlines()]
    calls = [frame["params"] for frame in frames if frame["method"] == "tools/call"]
    assert {each.get("name") for each in calls} - {None, "amends-audit-unknown"} == called
    for each in calls:
        assert not isinstance(each["arguments"].get("path"), str)


def test_credentials_of_every_surface(audit_http, audit_mcp, audit_a2a):
    """A service that asks for credentials is called without and with expired ones; those given go nowhere else."""
    seen = []

    async def closed(scope, receive, send):
        headers = dict(scope["headers"])
        seen.append(headers.get(b"authorization"))
        good = headers.get(b"authorization") == b"Bearer good"
        start = {"type": "http.response.start", "status": 404 if good else 401, "headers": []}
        body = b'{"jsonrpc": "2.0", "id": 1, "result": {"capabilities": {}}}'
        if good and scope["method"] == "POST":
            start = {**start, "status": 200, "headers": [(b"content-type", b"application/json")]}
        await send(start)
        await send({"type": "http.response.body", "body": body})

    for audit in (audit_http, audit_mcp, audit_a2a):
        seen.clear()
        report = audit(closed, headers={"Authorization": "Bearer good"})
        answered = {
            one.probe: one.response["status"]
            for one in report.evidence.answers
            if one.response and "status" in one.response
        }
        assert (answered["no-credentials"], answered["expired-credentials"]) == (401, 401)
        assert set(seen) - {b"Bearer good", None} <= {b"amends-audit-expired", b"Bearer amends-audit-expired"}


async def test_an_audit_ends():
    """The number and the time of all requests are bounded together."""
    never = asyncio.Event()

    async def silent(scope, receive, send):
        await never.wait()

    async with Exchange("http://testserver", app=silent, budget=Budget(2, 0.05)) as exchange:
        assert (await exchange.probe("x", "GET", "/")).because == "TimeoutError"
        with pytest.raises(OutOfProbesError):
            await exchange.send("GET", "/")
    budget = Budget(1, 50)
    budget.spend()
    with pytest.raises(OutOfProbesError):
        budget.spend()
