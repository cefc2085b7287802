"""Django and REST framework: in process, behind gunicorn (WSGI) and behind uvicorn (ASGI)."""

import json

import httpx2
import pytest

from amends import extract
from tests.http import django_site
from tests.http.serving import process
from tests.ports import free_port


@pytest.fixture(scope="module")
def client():
    from django.test import Client

    assert django_site.urlpatterns
    return Client(raise_request_exception=False)


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("/busy", 503, "SERVICE_UNAVAILABLE"),
        ("/abusy", 503, "SERVICE_UNAVAILABLE"),
        ("/broken", 500, "INTERNAL_ERROR"),
        ("/lost", 404, "NOT_FOUND"),
        ("/nowhere", 404, "NOT_FOUND"),
        ("/forbidden", 403, "PERMISSION_DENIED"),
        ("/only-post", 405, "METHOD_NOT_ALLOWED"),
        ("/orders?kind=throttled", 429, "RATE_LIMITED"),
        ("/orders?kind=broken", 500, "INTERNAL_ERROR"),
        ("/orders?kind=busy", 503, "SERVICE_UNAVAILABLE"),
        ("/orders?kind=lost", 404, "NOT_FOUND"),
        ("/orders?kind=forbidden", 403, "PERMISSION_DENIED"),
        ("/orders", 403, "PERMISSION_DENIED"),
        ("/account", 401, "UNAUTHENTICATED"),
    ],
)
@pytest.mark.filterwarnings("ignore::Warning")
def test_failures_are_problems_with_every_header(client, path, status, code):
    """P1–P3: failures of Django, views and REST framework; security headers are kept, exception texts are not sent."""
    response = client.get(path)
    body = response.json()
    assert (response.status_code, body["status"], body["code"]) == (status, status, code)
    assert response["content-type"] == "application/problem+json"
    assert response["x-content-type-options"] == "nosniff"
    assert b"s3cr3t" not in response.content
    assert body["doc_uri"].startswith("http://testserver/errors/")


def test_waits_headers_and_failing_middleware(client):
    """P3: the wait is in body and header; `Allow` and the author's text are kept; a middleware's failure is answered."""
    throttled = client.get("/orders?kind=throttled")
    assert (throttled["retry-after"], throttled.json()["retry_after_ms"]) == ("3", 3000)
    assert client.get("/only-post")["allow"] == "POST"
    assert client.get("/orders").json()["detail"] == "Ask Ann for access"
    refused = client.get("/ok", headers={"x-refuse": "1"})
    assert refused.json()["code"] == "INTERNAL_ERROR"
    assert b"s3cr3t" not in refused.content
    lost = client.get("/ok", headers={"x-refuse": "lost"})
    assert (lost.status_code, lost.json()["code"]) == (503, "SERVICE_UNAVAILABLE")
    typed = client.get("/ok", headers={"x-refuse": "typed"})
    assert (typed.status_code, typed["retry-after"], typed["x-shop"]) == (429, "3", "north")
    assert typed["x-content-type-options"] == "nosniff"
    assert client.get("/ok", headers={"x-refuse": "typed", "accept": "text/html"}).status_code == 429
    assert client.get("/seat").json()["code"] == "CONFLICT"
    assert client.get("/errors/rate-limited.md").content.startswith(b"# RATE_LIMITED")


@pytest.mark.parametrize("path", ["/batch", "/abatch", "/batches"])
def test_the_envelope_of_a_batch(client, path, caplog):
    """P10: 207, 422 and 503 have type, title, page and trace id, and a log line with that id; the middleware keeps them."""
    caplog.set_level("INFO", "amends.http")
    for items, status, code, page in [
        ("?item=a&item=bad&item=seat", 207, "PARTIAL_FAILURE", "partial-failure"),
        ("?item=bad&item=bad", 422, "VALIDATION_ERROR", "validation-error"),
        ("?item=busy&item=busy", 503, "SERVICE_UNAVAILABLE", "service-unavailable"),
    ]:
        caplog.clear()
        response = client.post(f"{path}{items}")
        body = json.loads(response.content)
        assert (response.status_code, body["status"], body["code"]) == (status, status, code)
        assert response["content-type"] == "application/problem+json"
        assert response["cache-control"] == "no-store"
        assert response["x-content-type-options"] == "nosniff"
        assert body["type"] == body["doc_uri"] == f"http://testserver/errors/{page}"
        assert body["title"]
        assert body["instance"] == path
        (record,) = [each for each in caplog.records if each.name == "amends.http"]
        assert record.trace_id == body["trace_id"]
        assert f"POST {path} answered {status}" in record.getMessage()
        assert b"s3cr3t" not in response.content
        parts = [part["code"] for part in body["errors"]]
        assert parts == {207: ["VALIDATION_ERROR", "CONFLICT"], 422: [code] * 2, 503: [code] * 2}[status]
    assert response["retry-after"] == "2"
    assert json.loads(client.post(f"{path}?item=a").content) == {
        "results": [{"index": 0, "value": {"made": "a"}}]
    }


def test_the_messages_of_the_authors_validators(client):
    """P6: own messages, own codes and own texts for a code come before ours; formsets name the fields as they were sent."""
    rules = {
        "name": {
            "Bob": "Send a string that matches ^[a-z]+$",
            "bob": "Bob has a table already",
            "robot": "People only",
        },
        "seat": {"": "Choose a seat first"},
        "row": {"Z": "Send a string that matches ^[A-F]$"},
    }
    for name, rule in rules["name"].items():
        sent = {
            "guest-TOTAL_FORMS": "1",
            "guest-INITIAL_FORMS": "0",
            "guest-0-name": name,
            "guest-0-row": "Z",
        }
        by_form = client.post("/guests", sent)
        by_serializer = client.post(
            "/api/guests", [{"name": name, "row": "Z"}], content_type="application/json"
        )
        expected = [rule, "Choose a seat first", rules["row"]["Z"]]
        for response, status, names in [
            (by_form, 422, [f"/guest-0-{field}" for field in rules]),
            (by_serializer, 400, [f"/0/{field}" for field in rules]),
        ]:
            parts = response.json()["errors"]
            assert response.status_code == status
            found = {part["field"]: part["suggestions"][0] for part in parts}
            assert found == dict(zip(names, expected, strict=True))
    missing = client.post("/guests", {})
    assert missing.status_code == 422
    assert "ManagementForm" in missing.json()["errors"][0]["detail"]


def test_validation_errors_field_by_field(client):
    """P6, P7: JSON Pointers and suggestions, derived from REST framework's codes."""
    wrong = {
        "amount": -1,
        "currency": "h4ck",
        "code": "abc",
        "lines": [{"sku": "ab"}, {}, {"sku": "x"}],
        "tags": ["a", "long"],
        "password": "hunt2",
    }
    response = client.post("/orders", wrong, content_type="application/json")
    assert response.status_code == 400
    assert [(part["field"], part["suggestions"]) for part in response.json()["errors"]] == [
        ("/amount", ["Send a value of at least 0"]),
        ("/currency", ["Use one of EUR, USD"]),
        ("/code", ["Send a string that matches ^[A-Z]+$"]),
        ("/lines/1/sku", ["Supply this field"]),
        ("/lines/2/sku", ["Send at least 2 characters"]),
        ("/tags/1", ["Send at most 3 characters"]),
        ("/password", ["Send at least 8 characters"]),
    ]
    values = [part.get("details", {}).get("rejected") for part in response.json()["errors"]]
    assert values == [-1, "h4ck", "abc", None, "x", "long", None]
    assert b"hunt2" not in response.content
    mixed = {
        **wrong,
        "amount": 1,
        "currency": "EUR",
        "code": "ABC",
        "lines": [],
        "tags": [],
        "password": "x" * 9,
    }
    (part,) = client.post("/orders", mixed, content_type="application/json").json()["errors"]
    assert (part.get("field"), part["suggestions"]) == (None, ["An order has lines"])
    assert "details" not in part  # no value was rejected, and null is one
    long = {**mixed, "lines": [{"sku": "ab"}], "tags": ["a", "b", "c"]}
    (part,) = client.post("/orders", long, content_type="application/json").json()["errors"]
    assert (part["field"], part["suggestions"]) == ("/tags", ["Send at most 2 items"])


def test_forms_field_by_field(client):
    """`check_form` states the rules of a Django form; a valid form gives its data."""
    wrong = {"amount": "-1", "currency": "h4ck", "name": "x", "code": "abc", "password": "hunt2"}
    response = client.post("/form", wrong)
    assert response.status_code == 422
    assert {part.get("field"): part["suggestions"] for part in response.json()["errors"]} == {
        "/amount": ["Send a value of at least 0"],
        "/currency": ["Use one of EUR, USD, GBP"],
        "/name": ["Send at least 2 characters", "A name is not one letter"],
        "/code": ["Send a string that matches ^[A-Z]+$"],
        "/password": ["Send at least 8 characters"],
        "/day": ["Supply this field"],
        None: ["Start with an account"],
    }
    whole = next(part for part in response.json()["errors"] if "field" not in part)
    assert "details" not in whole
    assert b"hunt2" not in response.content
    right = {
        "amount": "1",
        "currency": "EUR",
        "name": "book",
        "code": "AB",
        "password": "x" * 9,
        "day": "2026-01-01",
    }
    assert client.post("/form", {**right, "account": "1"}).json() == {"amount": 1}


def test_a_browser_gets_djangos_pages(client):
    """A request that prefers HTML gets Django's own error page."""
    lost = client.get("/nowhere", headers={"accept": "text/html"})
    assert lost["content-type"].startswith("text/html")
    assert b"Not Found" in lost.content


@pytest.mark.filterwarnings("ignore::Warning")
async def test_async_handlers(client):
    """Under ASGI the middleware is async, and its responses are the same."""
    from django.test import AsyncClient

    session = AsyncClient(raise_request_exception=False)
    assert (await session.get("/ok")).json() == {"fine": True}
    for path in ("/busy", "/abusy"):
        response = await session.get(path)
        assert (response.json()["code"], response["retry-after"]) == ("SERVICE_UNAVAILABLE", "1")
    assert (await session.get("/nowhere")).json()["code"] == "NOT_FOUND"
    assert (await session.get("/ok", headers={"x-refuse": "typed"})).status_code == 429
    refused = await session.get("/ok", headers={"x-refuse": "1"})
    assert refused.json()["code"] == "INTERNAL_ERROR"
    assert b"s3cr3t" not in refused.content


def test_the_debug_page_is_kept(client):
    """With DEBUG a browser gets Django's debug page for an unexpected exception; other failures are problems."""
    from django.test import override_settings

    with override_settings(DEBUG=True):
        page = client.get("/broken", headers={"accept": "text/html"})
        assert b"Traceback" in page.content
        assert b"Back in a moment" in client.get("/busy", headers={"accept": "text/html"}).content
        assert client.get("/broken").json()["code"] == "INTERNAL_ERROR"


def test_a_disallowed_host_is_not_used_in_urls(client):
    """A host that is not in ALLOWED_HOSTS does not appear in the document."""
    from django.test import override_settings

    with override_settings(ALLOWED_HOSTS=["testserver"]):
        body = client.get("/busy", headers={"host": "evil.example"}).json()
        assert body["code"] == "SERVICE_UNAVAILABLE"
        assert "doc_uri" not in body
        assert "evil" not in str(body)


def test_one_trace_id_and_the_whole_path(client, caplog):
    """P5: the traceback of a view or middleware is logged with the id of the answer."""
    for path, headers in (("/broken", {}), ("/ok", {"x-refuse": "1"})):
        caplog.clear()
        body = client.get(path, headers=headers, SCRIPT_NAME="/shop").json()
        (record,) = [each for each in caplog.records if each.name == "amends.http"]
        assert record.trace_id == body["trace_id"]
        assert record.exc_info is not None
        assert f"GET /shop{path} answered 500" in record.getMessage()
        assert body["instance"] == f"/shop{path}"


def test_the_projects_handler500_is_called(client, monkeypatch):
    """It is called for unexpected exceptions, and not for typed ones."""
    from django.http import JsonResponse
    from django.urls import clear_url_caches

    monkeypatch.setattr(
        django_site, "handler500", lambda request: JsonResponse({"mine": True}, status=500), raising=False
    )
    clear_url_caches()
    try:
        assert client.get("/broken").json() == {"mine": True}
        assert client.get("/busy").status_code == 503
        assert client.get("/seat").status_code == 409
    finally:
        monkeypatch.undo()
        clear_url_caches()


def test_waits_that_cannot_be_meant(client):
    """A throttle that computes an infinite or NaN wait is still answered, with a wait from the table."""
    for wait in ("inf", "nan", "-3", "1e300"):
        response = client.get(f"/orders?kind=throttled&wait={wait}")
        assert response.status_code == 429
        assert int(response["retry-after"]) > 0


def test_challenges(client):
    """A 401 keeps the challenge of the view's authentication class."""
    assert client.get("/account")["www-authenticate"] == 'Basic realm="shop"'


@pytest.mark.parametrize(
    "command",
    [
        ("-m", "gunicorn", "-b", "127.0.0.1:{port}", "--threads", "2", "tests.http.django_site:wsgi"),
        ("-m", "uvicorn", "--port", "{port}", "--lifespan", "off", "tests.http.django_site:asgi"),
    ],
    ids=["gunicorn", "uvicorn"],
)
def test_behind_real_servers(command):
    """P1–P5 over HTTP/1.1 with keep-alive."""
    port = free_port()
    server = process(*(each.format(port=port) for each in command), port=port)
    with server as (url, _), httpx2.Client(base_url=url, timeout=30) as session:
        for path in ("/busy", "/abusy"):
            response = session.get(path)
            fault = extract(response)
            assert (fault.code, fault.retry_after) == ("SERVICE_UNAVAILABLE", 0.2)
            assert response.headers["retry-after"] == "1"
            assert session.get(fault.doc_uri).status_code == 200
            assert session.head(path).status_code == 503
        assert "s3cr3t" not in session.get("/broken").text
        assert session.get("/ok").json() == {"fine": True}
        assert session.get("/nowhere").json()["code"] == "NOT_FOUND"
