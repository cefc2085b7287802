"""Probes through the proxy: lost, slow and cut answers, a restart, and writes that are sent again."""

import asyncio
import sys
from typing import Annotated

import pytest
from fastapi import FastAPI, Header
from pydantic import BaseModel
from starlette.applications import Starlette
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from amends.audit.surfaces import score
from amends.audit.surfaces.http import observe_http
from amends.audit.surfaces.mcp import observe_mcp
from amends.audit.surfaces.proxy import gateway_to
from tests.audit.test_surfaces import answers, server
from tests.http.serving import serve


def outcomes(report):
    return {
        one.probe: one.outcome for one in report.evidence.answers if one.outcome in {"recovered", "stuck"}
    }


def test_a_service_that_answers_each_reader_once(audit_http):
    """A service that does not answer a read again is a finding, with what was sent and answered."""
    seen = []

    async def once(request):
        seen.append(request.url.path)
        return Response(status_code=200 if seen.count("/") < 4 else 410)  # twice before the disturbance

    report = audit_http(Starlette(routes=[Route("/", once)]))
    assert outcomes(report)["lost-answer"] == "stuck"
    (finding,) = [one for one in report.findings if one.id == "again"]
    assert finding.evidence.startswith(
        "GET /, whose answer was lost, again → answered with 410, before with 200"
    )


def test_a_service_that_breaks_with_a_client(audit_http):
    """A service that fails for all clients after one of them left."""
    broken = []

    async def app(scope, receive, send):
        status = 500 if broken else 404
        await send({"type": "http.response.start", "status": status, "headers": []})
        while (await receive())["more_body"]:
            pass
        leaving = asyncio.ensure_future(receive())
        for part in (b"{", b"}"):
            await send({"type": "http.response.body", "body": part, "more_body": part == b"{"})
            for _ in range(50):  # turns of the event loop, in which a client can leave
                await asyncio.sleep(0)
            if leaving.done() and part == b"{":
                broken.append(True)
                return

    report = audit_http(app)
    assert outcomes(report) == {"lost-answer": "recovered", "slow-answer": "recovered", "cut-stream": "stuck"}


def test_through_the_gateway():
    """Over a socket the gateway is between: the service receives the request whose answer is lost, and the repeat."""
    received = []

    async def item(request):
        received.append(request.headers["user-agent"])
        return JSONResponse({})

    described = {"paths": {"/item": {"get": {}}}}
    with serve(Starlette(routes=[Route("/item", item)])) as url:
        report = score(asyncio.run(observe_http(url, openapi=described)))
    assert outcomes(report) == {
        "lost-answer": "recovered",
        "slow-answer": "recovered",
        "cut-stream": "recovered",
    }
    assert len(received) == 1 + 3 * 3  # one with an unacceptable type
    assert len(set(received)) == 1


def test_without_the_gateway(monkeypatch):
    """If the gateway is not installed, the question is open and the report says what is missing."""
    monkeypatch.setitem(sys.modules, "amends.gateway", None)

    async def none():
        async with gateway_to("http://127.0.0.1:9") as gateway:
            return gateway

    assert asyncio.run(none()) is None


def test_an_mcp_server_that_forgets_its_sessions(audit_mcp):
    """The SDK's server answers 404 for a lost session, after which clients open another."""
    report = audit_mcp(server(ours=True))
    assert outcomes(report) == dict.fromkeys(
        ("lost-answer", "slow-answer", "cut-stream", "restart"), "recovered"
    )


def test_an_mcp_server_that_answers_400_for_a_lost_session(audit_mcp):
    """Clients open a new session after 404 only, so 400 is a finding."""

    async def mcp(request):
        frame = await request.json()
        if frame["method"] == "initialize":
            result = {"capabilities": {}, "serverInfo": {"name": "x", "version": "1"}}
            body = {"jsonrpc": "2.0", "id": frame["id"], "result": result}
            return JSONResponse(body, headers={"Mcp-Session-Id": "7"})
        if request.headers.get("mcp-session-id") != "7":
            return JSONResponse({"error": "no valid session"}, 400)
        if frame["method"] == "ping":
            return JSONResponse({"jsonrpc": "2.0", "id": frame["id"], "result": {}})
        error = {"code": -32601, "message": "unknown"}
        return JSONResponse({"jsonrpc": "2.0", "id": frame.get("id"), "error": error})

    report = audit_mcp(Starlette(routes=[Route("/mcp", mcp, methods=["POST"])]))
    assert outcomes(report)["restart"] == "stuck"
    assert not answers(report)["again"]


PIPES = """
import json, os, sys
started = os.path.exists(sys.argv[1])
for line in sys.stdin:
    frame = json.loads(line)
    if "id" not in frame:
        continue
    answer = {"jsonrpc": "2.0", "id": frame["id"]}
    if frame["method"] in ("initialize", "ping"):
        answer["result"] = {"capabilities": {}}
    else:
        answer["error"] = {"code": -32601, "message": "unknown"}
    print(json.dumps(answer), flush=True)
"""


@pytest.mark.parametrize("locks", [False, True])
def test_a_server_on_pipes_is_started_again(tmp_path, locks):
    """Its process is ended and started again; one that leaves a lock behind does not answer any more."""
    count = "import sys, pathlib\npath = pathlib.Path(sys.argv[1])\nwith path.open('a') as file: file.write('x')\n"
    lock = "if len(path.read_text()) > 2: sys.exit('locked')\n" if locks else ""
    (tmp_path / "server.py").write_text(count + lock + PIPES)
    command = [sys.executable, str(tmp_path / "server.py"), str(tmp_path / "starts")]
    report = score(asyncio.run(observe_mcp(command=command)))
    assert outcomes(report)["restart"] == ("stuck" if locks else "recovered")
    assert outcomes(report)["lost-answer"] == "recovered"


class Order(BaseModel):
    train: str
    seats: int


@pytest.mark.parametrize("honours", [False, True])
def test_a_write_whose_answer_was_lost(audit_http, honours):
    """With --writes an operation that declares a key is executed with it, and then sent again."""
    stored = {}
    app = FastAPI()

    @app.post("/orders", status_code=201)
    async def order(given: Order, idempotency_key: Annotated[str, Header()]) -> dict[str, int]:
        if honours and idempotency_key in stored:
            return {"id": stored[idempotency_key]}
        stored[idempotency_key if honours else len(stored)] = len(stored)
        return {"id": len(stored) - 1}

    silent = audit_http(app)
    assert not stored
    assert "repeated-write: needs --writes: POST /orders twice" in silent.not_probed
    report = audit_http(app, writes=True)
    assert outcomes(report)["repeated-write"] == ("recovered" if honours else "stuck")
    assert answers(report)["once"] is honours
    assert len(stored) == (1 if honours else 2)
