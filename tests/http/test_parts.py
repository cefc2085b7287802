"""The shared pieces, one by one: negotiation, bodies, waits, keys, and what is said when something is missing."""

import asyncio
import subprocess
import sys

import httpx2
import pytest

from amends import Fault, FaultError, extract, stores
from amends.bindings.asgi import Problems
from amends.bindings.httpx import AsyncTransport, Transport
from amends.core.fault import Origin
from amends.core.vocabulary import vocabulary
from amends.errors import ConflictError
from amends.http.application_errors import fault_for, of_status, of_validation
from amends.http.asgi import asked, encoded
from amends.http.bodies import improved
from amends.http.calls import ended
from amends.http.idempotency_store import Keys
from amends.http.negotiation import wanted
from amends.http.openapi import described, problems
from amends.http.responses import Asked, Settings, answer, problem
from amends.http.wsgi import better
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
def test_what_is_wanted(accept, form):
    """JSON unless a page is named and preferred."""
    assert wanted(accept) == form


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
def test_plain_bodies(status, kind, body, detail):
    """What frameworks send by themselves is read; what an application made is left alone."""
    found = improved(status, kind, body)
    assert (None if found is None else found.message) == detail


def test_validation_errors_of_a_plain_fastapi():
    """Around an application that was not installed into, FastAPI's own 422 is said better too."""
    body = b'{"detail":[{"loc":["body","n"],"type":"int_parsing","msg":"secret","input":"secret"}]}'
    found = improved(422, "application/json", body)
    assert (found.field, found.errors[0].suggestions) == ("/body/n", ("Send a whole number",))
    twice = of_validation([(("a",), "missing"), (("a",), "missing"), (("a",), "int"), ((), "json")])
    assert [part.field for part in twice.errors] == ["/a", None]


def test_responses_of_sync_frameworks():
    """A large body, and one that may stay, stay; a wait in the headers is in the body too (P3)."""
    asked, settings = Asked(), Settings()
    assert better(400, [("Content-Type", "text/plain")], b"x" * 70000, asked, settings) is None
    assert better(400, [("Content-Type", "image/png")], b"", asked, settings) is None
    assert better(400, [("Content-Type", "application/json")], b'{"mine":1}', asked, settings) is None
    found = better(503, [("Retry-After", "7"), ("X-Mine", "1"), ("Vary", "Origin")], b"", asked, settings)
    assert b'"retry_after_ms":7000' in found.body
    assert dict(found.headers)["X-Mine"] == "1"
    assert dict(found.headers)["vary"] == "Accept, Origin"


def test_packed_bodies():
    """A page that was packed is replaced, with what belonged to its body; anything else that was packed stays."""
    packed = [("Content-Encoding", "gzip"), ("ETag", "x"), ("X-Mine", "1")]
    page = better(404, [("Content-Type", "text/html"), *packed], b"\x1f\x8b...", Asked(), Settings())
    assert {"content-encoding", "etag"}.isdisjoint(name.lower() for name, _ in page.headers)
    assert ("X-Mine", "1") in page.headers
    assert better(404, [("Content-Type", "text/plain"), *packed], b"\x1f\x8b...", Asked(), Settings()) is None


async def test_packed_bodies_over_asgi():
    """The same for the middleware."""

    async def app(scope, receive, send):
        kind = b"text/html" if scope["path"] == "/page" else b"text/plain"
        headers = [(b"content-type", kind), (b"content-encoding", b"x-none")]
        await send({"type": "http.response.start", "status": 404, "headers": headers})
        await send({"type": "http.response.body", "body": b"packed"})

    transport = httpx2.ASGITransport(app=Problems(app))
    async with httpx2.AsyncClient(transport=transport, base_url="http://shop.example") as client:
        assert (await client.get("/page")).json()["code"] == "NOT_FOUND"
        assert (await client.get("/text")).content == b"packed"


def test_the_quick_way_says_the_same():
    """A document out of pieces equals one written whole, whatever is in the sentence and the path."""
    settings = Settings()
    for message in ("plain", 'quotes " and \\ and ü', "amends:path:9b07e3", "at 10.0.0.5:5432"):
        for path in ("/a", "/ä", "/a b", "/x\ny"):
            asked = Asked(path=path, host="shop.example", traceparent=f"00-{'ab' * 16}-{'cd' * 8}-01")
            quick = answer(Fault(code="CONFLICT", message=message), asked, settings)
            whole = answer(Fault(code="CONFLICT", message=message, strategy="x"), asked, settings)
            assert quick.body == whole.body.replace(b',"retry_strategy":"x"', b"")
            assert b"10.0.0.5" not in quick.body
    for number in range(600):
        answer(Fault(code="CONFLICT", message=f"no {number}"), Asked(host="a"), settings)


def test_log_lines_stay_lines(caplog):
    """A path cannot forge one."""
    caplog.set_level("INFO", "amends.http")
    answer(of_status(404), Asked(path="/x\nGET / answered 200"), Settings())
    assert "\n" not in caplog.records[-1].getMessage()


def test_openapi_of_statuses_and_of_others():
    """Bare statuses have their row; a document with nothing in it is no problem."""
    assert problems(503)[503]["description"] == "The service is temporarily unavailable"
    assert "Problem" in described({"openapi": "3.1.0"})["components"]["schemas"]
    kept = {
        "paths": {"/": {"get": {"responses": {"200": {"$ref": "#/x/HTTPValidationError"}}}, "summary": "s"}}
    }
    assert set(described(kept)["paths"]["/"]["get"]["responses"]) == {"200", "default"}


async def test_a_holder_that_wakes_up_settles_the_doubt():
    """It was given up as dead, and finished after all: the record says what really happened."""
    async with await stores.open("memory:") as store:
        keys = Keys(store, expires_in=60, lease=0.1)
        slept = await keys.claim("n", "f", transactional=False)
        await asyncio.sleep(0.2)
        with pytest.raises(FaultError) as caught:
            await keys.claim("n", "f", transactional=False)
        assert caught.value.code == "EFFECT_UNKNOWN"
        await keys.done(slept, 201, (), b"{}")
        assert (await keys.claim("n", "f", transactional=False)).status == 201
        other = await keys.claim("m", "f", transactional=True)
        await asyncio.sleep(0.2)
        await Keys(store, expires_in=60, lease=60).claim("m", "f", transactional=True)
        await keys.release(other)
        with pytest.raises(FaultError) as caught:
            await keys.claim("m", "f", transactional=True)
        assert caught.value.code == "CONFLICT"


def test_credentials_do_not_follow_redirects():
    """`headers` go to the service that was called, and to nobody it sends us to."""
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
    """A transport that is given is entered and closed with ours."""

    async def app(scope, receive, send):
        raise FaultError("no", code="CONFLICT")

    async with httpx2.AsyncClient(
        transport=AsyncTransport(httpx2.ASGITransport(app=Problems(app)), errors="return"),
        base_url="http://a",
    ) as client:
        assert (await client.get("/")).status_code == 409
    with httpx2.Client(transport=Transport(httpx2.HTTPTransport(), errors="return")) as client:
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
def test_what_is_missing_is_named(module, missing, line):
    """Design 10: the install line, or the framework itself."""
    script = BLOCKED.format(missing=missing, module=module)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert line in done.stdout


def test_the_asgi_middleware_and_httpx_alone_need_nothing_more():
    """`Problems` loads no framework; the client binding works with httpx where httpx2 is missing."""
    script = "import sys, amends.bindings.asgi; print({'starlette', 'httpx2', 'asyncio'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "set()"
    script = (
        BLOCKED.format(missing={"httpx2"}, module="httpx") + "\nprint(amends.bindings.httpx.library.__name__)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "httpx"


ASKED = Asked(path="/orders", host="shop.example", traceparent=None)


def test_what_an_author_said_is_not_said_again():
    """Pages and types of the author's own stay; a code without a page names none."""
    own = Fault(
        code="NOT_FOUND", vocabulary="http", doc_uri="https://docs.shop.example/lost", type="urn:shop:lost"
    )
    told = problem(own, ASKED, Settings())
    assert (told.doc_uri, told.type, told.instance) == (own.doc_uri, own.type, "/orders")
    unknown = problem(Fault(code="NEVER_REGISTERED", recovery="terminal", status=418), ASKED, Settings())
    assert (unknown.doc_uri, unknown.type) == (None, None)


def test_a_fault_that_came_from_elsewhere_keeps_its_origin():
    """P5: the trace id is ours; the words were looked over where it was read."""
    received = Fault(
        code="RATE_LIMITED", message="slow", vocabulary="task", trace_id="theirs", origin=Origin("task")
    )
    told = problem(received, ASKED, Settings(), "ours")
    assert (told.trace_id, told.origin, told.suggestions) == ("ours", Origin("task"), ())
    again = problem(problem(of_status(404), ASKED, Settings(), "a"), ASKED, Settings(), "b")
    assert (again.trace_id, again.origin.dialect) == ("b", "problem")


@pytest.mark.parametrize(
    ("given", "said"), [("Accept", "Accept"), ("", "Accept"), ("Origin", "Accept, Origin")]
)
def test_what_an_answer_varies_with(given, said):
    """Once each, whoever says it."""
    headers = dict(answer(of_status(404), ASKED, Settings(), headers=[("Vary", given)]).headers)
    assert headers["vary"] == said


def test_hosts_and_lines():
    """HTTP/1.0 names no host: the server's address does; a header stays one line."""
    scope = {"type": "http", "method": "GET", "path": "/", "headers": []}
    assert asked({**scope, "server": ("127.0.0.1", 8000)}).host == "127.0.0.1:8000"
    assert asked({**scope, "server": ("/run/app.sock", None)}).host == "/run/app.sock"
    assert asked(scope).host == ""
    assert encoded([("X-A", "a\r\nb: c")]) == [(b"x-a", b"a  b: c")]


def test_a_success_is_never_said_better():
    """Whatever it looks like."""
    assert better(200, [("content-type", "text/plain")], b"", ASKED, Settings()) is None


def test_many_mistakes_are_bounded():
    """A body with a thousand wrong fields is answered with a few of them, each step once."""
    found = of_validation((("body", place), "missing") for place in [*range(1000), 0])
    assert 1 < len(found.errors) <= 100
    assert len(found.errors[0].suggestions) == 1


def test_an_upstreams_own_words_for_money_stay_in_its_vocabulary():
    """What HTTP has no word for is told in AdCP's."""
    error = {"adcp_error": {"code": "BUDGET_TOO_LOW", "message": "At least 500", "recovery": "correctable"}}
    received = extract({"isError": True, "structuredContent": error}, "mcp")
    told = fault_for(FaultError.from_fault(received))
    assert (told.code, told.vocabulary) == ("BUDGET_TOO_LOW", "adcp")
    assert "BUDGET_TOO_LOW" not in vocabulary("http").rows


class SeatSold(FaultError):
    """Somebody else has the seat"""

    code = "HTTP_TEST_SEAT_SOLD"
    recovery = "correctable"
    status = 409


def test_errors_of_one_status_share_a_response():
    """OpenAPI has one response per status: it says both, with an example of each."""
    (response,) = problems(ConflictError, SeatSold).values()
    assert ";" in response["description"]
    assert len(response["content"]["application/problem+json"]["examples"]) == 2


def test_an_error_without_an_answer_is_raised():
    """Where responses are returned instead, what never had one is raised: its cause, or itself."""
    alone = FaultError(code="CONFLICT")
    with pytest.raises(FaultError) as caught:
        ended(alone, "return")
    assert caught.value is alone
    alone.__cause__ = cause = TimeoutError()
    with pytest.raises(TimeoutError) as late:
        ended(alone, "return")
    assert late.value is cause


async def test_a_holder_that_wakes_up_too_late_changes_nothing():
    """Its record was settled by somebody else, or is gone: it stays so."""
    async with await stores.open("memory:") as store:
        first, second = Keys(store, expires_in=60, lease=0.1), Keys(store, expires_in=60, lease=60)
        slept = await first.claim("n", "f", transactional=True)
        await asyncio.sleep(0.3)
        taken = await second.claim("n", "f", transactional=True)
        await second.done(taken, 201, (), b"theirs")
        await first.done(slept, 200, (), b"ours")
        assert (await second.claim("n", "f", transactional=True)).body == b"theirs"
