"""Audits of services: what ours score, what frameworks score by themselves, and the reports."""

import json
import sys
from functools import partial
from typing import Annotated

import msgspec
import pytest
from a2a.server.agent_execution import AgentExecutor
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore
from fastapi import FastAPI, HTTPException, Security
from fastapi.security import HTTPBearer
from mcp.server.mcpserver import MCPServer
from mcp.types import ToolAnnotations
from pydantic import BaseModel
from starlette.applications import Starlette
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.routing import Route

from amends.audit.surfaces import Evidence, score
from amends.audit.surfaces.baseline import read_baseline, write_baseline
from amends.audit.surfaces.evidence import Answer, answered, conceal, not_probed
from amends.audit.surfaces.examples import links
from amends.audit.surfaces.exchange import MAX_PROBES, USER_AGENT, Exchange, Reply
from amends.audit.surfaces.html import html
from amends.audit.surfaces.questions import QUESTIONS
from amends.audit.surfaces.sarif import sarif
from amends.audit.surfaces.text import lines
from amends.bindings import a2a as a2a_binding
from amends.bindings import fastapi as fastapi_binding
from amends.bindings import mcp as mcp_binding
from amends.cli.colour import Painter
from tests.bindings.agents import card
from tests.commands.test_decode import amends
from tests.http.serving import serve


class Booking(BaseModel):
    train: str
    seats: int


def api(*, ours):
    app = FastAPI()
    if ours:
        fastapi_binding.install(app, base_url="https://api.example")
    bearer = HTTPBearer()

    @app.get("/items/{number}")
    async def item(number: int, limit: int = 1) -> dict[str, int]:
        return {"number": number}

    @app.get("/search")
    async def search(train: str) -> dict[str, str]:
        return {"train": train}

    @app.post("/bookings")
    async def book(booking: Booking) -> dict[str, str]:
        raise AssertionError("no probe books anything")

    @app.get("/secret")
    async def secret(token: Annotated[object, Security(bearer)]) -> dict[str, str]:
        raise HTTPException(401)

    return app


def server(*, ours):
    called = MCPServer("seats")

    @called.tool(annotations=ToolAnnotations(readOnlyHint=True))
    def free_seats(train: int) -> int:
        return train

    @called.resource("seats://{train}")
    def seats(train: str) -> str:
        return train

    if ours:
        mcp_binding.guard(called)
    return called


def agent(*, ours):
    class Executor(AgentExecutor):
        async def execute(self, context, event_queue):
            raise KeyError("/etc/agent/key of db.internal")

        async def cancel(self, context, event_queue):
            raise NotImplementedError

    executor = a2a_binding.guard(Executor()) if ours else Executor()
    described = card("http://testserver")
    handler = DefaultRequestHandler(
        agent_executor=executor, task_store=InMemoryTaskStore(), agent_card=described
    )
    return Starlette(
        routes=[*create_jsonrpc_routes(handler, rpc_url="/rpc"), *create_agent_card_routes(described)]
    )


def answers(report):
    return {question.id: question.met for question in report.questions}


def test_an_installed_api_scores_3(audit_http):
    """`install` with a base_url, and nothing else."""
    report = audit_http(api(ours=True))
    assert report.score == 3, report.findings
    assert report.findings == []
    probed = {answer.probe for answer in report.evidence.answers if answer.outcome == "failure"}
    assert probed >= {
        "unknown-path",
        "unknown-method",
        "wrong-type",
        "missing-value",
        "broken-json",
        "no-credentials",
        "expired-credentials",
        "oversized-value",
    }


def test_a_bare_api(audit_http):
    """FastAPI alone names fields, but does not say whether to retry, nor where to read more."""
    report = audit_http(api(ours=False))
    assert report.score == 0
    assert answers(report) == {
        "leak": True,
        "failure": True,
        "retry-some": False,
        "retry-all": False,
        "when": True,
        "again": True,
        "field": True,
        "executed": True,
        "once": True,
        "consistent": False,
        "docs": False,
        "trace": False,
    }
    assert report.findings[0].id == "retry-some"
    assert report.bytes > 0
    assert report.tokens == -(-report.bytes // 4)


def test_a_guarded_mcp_server_scores_3(audit_mcp):
    """`guard`, and nothing else; the bare server gives half of its failures no verdict."""
    guarded, bare = audit_mcp(server(ours=True)), audit_mcp(server(ours=False))
    assert guarded.score == 3, guarded.findings
    assert bare.score == 1
    assert answers(bare)["field"]
    assert not answers(bare)["executed"]


def test_a_guarded_agent_scores_3(audit_a2a):
    """With --writes the executor fails: the bare SDK sends the exception's text."""
    guarded = audit_a2a(agent(ours=True), writes=True)
    assert guarded.score == 3, guarded.findings
    bare = audit_a2a(agent(ours=False), writes=True)
    assert (bare.score, bare.findings[0].id) == (0, "leak")
    assert "/etc/agent" not in msgspec.json.encode(bare).decode()


async def test_a_runtime_scores_3():
    """Our ARCP runtime, over a real WebSocket."""
    from amends.arcp import Runtime
    from amends.arcp.transports.websocket import serve as listen
    from amends.audit.surfaces.arcp import observe_arcp

    runtime = Runtime(tokens={"secret": "alice"})
    async with runtime, listen(runtime, port=0) as listening:
        report = score(await observe_arcp(f"ws://127.0.0.1:{listening.port}/arcp", token="secret"))
    assert report.score == 3, report.findings


def leaky():
    async def crash(request):
        return PlainTextResponse('File "/srv/app/main.py", line 3, in f\n  password=hunter2', 500)

    async def fine(request):
        return JSONResponse({"paths": {}})

    routes = [Route("/openapi.json", fine), Route("/{path:path}", crash)]
    return Starlette(routes=routes)


def test_a_leak_weighs_most(audit_http):
    """With a leak the score is 0, it is the first finding, and the evidence is redacted."""
    report = audit_http(leaky())
    assert (report.score, report.findings[0].id) == (0, "leak")
    assert "hunter2" not in msgspec.json.encode(report).decode()


def test_success_for_everything(audit_http):
    """A service that answers every path as a success does not report failures."""

    async def yes(request):
        return JSONResponse({})

    report = audit_http(Starlette(routes=[Route("/{path:path}", yes)]))
    assert answers(report)["failure"] is False
    assert report.at_least == 0


def test_what_could_not_be_probed_makes_a_range(audit_http):
    """Without a schema and without pages about errors no invalid value is sent, so the field question is open and named."""
    app = Starlette()
    from amends.bindings.starlette import install

    install(app, base_url="https://api.example", pages=None)
    report = audit_http(app)
    assert (report.score, report.at_least, report.at_most) == (None, 1, 2)
    assert any(each.startswith("wrong-type: no OpenAPI document") for each in report.not_probed)


def undescribed(framework, *, sent=None):
    """An application with our install and without an OpenAPI document; it records the paths that reach it."""
    kept = [] if sent is None else sent
    if framework == "flask":
        from flask import Flask, request

        from amends.bindings.flask import install

        app = Flask("audited")

        @app.before_request
        def keep():
            kept.append(request.full_path.rstrip("?"))

        app.add_url_rule("/items/<int:number>", view_func=lambda number: {"number": number}, endpoint="item")
        app.add_url_rule("/", view_func=lambda: {"first": "http://testserver/items/7"}, endpoint="root")
    else:
        from amends.bindings.starlette import install

        async def item(request):
            kept.append(str(request.url.path))
            return JSONResponse({})

        async def root(request):
            return JSONResponse({}, headers={"Link": '</items/7>; rel="first", </items/8/delete>; rel="x"'})

        app = Starlette(routes=[Route("/items/{number:int}", item), Route("/", root)])
    install(app, base_url="https://api.example")
    return app


@pytest.mark.parametrize("framework", ["flask", "starlette"])
def test_links_replace_a_document(audit_http, framework):
    """Invalid values are sent to the reads that `GET /` links to; the linked paths themselves are not called."""
    sent = []
    report = audit_http(undescribed(framework, sent=sent))
    assert (report.score, report.findings) == (3, [])
    assert not [path for path in sent if path.startswith("/items/") and "amends-audit" not in path]


def test_named_paths_replace_a_document(audit_http):
    """`--path` names a read: its numbers are replaced by a text, one at a time."""
    from amends.errors import ValidationError

    async def search(request):
        if not request.query_params["limit"].isdigit():
            raise ValidationError("The limit must be a number", field="limit")
        return JSONResponse([])

    from amends.bindings.starlette import install

    app = Starlette(routes=[Route("/search", search)])
    install(app, base_url="https://api.example")
    assert any(each.startswith("wrong-type") for each in audit_http(app).not_probed)
    report = audit_http(app, paths=["/search?limit=3"])
    assert (report.score, answers(report)["field"]) == (3, True)
    assert not any(each.startswith("wrong-type") for each in report.not_probed)


def test_a_named_path_without_a_named_field(audit_http):
    """A refusal that does not say which value was wrong is a finding."""

    async def search(request):
        return JSONResponse({"title": "Bad", "status": 400, "is_retriable": False}, 400)

    app = Starlette(routes=[Route("/search", search)])
    assert answers(audit_http(app, paths=["/search?limit=3"]))["field"] is False


def test_links_of_html_are_not_followed():
    """A page links to actions, too."""
    page = Reply(200, {"content-type": "text/html"}, b'<a href="/items/7/delete">')
    assert links(page, "https://api.example") == []
    elsewhere = Reply(200, {"link": "<https://elsewhere.example/7>, </ok/1>, <http://[/2>"}, b"[1, null]")
    assert links(elsewhere, "https://api.example") == ["/ok/1"]


def test_a_probe_without_an_answer_makes_a_range():
    """What a service would have said is unknown, so what holds for every failure is, too."""
    problem = {"title": "No", "status": 404, "is_retriable": False, "executed": False}
    body = {"status": 404, "headers": {}, "body": problem}
    said = answered("unknown-path", "GET /x", body, failed=True, body="{}")
    silent = Answer(probe="oversized-value", sent="GET /y", outcome="no-answer", because="ReadTimeout")
    report = score(Evidence(surface="arcp", target="x", answers=[said, silent]))
    assert (report.score, report.at_least, report.at_most, report.findings) == (None, 1, 3, [])
    assert report.not_probed == ["oversized-value: ReadTimeout"]


def test_the_same_score_every_time(audit_http):
    """The report depends on the target only."""
    reports = [audit_http(api(ours=False)) for _ in range(3)]
    assert len({msgspec.json.encode([one.score, one.findings, one.questions]) for one in reports}) == 1


def test_a_rate_limit_is_probed_when_asked(audit_http):
    """--rate-limit sends requests until one is limited; a limit without a wait is a finding."""
    calls = []

    async def limited(request):
        calls.append(request.headers["user-agent"])
        return JSONResponse({"title": "Slow down"}, 429)

    report = audit_http(Starlette(routes=[Route("/{path:path}", limited)]), rate_limit=True)
    assert answers(report)["when"] is False
    assert set(calls) == {USER_AGENT}
    assert len(calls) <= MAX_PROBES


async def test_only_the_named_address_is_contacted():
    """A path with another origin is refused, and redirects are not followed."""

    async def elsewhere(request):
        return JSONResponse({}, 302, {"location": "https://elsewhere.example/"})

    app = Starlette(routes=[Route("/", elsewhere)])
    async with Exchange("http://testserver", app=app) as exchange:
        assert (await exchange.send("GET", "/")).status == 302
        answer = await exchange.probe("unknown-path", "GET", "/", expected="it was answered")
        assert (answer.outcome, answer.because) == (
            "not-probed",
            "redirected with 302, which is not followed",
        )
        with pytest.raises(ValueError, match="named address"):
            await exchange.send("GET", "https://elsewhere.example/")


def test_reports(audit_http, tmp_path):
    """Text, HTML and SARIF show the same findings; a baseline accepts them."""
    report = audit_http(api(ours=False))
    text = "\n".join(lines(report, Painter(on=False)))
    assert text.startswith("0 of 3  http://testserver")
    assert len(text.splitlines()) <= 24
    assert max(map(len, text.splitlines())) <= 80
    page = html(report)
    assert "<script" not in page
    assert page.count("Agent Surface problem details P2") == 1  # not once more for every failure
    found = sarif(report)["runs"][0]
    assert {one["ruleId"] for one in found["results"]} <= {
        one["id"] for one in found["tool"]["driver"]["rules"]
    }
    for one in found["results"]:
        (location,) = one["locations"]
        assert " " not in location["physicalLocation"]["artifactLocation"]["uri"]
        assert one["level"] in {"error", "warning", "note"}
        assert one["message"]["text"]
        assert one["properties"]["evidence"]
    path = tmp_path / "accepted.txt"
    write_baseline(path, report.findings)
    again = score(report.evidence, read_baseline(path))
    assert (again.score, again.findings, len(again.accepted)) == (3, [], len(report.findings))
    (met,) = [line for line in lines(again, Painter(on=False)) if " met: " in line]
    assert not {one.id for one in report.findings} & set(met.replace(",", "").split())  # accepted is not met
    assert score(msgspec.json.decode(msgspec.json.encode(report.evidence), type=Evidence)) == report


@pytest.mark.parametrize(
    ("target", "uri"),
    [
        ("http://127.0.0.1:8000", "127.0.0.1%3A8000"),
        ("wss://[::1]:8000/a%20b", "%5B%3A%3A1%5D%3A8000/a%20b"),
        ("", "target"),
        ("uvx 'tool[all]' --url http://x", "uvx%20%27tool%5Ball%5D%27%20--url%20http%3A//x"),
        ("c:/tool 100%", "c%3A/tool%20100%25"),
    ],
)
def test_the_targets_of_sarif_are_uris(target, uri):
    """RFC 3986: relative references without a colon in the first segment, without brackets, without a bare %."""
    failure = Answer(
        probe="x", sent="GET /", outcome="failure", response={"status": 404, "headers": {}, "body": "no"}
    )
    found = sarif(score(Evidence(surface="http", target=target, answers=[failure])))["runs"][0]["results"]
    assert {one["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for one in found} == {uri}


def test_a_report_fits_a_terminal():
    """The worst case, every question answered with no and a long target, has 24 lines of at most 80 columns."""
    body = {"status": 500, "headers": {}, "body": 'File "/srv/app/main.py", line 3, in f'}
    failures = [
        answered(name, f"GET /{'x' * 200}", body, failed=True, body=body["body"], fields=["limit"])
        for name in ("wrong-type", "unknown-path", "oversized-value", "a-probe-with-a-long-name")
    ]
    failures.append(answered("broken-json", "POST /", {}, failed=False, body="{}", because="it was accepted"))
    failures += [not_probed(f"left-out-{number}", "because") for number in range(20)]
    report = score(Evidence(surface="http", target=f"http://{'x' * 300}", answers=failures, version="y" * 99))
    shown = lines(report, Painter(on=False))
    assert report.findings[0].id == "leak"
    assert len(shown) <= 24
    assert max(map(len, shown)) <= 80


def test_a_field_that_a_text_names(audit_mcp):
    """A text that names the wrong argument names the field that has to change; another text does not."""
    for text, named in (("1 error\nrepo_path\n  Field required", True), ("bad repo_paths", False)):
        body = {"result": {"isError": True, "content": [{"type": "text", "text": text}]}}
        failure = answered(
            "missing-argument", "tools/call", body, failed=True, body=text, fields=["repo_path"]
        )
        report = score(Evidence(surface="mcp", target="x", answers=[failure]))
        assert answers(report)["field"] is named


def test_a_code_that_a_text_names():
    """MCP's TypeScript SDK writes the code of a protocol error into the text of a result: it says what the code says."""
    for text, said in (
        ("MCP error -32602: Input validation error: …", True),
        ("Input validation error", False),
    ):
        body = {"result": {"isError": True, "content": [{"type": "text", "text": text}]}}
        failure = answered("missing-argument", "tools/call", body, failed=True, body=text)
        report = score(Evidence(surface="mcp", target="x", answers=[failure]))
        assert (answers(report)["retry-all"], answers(report)["executed"]) == (said, said)


@pytest.mark.parametrize(
    ("bodies", "one_shape"),
    [
        ([{"code": 1, "detail": "a"}, {"code": 1, "detail": "a", "extra": []}], True),
        ([{"code": 1, "detail": "a"}, {"error": "a"}], False),
        ([{"code": 1}, "a text"], False),
        ([{}, {"error": "a"}], False),
    ],
)
def test_optional_members_are_one_shape(bodies, one_shape):
    """An error with more members than another has the same shape; one with other members has not."""
    failures = [
        answered("x", "GET /", {"status": 400, "headers": {}, "body": body}, failed=True, body="{}")
        for body in bodies
    ]
    report = score(Evidence(surface="http", target="x", answers=failures))
    assert answers(report)["consistent"] is one_shape


def test_credentials_are_not_reported():
    """A service that repeats the credentials of --header leaks them, but not into the report."""
    echoed = answered("x", "GET /", {"body": "key-9f3a of key"}, failed=True, body="key-9f3a")
    evidence = Evidence(surface="http", target="x", answers=[echoed])
    hidden = conceal(evidence, ["Token key-9f3a", "of"])
    assert b"key-9f3a" not in msgspec.json.encode(score(hidden))
    assert hidden.answers[0].response == {"body": "[redacted] of key"}


def test_the_rubric_is_complete():
    """Every question has a clause and a fix of one sentence; leaks weigh most."""
    assert max(QUESTIONS, key=lambda one: one.weight).id == "leak"
    for question in QUESTIONS:
        assert question.clause
        assert question.fix.endswith(".")
        assert question.fix.count(". ") == 0


def test_ordinary_answers_have_no_leaks():
    """Routes, links and the service's own address are no leaks."""
    for text in (
        "No such order /v1/orders/17",
        "See https://docs.example.com/errors",
        "http://127.0.0.1:8000/items does not exist",
        "Input should be a valid integer, unable to parse string as an integer",
        "Expecting value: line 1 column 26 (char 25)",
        "no resumable session for session_id=sess_amends_audit",
        "readonly resume?: { readonly session_id: nonEmptyString; readonly resume_token: nonEmptyString }",
    ):
        body = {"status": 400, "headers": {}, "body": {"detail": text}}
        assert (
            answered("x", "GET /", body, failed=True, body=text, target="http://127.0.0.1:8000").leaks == []
        )


def test_questions_that_did_not_come_up(audit_http):
    """No report says yes to a question that nothing was asked about."""
    report = audit_http(api(ours=True))
    idle = [one.id for one in report.questions if not one.came_up]
    assert (report.score, idle) == (3, ["when", "once"])
    shown = "\n".join(lines(report, Painter(on=False)))
    (met,) = [line for line in shown.splitlines() if " met: " in line]
    assert not {"when", "once"} & set(met.replace(",", "").split())
    assert "did not come up: when (no failure may be retried), once" in shown
    assert html(report).count("<td>–</td>") == 2


@pytest.mark.parametrize(
    ("fields", "status", "body", "met"),
    [
        ([], 400, {"message": "params/id must be integer"}, None),  # Fastify
        ([], 400, {"field": "id"}, True),
        ([], 404, {"field": "id"}, True),
        ([], 500, {"message": "Internal Server Error"}, False),
        (["id"], 400, {"message": "params/id must be integer"}, True),
        (["id"], 400, {"message": "Bad Request"}, False),
        (["id"], 401, {"message": "Unauthorized"}, None),
    ],
)
def test_a_value_whose_name_is_not_known(fields, status, body, met):
    """A text may name it, so it is no finding that none does; a member names it certainly."""
    response = {"status": status, "headers": {}, "body": body}
    failure = answered("wrong-type", "GET /items/x", response, failed=True, body=str(body), fields=fields)
    report = score(Evidence(surface="http", target="x", answers=[failure]))
    assert answers(report)["field"] is met


def run(*argv):
    done = amends("audit", *argv)
    return done.returncode, done.stdout.decode()


def test_a_version_that_does_not_exist(audit_mcp):
    """MCP's SDK refuses it; a server that does not look at it is not probed."""
    report = audit_mcp(server(ours=True))
    outcomes = {one.probe: (one.outcome, one.response) for one in report.evidence.answers}
    outcome, response = outcomes["unsupported-version"]
    assert (report.score, outcome, response["error"]["code"]) == (3, "failure", -32602)

    async def lenient(scope, receive, send):
        body = b'{"jsonrpc": "2.0", "id": null, "result": {"capabilities": {}}}'
        frame = json.loads((await receive())["body"])
        start = {
            "type": "http.response.start",
            "status": 200,
            "headers": [(b"content-type", b"application/json")],
        }
        await send(start)
        await send(
            {"type": "http.response.body", "body": body.replace(b"null", str(frame.get("id", 0)).encode())}
        )

    reasons = audit_mcp(lenient).not_probed
    assert "unsupported-version: the server answers in any version" in reasons


def test_options_of_an_mcp_audit(tmp_path):
    """They may come before or after the address; nothing else may come after it."""
    page = tmp_path / "page.html"
    with serve(server(ours=False).streamable_http_app()) as url:
        address = f"{url}/mcp"
        for argv in ([address, "--fail-under", "3", "--html"], ["--fail-under", "3", "--html"]):
            last = [] if address in argv else [address]
            assert run("mcp", *argv, str(page), *last)[0] == 1
            assert page.read_text().startswith("<!doctype html>")
            page.unlink()
        assert run("mcp", address, "--fail-under", "9")[0] == 2
        assert run("mcp", address, "ls")[0] == 3


def test_the_command(tmp_path):
    """`amends audit http` over a socket: JSON and text, --fail-under, --sarif, a file that is no OpenAPI document."""
    with serve(api(ours=False)) as url:
        code, out = run("http", url, "--json", "--fail-under", "2", "--sarif", str(tmp_path / "s.json"))
        assert (code, json.loads(out)["score"]) == (1, 0)
        assert json.loads((tmp_path / "s.json").read_text())["version"] == "2.1.0"
        accepted = ["--baseline", str(tmp_path / "b"), "--write-baseline"]
        assert run("http", url, "--output", "text", *accepted)[1].startswith("0 of 3")
        assert run("http", url, "--output", "text", *accepted[:2], "--fail-under", "3")[0] == 0
        code, out = run("http", url, "--write-baseline", "--json")
        assert (code, json.loads(out)["error"]["field"]) == (3, "--baseline")
    code, out = run("http", "http://127.0.0.1:9", "--json")
    assert (code, json.loads(out)["error"]["code"]) == (12, "SERVICE_UNAVAILABLE")
    (tmp_path / "x").write_text("[]")
    code, out = run("http", "--openapi", str(tmp_path / "x"), "--json")
    assert (code, json.loads(out)["error"]["field"]) == (2, "--openapi")


STDIO = """
from mcp.server.mcpserver import MCPServer
from amends.bindings.mcp import guard
server = MCPServer("stdio")
@server.tool()
def double(number: int) -> int:
    return number * 2
guard(server)
server.run("stdio")
"""


def test_a_server_on_pipes(tmp_path):
    """`amends audit mcp -- command` starts the server, and it is gone afterwards."""
    (tmp_path / "server.py").write_text(STDIO)
    run_it = partial(run, "mcp", "--json", "--")
    code, out = run_it(sys.executable, str(tmp_path / "server.py"), "--api-key=sk-5e1f0c9a7b")
    assert (code, json.loads(out)["score"]) == (0, 3)
    assert "sk-5e1f0c9a7b" not in out
    assert json.loads(out)["target"].endswith("server.py --api-key=[redacted]")
    assert json.loads(out)["version"].startswith("stdio")


HOSTILE = """
import sys
for line in sys.stdin:
    if '"initialize"' in line:
        print('{"jsonrpc": "2.0", "id": 1, "result": {"capabilities": {"tools": {}}, "serverInfo": 7}}', flush=True)
    elif '"tools/list"' in line:
        print('noise')
        schema = '{"type": "object", "required": ["a", 3], "properties": {"a": {"type": ["string", "null"]}, "3": 4}}'
        tools = '[{"name": "x", "inputSchema": ' + schema + ', "annotations": 3}, 5]'
        print('{"jsonrpc": "2.0", "id": 2, "result": {"tools": ' + tools + '}}', flush=True)
    elif '"id"' in line:
        sys.exit(0)
"""


def test_servers_that_answer_nonsense_or_end(tmp_path):
    """A server of any behaviour gives a report or an error that says what happened; the audit does not fail."""
    (tmp_path / "hostile.py").write_text(HOSTILE)
    code, out = run("mcp", "--json", "--", sys.executable, str(tmp_path / "hostile.py"))
    assert (code, json.loads(out)["error"]["code"]) == (12, "SERVICE_UNAVAILABLE")
    code, out = run("mcp", "--json", "--", sys.executable, "-c", "pass")
    assert (code, json.loads(out)["error"]["code"]) == (12, "SERVICE_UNAVAILABLE")
    assert "initialize" in json.loads(out)["error"]["message"]
