"""The ASGI middleware answers failures with problem details and leaves other responses unchanged."""

import asyncio
import json
import logging
import socket

import httpx
import httpx2
import pytest
from starlette.responses import FileResponse

from amends import Fault, FaultError, extract
from amends.bindings.asgi import Problems
from amends.errors import NotFoundError, RateLimitedError, UnauthenticatedError
from tests.http.serving import serve


class SoldOut(FaultError):
    """The last one is gone"""

    code = "HTTP_TEST_SOLD_OUT"
    recovery = "correctable"
    status = 409


async def start(send, status=200, *headers, body=b"", more=False):
    await send({"type": "http.response.start", "status": status, "headers": list(headers)})
    await send({"type": "http.response.body", "body": body, "more_body": more})


async def application(scope, receive, send):
    path = scope["path"].removeprefix(scope.get("root_path", ""))
    if path == "/limited":
        raise RateLimitedError("Slow down", retry_after=1.2, details={"limit": "per minute"})
    if path == "/broken":
        raise ValueError("postgres://admin:hunter2@10.0.0.5/prod")
    if path == "/sold":
        raise SoldOut
    if path == "/who":
        raise UnauthenticatedError
    if path == "/group":
        raise ExceptionGroup("several", [NotFoundError("gone")])
    if path == "/upstream":
        raise httpx.ConnectError("billing.internal:8443 refused")
    if path == "/passed":
        raise FaultError.from_fault(
            extract({"status": 422, "headers": {}, "body": {"detail": "their secret"}})
        )
    if path == "/half":
        await start(send, 200, (b"content-type", b"text/plain"), body=b"half", more=True)
        raise ValueError("half way")
    if path == "/after":
        await start(send, 200, body=b"whole")
        raise ValueError("after the end")
    if path == "/plain503":
        return await start(
            send, 503, (b"retry-after", b"7"), (b"set-cookie", b"a=b"), body=b"Maintenance until noon"
        )
    if path == "/own":
        return await start(send, 400, (b"content-type", b"application/json"), body=b'{"error":{"mine":1}}')
    if path == "/detail":
        return await start(send, 403, (b"content-type", b"application/json"), body=b'{"detail":"Ask Ann"}')
    if path == "/large":
        await start(send, 400, (b"content-type", b"text/plain"), body=b"x" * 70000, more=True)
        return await send({"type": "http.response.body", "body": b"y"})
    if path == "/pieces":
        await start(send, 404, (b"content-type", b"text/plain"), body=b"No such ", more=True)
        return await send({"type": "http.response.body", "body": b"order"})
    if path == "/page":
        return await start(send, 404, (b"content-type", b"text/html"), body=b"<h1>Lost</h1>")
    if path == "/ok":
        return await start(send, 200, body=b"fine")
    return await start(send, 404, (b"content-type", b"text/plain"), body=b"Not Found")


def client(app=None, **options):
    transport = httpx2.ASGITransport(app=app or Problems(application), **options)
    return httpx2.AsyncClient(transport=transport, base_url="https://shop.example")


async def get(path, method="GET", app=None, **headers):
    async with client(app) as session:
        return await session.request(method, path, headers=headers)


async def test_a_raised_error_has_every_member():
    """P1–P6: the core members, is_retriable, the wait in body and header, the page, the trace id and the suggestions."""
    response = await get("/limited")
    assert response.status_code == 429
    assert response.headers["content-type"] == "application/problem+json"
    assert response.headers["retry-after"] == "2"
    body = response.json()
    assert len(body.pop("trace_id")) == 32
    assert body == {
        "type": "https://shop.example/errors/rate-limited",
        "title": "Too many requests",
        "status": 429,
        "detail": "Slow down",
        "instance": "/limited",
        "is_retriable": True,
        "retry_after_ms": 1200,
        "doc_uri": "https://shop.example/errors/rate-limited",
        "suggestions": ["Wait for the stated time, then send the same request again"],
        "code": "RATE_LIMITED",
        "recovery": "transient",
        "actor": "caller",
        "executed": "no",
        "details": {"limit": "per minute"},
    }
    assert extract(response).retry_after == 1.2


async def test_an_unexpected_exception_shows_nothing_of_itself(caplog):
    """The text of a foreign exception is logged with the response's trace id and never sent (P5)."""
    response = await get("/broken")
    body = response.json()
    assert (response.status_code, body["code"], body["recovery"]) == (500, "INTERNAL_ERROR", "uncertain")
    for secret in ("postgres", "hunter2", "10.0.0.5", "ValueError"):
        assert secret not in response.text
    (record,) = [each for each in caplog.records if each.name == "amends.http"]
    assert record.trace_id == body["trace_id"]
    assert body["trace_id"] in record.getMessage()
    assert record.levelno == logging.ERROR
    assert record.exc_info[1].args


async def test_upstream_failures_hide_the_upstream():
    """A18: the response contains neither the address nor the answer of an upstream."""
    refused = await get("/upstream")
    assert (refused.status_code, refused.json()["code"]) == (503, "SERVICE_UNAVAILABLE")
    assert "billing" not in refused.text
    passed = await get("/passed")
    assert passed.status_code == 503
    assert "secret" not in passed.text


async def test_users_own_codes_groups_and_challenges():
    """P4: an own code has a type and a page; a group of one counts as its member; a 401 has a challenge."""
    own = await get("/sold")
    assert (own.status_code, own.json()["detail"]) == (409, "The last one is gone")
    assert own.json()["doc_uri"] == "https://shop.example/errors/http-test-sold-out"
    assert (await get("/errors/http-test-sold-out")).status_code == 200
    assert (await get("/group")).status_code == 404
    assert (await get("/who")).headers["www-authenticate"] == "Bearer"


async def test_unstructured_error_responses_are_rewritten():
    """A plain 404, 405 or 503 becomes a problem by its status, with the author's text and headers (P1, P3)."""
    lost = (await get("/nowhere")).json()
    assert (lost["status"], lost["code"], lost["is_retriable"]) == (404, "NOT_FOUND", False)
    busy = await get("/plain503")
    assert busy.json()["detail"] == "Maintenance until noon"
    assert busy.json()["retry_after_ms"] == 7000
    assert busy.headers["retry-after"] == "7"
    assert busy.headers["set-cookie"] == "a=b"
    assert (await get("/detail")).json()["detail"] == "Ask Ann"
    assert (await get("/pieces")).json()["detail"] == "No such order"


async def test_responses_of_the_application_are_kept():
    """Structured bodies, large bodies, HTML for a client that prefers it, and successes are not rewritten."""
    assert (await get("/own")).json() == {"error": {"mine": 1}}
    assert len((await get("/large")).content) == 70001
    assert (await get("/page", accept="text/html")).text == "<h1>Lost</h1>"
    assert (await get("/page")).json()["code"] == "NOT_FOUND"
    assert (await get("/ok")).text == "fine"


async def test_head_gets_headers_and_no_body():
    """HEAD gets the same headers as GET and no body."""
    response = await get("/limited", "HEAD")
    assert response.content == b""
    assert response.headers["retry-after"] == "2"
    # The trace ids differ in value, not in length.
    assert response.headers["content-length"] == (await get("/limited")).headers["content-length"]


async def test_a_person_gets_a_page():
    """Content negotiation: problem+json by default and for unknown types, a short page if `Accept` prefers one."""
    page = await get("/limited", accept="text/html,application/xhtml+xml,*/*;q=0.8")
    assert page.headers["content-type"].startswith("text/html")
    assert "Slow down" in page.text
    assert 'href="https://shop.example/errors/rate-limited"' in page.text
    note = await get("/limited", accept="text/markdown")
    assert note.headers["content-type"].startswith("text/markdown")
    assert note.text.startswith("# 429 Too many requests")
    for accept in ("image/png", "*/*", "application/json, text/html;q=0.5", "garbage;;q=x"):
        assert (await get("/limited", accept=accept)).headers["content-type"] == "application/problem+json"


async def test_the_trace_is_the_callers():
    """P5: the trace id is that of a valid traceparent; an invalid one is ignored."""
    id = "4bf92f3577b34da6a3ce929d0e0e4736"
    assert (await get("/limited", traceparent=f"00-{id}-00f067aa0ba902b7-01")).json()["trace_id"] == id
    for wrong in ("nonsense", f"ff-{id}-00f067aa0ba902b7-01", f"00-{'0' * 32}-00f067aa0ba902b7-01"):
        assert (await get("/limited", traceparent=wrong)).json()["trace_id"] != id


async def test_response_log_and_span_have_one_id(caplog):
    """P5 with OpenTelemetry: response and log have the span's trace id, and the span has the code."""
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = provider.get_tracer("test")
    inner = Problems(application)

    async def traced(scope, receive, send):
        with tracer.start_as_current_span("request"):
            await inner(scope, receive, send)

    response = await get("/broken", app=traced)
    (span,) = exporter.get_finished_spans()
    id = f"{span.context.trace_id:032x}"
    assert response.json()["trace_id"] == id
    assert [each.trace_id for each in caplog.records if each.name == "amends.http"] == [id]
    assert span.attributes["error.code"] == span.attributes["error.type"] == "INTERNAL_ERROR"
    assert not span.status.is_ok
    assert "hunter2" not in str(span.attributes)


async def test_spans_of_client_errors_and_unsampled_spans():
    """A 4xx is not an error of the server's span; an unsampled trace still provides the trace id."""
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.sampling import ALWAYS_OFF

    inner = Problems(application)
    spans = []

    def traced(**options):
        tracer = TracerProvider(**options).get_tracer("test")

        async def app(scope, receive, send):
            with tracer.start_as_current_span("request") as span:
                spans.append(span)
                await inner(scope, receive, send)

        return app

    refused = (await get("/limited", app=traced())).json()
    assert refused["trace_id"] == f"{spans[-1].get_span_context().trace_id:032x}"
    assert spans[-1].status.status_code is trace.StatusCode.UNSET
    assert spans[-1].attributes["error.code"] == "RATE_LIMITED"
    unsampled = (await get("/broken", app=traced(sampler=ALWAYS_OFF))).json()
    assert unsampled["trace_id"] == f"{spans[-1].get_span_context().trace_id:032x}"
    assert not spans[-1].is_recording()


async def test_the_index_as_html():
    """The index is a table of codes that links to their pages."""
    page = await get("/errors/", accept="text/html")
    assert page.headers["content-type"].startswith("text/html")
    assert "<table>" in page.text
    assert 'href="rate-limited"' in page.text


async def test_every_page_equals_explain_and_shows_what_is_answered():
    """P4: an index and a page per code, in three forms; the Markdown equals that of `amends explain`."""
    from amends.core.explanation import facts, markdown
    from amends.core.vocabulary import vocabulary

    async with client() as session:
        index = (await session.get("/errors/")).json()["errors"]
        assert {entry["code"] for entry in index} >= {*vocabulary("http").rows, "HTTP_TEST_SOLD_OUT"}
        for entry in index:
            name, row = entry["vocabulary"], vocabulary(entry["vocabulary"]).rows[entry["code"]]
            text = await session.get(f"/errors/{entry['page']}.md")
            assert text.text == markdown(name, row)
            values = (await session.get(f"/errors/{entry['page']}")).json()
            example = values.pop("example")
            assert values == facts(name, row)
            # Raising this error gives a response with the members of the example.
            fault = Fault(code=row.code, vocabulary=name, message=row.message)
            raised = (await get("/", app=Problems(raising(fault)))).json()
            shared = {key: raised[key] for key in example if key in raised and key != "trace_id"}
            assert shared.items() <= example.items()
            assert {"title", "status", "detail", "is_retriable", "code", "recovery"} <= shared.keys()
            html = await session.get(f"/errors/{entry['page']}", headers={"accept": "text/html"})
            assert f"<h1>{row.code}" in html.text
        adcp = await session.get("/errors/adcp/budget-too-low", headers={"accept": "text/markdown"})
        assert adcp.text.startswith("# BUDGET_TOO_LOW")
        assert (await session.get("/errors/adcp/")).status_code == 200
        assert (await session.get("/errors")).status_code == 307
        for nothing in ("/errors/no-such-code", "/errors/adcp/x", "/errorsandmore", "/errors/a/b/c"):
            assert (await session.get(nothing)).json()["code"] == "NOT_FOUND"
        assert (await session.post("/errors/rate-limited")).json()["code"] == "NOT_FOUND"


def raising(fault):
    async def app(scope, receive, send):
        raise FaultError.from_fault(fault)

    return app


async def test_pages_can_be_elsewhere_or_nowhere():
    """`pages` and `base_url` change or remove doc_uri; an invalid host removes it."""
    elsewhere = await get(
        "/limited", app=Problems(application, pages="/docs/errors", base_url="https://api.example/v1/")
    )
    assert elsewhere.json()["doc_uri"] == "https://api.example/v1/docs/errors/rate-limited"
    nowhere = await get("/limited", app=Problems(application, pages=None))
    assert "doc_uri" not in nowhere.json()
    assert "doc_uri" not in (await get("/limited", host='evil"/><script>')).json()


async def test_a_mounted_application_knows_its_root():
    """URLs and paths in the document include ASGI's root_path."""
    transport = httpx2.ASGITransport(app=Problems(application), root_path="/v2")
    async with httpx2.AsyncClient(transport=transport, base_url="https://shop.example") as session:
        body = (await session.get("/v2/limited")).json()
        assert body["doc_uri"] == "https://shop.example/v2/errors/rate-limited"
        assert body["instance"] == "/v2/limited"
        assert (await session.get("/v2/errors/rate-limited")).status_code == 200


async def test_other_scopes_pass_untouched():
    """Lifespan and unknown connections, and their exceptions, pass through (WebSockets: test_sockets.py)."""
    seen = []

    async def app(scope, receive, send):
        seen.append((scope, receive, send))
        raise ValueError("passes through")

    for kind in ("lifespan", "webtransport"):
        given = ({"type": kind}, object(), object())
        with pytest.raises(ValueError):
            await Problems(app)(*given)
        assert seen.pop() == given


async def test_no_response_is_a_failure_and_a_disconnect_is_not(caplog):
    """An application that sends no response is answered with 500; a client that disconnects is not logged as an error."""
    from starlette.requests import Request

    async def silent(scope, receive, send):
        if scope["path"] == "/half":
            await send({"type": "http.response.start", "status": 404, "headers": []})

    for path in ("/", "/half"):
        assert (await get(path, app=Problems(silent))).json()["code"] == "INTERNAL_ERROR"

    async def reading(scope, receive, send):
        await Request(scope, receive).body()

    async def gone():
        return {"type": "http.disconnect"}

    sent = []

    async def send(message):
        sent.append(message)

    caplog.clear()
    scope = {"type": "http", "method": "POST", "path": "/", "headers": []}
    await Problems(reading)(scope, gone, send)
    assert sent[0]["status"] == 408
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


@pytest.mark.parametrize(
    ("before", "raised", "last"),
    [
        ((), False, "http.response.body"),
        (("http.response.early_hint",), False, "http.response.body"),
        (("http.response.start", "http.response.push"), True, "http.response.push"),
        (("http.response.start", "http.response.part", "http.response.push"), True, "http.response.push"),
        (("http.response.start", "http.response.body"), False, "http.response.body"),
        (
            ("http.response.start", "http.response.body", "http.response.trailers"),
            False,
            "http.response.trailers",
        ),
    ],
)
async def test_a_failure_is_answered_until_the_response_begins(before, raised, last):
    """Messages of extensions do not begin a response. A failure in the middle of it reaches the server, one after it does not."""
    sent = []

    async def app(scope, receive, send):
        for kind in before:
            part = kind.endswith("part")
            await send(
                {"type": kind.replace("part", "body"), "status": 200, "headers": [], "more_body": part}
            )
        raise NotFoundError("There is no such order")

    async def send(message):
        sent.append(message)

    asked = Problems(app)({"type": "http", "method": "GET", "path": "/", "headers": []}, None, send)
    if raised:
        with pytest.raises(NotFoundError):
            await asked
    else:
        await asked
    assert sent[-1]["type"] == last
    began = [message["status"] for message in sent if message["type"] == "http.response.start"]
    assert began == [200 if "http.response.start" in before else 404]


async def test_an_error_page_that_the_server_sends_is_kept(tmp_path):
    """A file response of a server with `http.response.pathsend`: the start of the response comes before the file."""
    page = tmp_path / "404.html"
    page.write_text("<p>gone")
    sent = []

    async def send(message):
        sent.append(message)

    scope = {
        "type": "http",
        "method": "GET",
        "path": "/",
        "headers": [],
        "extensions": {"http.response.pathsend": {}},
    }
    await Problems(FileResponse(page, 404))(scope, None, send)
    assert [message["type"] for message in sent] == ["http.response.start", "http.response.pathsend"]
    assert sent[0]["status"] == 404


async def test_cancellation_passes():
    """A cancellation by the server is raised and not answered."""

    async def app(scope, receive, send):
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await get("/", app=Problems(app))


async def test_details_that_are_no_json_are_left_out():
    """With details and text that are not JSON, the response is still valid JSON."""
    odd = Fault(code="CONFLICT", message="odd \ud800", details={"x": object()})
    response = await get("/", app=Problems(raising(odd)))
    assert response.status_code == 409
    assert json.loads(response.content)["code"] == "CONFLICT"


def test_real_connections_stay_usable_and_half_responses_break(caplog):
    """uvicorn with keep-alive: error responses keep the connection open, a partial response closes it."""
    with serve(Problems(application)) as url, httpx2.Client(base_url=url) as session:
        for _ in range(3):
            response = session.get("/limited")
            assert response.json()["doc_uri"] == f"{url}/errors/rate-limited"
            assert session.get(response.json()["doc_uri"]).status_code == 200
            assert session.head("/limited").headers["retry-after"] == "2"
        caplog.clear()
        with pytest.raises(httpx2.RemoteProtocolError):
            session.get("/half")
        assert any(each.name == "amends.http" and "middle" in each.getMessage() for each in caplog.records)
        assert session.get("/after").text == "whole"
        assert session.get("/ok").text == "fine"


def test_garbage_on_the_wire_does_not_reach_the_log_or_the_headers():
    """A path with control characters and quotes is answered without adding header lines."""
    with serve(Problems(application)) as url:
        host, port = url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=10) as wire:
            wire.sendall(b'GET /%0d%0aX-Evil:%201"<script> HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n')
            answer = b""
            while chunk := wire.recv(65536):
                answer += chunk
        head = answer.split(b"\r\n\r\n")[0]
        assert b" 404 " in head
        assert b"\r\nX-Evil" not in head
