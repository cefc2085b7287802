"""The modules of `amends.http`, one by one, and the messages for missing dependencies."""

import asyncio
import json
import subprocess
import sys
from http import HTTPStatus
from types import MappingProxyType

import httpx2
import pytest
from msgspec.structs import replace

from amends import Fault, FaultError, extract, stores
from amends.bindings.asgi import Problems
from amends.bindings.httpx import AsyncTransport, Transport
from amends.core.fault import Origin
from amends.core.vocabulary import vocabulary
from amends.errors import ConflictError
from amends.http.application_errors import fault_for, fault_from_status, fault_from_validation
from amends.http.asgi import encode_headers, request_info
from amends.http.bodies import fault_from_body
from amends.http.idempotency_store import Keys
from amends.http.negotiation import preferred_form
from amends.http.openapi import add_problems, problems
from amends.http.responses import RequestInfo, Settings, complete, error_response
from amends.http.wsgi import rewrite
from tests.http.serving import serve


@pytest.mark.parametrize(
    ("accept", "form"),
    [
        (None, "json"),
        ("", "json"),
        ("*/*", "json"),
        ("text/html", "html"),
        ("text/html;q=0.5, application/json", "json"),
        ("text/html;q=0.5, application/json;q=0.4", "html"),
        ("text/html;q=zero", "json"),
        ("text/html;q=9", "json"),
        ("text/markdown, text/html;q=0.9", "markdown"),
        ("application/xhtml+xml", "html"),
        ("text/html, application/problem+json", "json"),
    ],
)
def test_preferred_form(accept, form):
    """The form is JSON unless `Accept` names and prefers HTML or Markdown."""
    assert preferred_form(accept) == form


@pytest.mark.parametrize(
    ("status", "kind", "body", "detail"),
    [
        (403, "text/plain", b"Ask Ann", "Ask Ann"),
        (403, "", b"", "This caller may not do that"),
        (403, "text/plain", b"Forbidden", "This caller may not do that"),
        (403, "text/plain", b"two\nlines", "This caller may not do that"),
        (500, "text/plain", b"Traceback of everything", "Something went wrong inside the service"),
        (403, "text/html", b"<h1>Ask Ann</h1>", "This caller may not do that"),
        (403, "application/json", b"", "This caller may not do that"),
        (403, "application/json", b"null", "This caller may not do that"),
        (403, "application/json", b'{"detail":"Ask Ann"}', "Ask Ann"),
        (403, "application/json", b'{"detail":{"mine":1}}', None),
        (403, "application/json", b'{"detail":"x","more":1}', None),
        (403, "application/json", b"[1]", None),
        (403, "application/json", b"{", None),
        (700, "text/plain", b"odd", "odd"),
    ],
)
def test_unstructured_bodies(status, kind, body, detail):
    """A framework's own error body is read; an application's own body is not."""
    found = fault_from_body(status, kind, body)
    assert (None if found is None else found.message) == detail


def test_validation_errors_of_a_plain_fastapi():
    """FastAPI's own 422 body is read field by field, for an application without `install`."""
    body = b'{"detail":[{"loc":["body","n"],"type":"int_parsing","msg":"secret","input":"secret"}]}'
    found = fault_from_body(422, "application/json", body)
    assert (found.field, found.errors[0].suggestions) == ("/body/n", ("Send a whole number",))
    twice = fault_from_validation([(("a",), "missing"), (("a",), "missing"), (("a",), "int"), ((), "json")])
    assert [part.field for part in twice.errors] == ["/a", None]


def test_responses_of_sync_frameworks():
    """A large body and an application's own body are kept; a wait in the headers is also in the body (P3)."""
    request, settings = RequestInfo(), Settings()
    assert rewrite(400, [("Content-Type", "text/plain")], b"x" * 70000, request, settings) is None
    assert rewrite(400, [("Content-Type", "image/png")], b"", request, settings) is None
    assert rewrite(400, [("Content-Type", "application/json")], b'{"mine":1}', request, settings) is None
    found = rewrite(503, [("Retry-After", "7"), ("X-Mine", "1"), ("Vary", "Origin")], b"", request, settings)
    assert b'"retry_after_ms":7000' in found.body
    assert dict(found.headers)["X-Mine"] == "1"
    assert dict(found.headers)["vary"] == "Accept, Origin"


def test_compressed_bodies():
    """A compressed HTML page is replaced along with its body headers; other compressed bodies are kept."""
    packed = [("Content-Encoding", "gzip"), ("ETag", "x"), ("X-Mine", "1")]
    page = rewrite(404, [("Content-Type", "text/html"), *packed], b"\x1f\x8b...", RequestInfo(), Settings())
    assert {"content-encoding", "etag"}.isdisjoint(name.lower() for name, _ in page.headers)
    assert ("X-Mine", "1") in page.headers
    assert (
        rewrite(404, [("Content-Type", "text/plain"), *packed], b"\x1f\x8b...", RequestInfo(), Settings())
        is None
    )


async def test_compressed_bodies_over_asgi():
    """The ASGI middleware follows the same rules."""

    async def app(scope, receive, send):
        kind = b"text/html" if scope["path"] == "/page" else b"text/plain"
        headers = [(b"content-type", kind), (b"content-encoding", b"x-none")]
        await send({"type": "http.response.start", "status": 404, "headers": headers})
        await send({"type": "http.response.body", "body": b"compressed"})

    transport = httpx2.ASGITransport(app=Problems(app))
    async with httpx2.AsyncClient(transport=transport, base_url="http://shop.example") as client:
        assert (await client.get("/page")).json()["code"] == "NOT_FOUND"
        assert (await client.get("/text")).content == b"compressed"


LEAK = "postgres://admin:hunter2@10.0.0.5/prod"
NOT_TEXT = {
    *("vocabulary", "recovery", "actor", "executed", "origin"),
    *("retry_after", "max_retries", "status", "attempt", "max_attempts"),
}
NOT_REDACTED = {"intent"}
"""Leaves as it is (design, section 6)."""
TEXT_FIELDS = [name for name in Fault.__struct_fields__ if name not in NOT_TEXT | NOT_REDACTED]
VALUES = {
    "suggestions": (LEAK,),
    "details": {"cause": [LEAK]},
    "extensions": {"cause": {"text": LEAK}},
    "errors": (Fault(code="CONFLICT", message=LEAK, suggestions=(LEAK,), details={"cause": LEAK}),),
}


@pytest.mark.parametrize("form", [None, "text/html", "text/markdown"])
@pytest.mark.parametrize("field", TEXT_FIELDS)
def test_every_text_of_a_fault_is_redacted(field, form):
    """A19: whichever field of a Fault a secret is in, no response contains it. A new field is tested too."""
    fault = Fault(**{"code": "CONFLICT", "message": "m", field: VALUES.get(field, LEAK)})
    for origin in (None, Origin("adcp")):
        response = error_response(replace(fault, origin=origin), RequestInfo(accept=form), Settings())
        assert b"hunter2" not in response.body
        assert response.status == (500 if field == "code" else 409)


def test_a_received_problem_is_passed_on_unchanged():
    """Design 6: a problem document of an upstream is not redacted."""
    fault = Fault(code="CONFLICT", message=LEAK, origin=Origin("problem"))
    assert b"hunter2" in error_response(fault, RequestInfo(), Settings()).body


def test_any_message_and_path_give_a_valid_document():
    """Quotes, line breaks and characters outside ASCII are escaped in the document."""
    for message in ("plain", 'quotes " and \\ and ü', "two\nlines"):
        for path, instance in (("/a", "/a"), ("/ä", "/%C3%A4"), ("/a b", "/a%20b"), ("/x\ny", "/x%0Ay")):
            response = error_response(
                Fault(code="CONFLICT", message=message), RequestInfo(path=path), Settings()
            )
            document = json.loads(response.body)
            assert (document["detail"], document["instance"]) == (message, instance)


def test_subclasses_of_plain_types():
    """A status may be an HTTPStatus, a text a subclass of str, and details may contain any mapping."""

    class Text(str):
        __slots__ = ()

    fault = fault_from_status(HTTPStatus.CONFLICT, Text("It changed"))
    response = error_response(fault, RequestInfo(path=Text("/a")), Settings())
    assert (response.status, json.loads(response.body)["detail"]) == (409, "It changed")
    assert set(problems(HTTPStatus.NOT_FOUND)) == {404}
    details = {"limits": MappingProxyType({"count": Text("5")}), "status": HTTPStatus.GONE}
    for intent in (None, {"odd": object()}):
        fault = Fault(code="CONFLICT", message=Text("It changed"), details=details, intent=intent)
        document = json.loads(error_response(fault, RequestInfo(), Settings()).body)
        assert document["detail"] == "It changed"
        assert document["details"] == {"limits": {"count": "5"}, "status": 410}
        assert document.get("intent") == (intent and {"odd": "[redacted]"})


def test_a_path_cannot_add_a_log_line(caplog):
    """Line breaks in a path are quoted in the log."""
    caplog.set_level("INFO", "amends.http")
    error_response(fault_from_status(404), RequestInfo(path="/x\nGET / answered 200"), Settings())
    assert "\n" not in caplog.records[-1].getMessage()


def test_openapi_of_statuses_and_of_others():
    """A bare status uses its row; documents without components or paths are accepted."""
    assert problems(503)[503]["description"] == "The service is temporarily unavailable"
    assert "Problem" in add_problems({"openapi": "3.1.0"})["components"]["schemas"]
    kept = {
        "paths": {"/": {"get": {"responses": {"200": {"$ref": "#/x/HTTPValidationError"}}}, "summary": "s"}}
    }
    assert set(add_problems(kept)["paths"]["/"]["get"]["responses"]) == {"200", "default"}


async def test_completing_after_the_lease_resolves_the_doubt():
    """A request that completes after its lease expired replaces the record that is in doubt."""
    async with await stores.open("memory:") as store:
        keys = Keys(store, expires_in=60, lease=0.1)
        expired = await keys.claim("n", "f", transactional=False)
        await asyncio.sleep(0.2)
        with pytest.raises(FaultError) as caught:
            await keys.claim("n", "f", transactional=False)
        assert caught.value.code == "EFFECT_UNKNOWN"
        await keys.complete(expired, 201, (), b"{}")
        assert (await keys.claim("n", "f", transactional=False)).status == 201
        other = await keys.claim("m", "f", transactional=True)
        await asyncio.sleep(0.2)
        await Keys(store, expires_in=60, lease=60).claim("m", "f", transactional=True)
        await keys.release(other)
        with pytest.raises(FaultError) as caught:
            await keys.claim("m", "f", transactional=True)
        assert caught.value.code == "CONFLICT"


def test_credentials_do_not_follow_redirects():
    """`headers` are sent to the first origin and not to the target of a redirect."""
    seen = {}

    def service(name, target=None):
        async def app(scope, receive, send):
            seen[name] = dict(scope["headers"]).get(b"authorization")
            status, headers = (307, [(b"location", target.encode())]) if target else (200, [])
            await send({"type": "http.response.start", "status": status, "headers": headers})
            await send({"type": "http.response.body", "body": b""})

        return app

    with serve(service("other")) as other, serve(service("own", f"{other}/")) as own:
        transport = Transport(headers=lambda: {"Authorization": "Bearer secret"})
        with httpx2.Client(transport=transport, follow_redirects=True) as client:
            assert client.get(own).status_code == 200
    assert seen == {"own": b"Bearer secret", "other": None}


async def test_inner_transports_are_opened_and_closed():
    """A given transport is opened and closed together with ours."""

    async def app(scope, receive, send):
        raise FaultError("no", code="CONFLICT")

    async with httpx2.AsyncClient(
        transport=AsyncTransport(httpx2.ASGITransport(app=Problems(app)), raises="nothing"),
        base_url="http://a",
    ) as client:
        assert (await client.get("/")).status_code == 409
    with httpx2.Client(transport=Transport(httpx2.HTTPTransport(), raises="nothing")) as client:
        assert not client.is_closed
    assert client.is_closed


BLOCKED = """
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {missing!r}:
            raise ImportError(name)
sys.meta_path.insert(0, Blocked())
try:
    import amends.bindings.{module}
except ImportError as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("module", "missing", "line"),
    [
        ("starlette", {"starlette"}, "pip install 'amends[server]'"),
        ("fastapi", {"fastapi"}, "pip install fastapi"),
        ("flask", {"flask"}, "pip install flask"),
        ("django", {"django"}, "pip install django"),
        ("httpx", {"httpx", "httpx2"}, "pip install 'amends[http]'"),
        ("requests", {"requests"}, "pip install requests"),
        ("aiohttp", {"aiohttp"}, "pip install aiohttp"),
        ("limits", {"limits"}, "pip install 'amends[limits]'"),
        ("a2a", {"a2a"}, "pip install 'amends[a2a]'"),
        ("pydantic_ai", {"pydantic_ai"}, "pip install 'pydantic-ai-slim"),
    ],
)
def test_a_missing_dependency_is_named(module, missing, line):
    """Design 10: the message contains the install command of the extra or of the framework."""
    script = BLOCKED.format(missing=missing, module=module)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert line in done.stdout


def test_the_asgi_middleware_and_httpx_alone_need_nothing_more():
    """`Problems` imports no framework; the client binding works with httpx if httpx2 is not installed."""
    script = "import sys, amends.bindings.asgi; print({'starlette', 'httpx2', 'asyncio'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "set()"
    script = (
        BLOCKED.format(missing={"httpx2"}, module="httpx") + "\nprint(amends.bindings.httpx.library.__name__)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "httpx"


REQUEST = RequestInfo(path="/orders", host="shop.example", traceparent=None)


def test_an_authors_doc_uri_and_type_are_kept():
    """A code without a page gets neither."""
    own = Fault(
        code="NOT_FOUND", vocabulary="http", doc_uri="https://docs.shop.example/lost", type="urn:shop:lost"
    )
    sent = complete(own, REQUEST, Settings(), "id")
    assert (sent.doc_uri, sent.type, sent.instance) == (own.doc_uri, own.type, "/orders")
    unregistered = Fault(code="NEVER_REGISTERED", recovery="terminal", status=418)
    unknown = complete(unregistered, REQUEST, Settings(), "id")
    assert (unknown.doc_uri, unknown.type) == (None, None)


def test_a_received_fault_gets_our_trace_id():
    """P5: a received fault gets our trace id and no suggestions of ours."""
    received = Fault(
        code="RATE_LIMITED", message="slow", vocabulary="task", trace_id="theirs", origin=Origin("task")
    )
    sent = complete(received, REQUEST, Settings(), "ours")
    assert (sent.trace_id, sent.suggestions) == ("ours", ())


@pytest.mark.parametrize(
    ("given", "sent"), [("Accept", "Accept"), ("", "Accept"), ("Origin", "Accept, Origin")]
)
def test_vary(given, sent):
    """Our `Vary` and the framework's are merged without duplicates."""
    response = error_response(fault_from_status(404), REQUEST, Settings(), headers=[("Vary", given)])
    assert dict(response.headers)["vary"] == sent


def test_hosts_and_header_lines():
    """Without a Host header the server's address is used; a header value stays on one line."""
    scope = {"type": "http", "method": "GET", "path": "/", "headers": []}
    assert request_info({**scope, "server": ("127.0.0.1", 8000)}).host == "127.0.0.1:8000"
    assert request_info({**scope, "server": ("/run/app.sock", None)}).host == "/run/app.sock"
    assert request_info(scope).host == ""
    assert encode_headers([("X-A", "a\r\nb: c")]) == [(b"x-a", b"a  b: c")]


def test_a_success_is_not_rewritten():
    """Only statuses from 400 are rewritten."""
    assert rewrite(200, [("content-type", "text/plain")], b"", REQUEST, Settings()) is None


def test_many_mistakes_are_bounded():
    """At most 100 of a thousand wrong fields are listed, each with every suggestion once."""
    found = fault_from_validation((("body", place), "missing") for place in [*range(1000), 0])
    assert 1 < len(found.errors) <= 100
    assert len(found.errors[0].suggestions) == 1


def test_an_upstreams_adcp_code_is_kept():
    """A code that HTTP's vocabulary does not have keeps its own vocabulary."""
    error = {"adcp_error": {"code": "BUDGET_TOO_LOW", "message": "At least 500", "recovery": "correctable"}}
    received = extract({"isError": True, "structuredContent": error}, "mcp")
    fault = fault_for(FaultError.from_fault(received))
    assert (fault.code, fault.vocabulary) == ("BUDGET_TOO_LOW", "adcp")
    assert "BUDGET_TOO_LOW" not in vocabulary("http").rows


class SeatSold(FaultError):
    """The seat is taken"""

    code = "HTTP_TEST_SEAT_SOLD"
    recovery = "correctable"
    status = 409


def test_errors_of_one_status_share_a_response():
    """OpenAPI has one response per status: its description names both errors, with an example of each."""
    (response,) = problems(ConflictError, SeatSold).values()
    assert ";" in response["description"]
    assert len(response["content"]["application/problem+json"]["examples"]) == 2


async def test_completing_after_a_takeover_changes_nothing():
    """The record of the process that took over is kept."""
    async with await stores.open("memory:") as store:
        first, second = Keys(store, expires_in=60, lease=0.1), Keys(store, expires_in=60, lease=60)
        expired = await first.claim("n", "f", transactional=True)
        await asyncio.sleep(0.3)
        taken = await second.claim("n", "f", transactional=True)
        await second.complete(taken, 201, (), b"theirs")
        await first.complete(expired, 200, (), b"ours")
        assert (await second.claim("n", "f", transactional=True)).body == b"theirs"
