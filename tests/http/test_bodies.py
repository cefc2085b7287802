"""Reading error bodies that frameworks write."""

import httpx2
import pytest

from amends.bindings.asgi import Problems
from amends.http.bodies import LIMIT, fault_from_body, may_rewrite, rewrite
from amends.http.request_info import RequestInfo
from amends.http.responses import Settings


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
        (403, "application/json", b'["detail"]', None),
        (403, "application/json", b'"detail"', None),
        (403, "application/json", b'{"status_code":403}', None),
        (403, "application/json", b'{"mine":1}', None),
        (403, "application/json", b'{"detail":[]}', None),
        (403, "application/json", b'{"detail":[{"loc":["a"],"type":1}]}', None),
        (403, "application/json", b"{", None),
        (700, "text/plain", b"odd", "odd"),
        (403, "application/json", b'{"status_code":403,"detail":"Ask Ann"}', "Ask Ann"),
        (
            500,
            "application/json",
            b'{"status_code":500,"detail":"x"}',
            "Something went wrong inside the service",
        ),
        (403, "text/plain", b'{"status_code":403,"detail":"Ask Ann"}', "Ask Ann"),
        (403, "text/plain", b'{"mine":1}', '{"mine":1}'),
        (403, "application/json", b'{"status_code":404,"detail":"Ask Ann"}', None),
        (403, "application/json", b'{"status_code":403,"detail":"x","extra":{"mine":1}}', None),
        (403, "application/json", b'{"status_code":403,"detail":"x","extra":[{"mine":1}]}', None),
        (403, "application/json", b'{"status_code":403,"detail":{"mine":1}}', None),
        (403, "application/json", b'{"title": "403 Forbidden"}', "This caller may not do that"),
        (403, "application/json", b'{"title": "403 Forbidden", "description": "Ask Ann"}', "Ask Ann"),
        (403, "application/json", b'{"title": "Closed", "description": "Ask Ann"}', None),
        (403, "application/json", b'{"title": "403 Forbidden", "description": 7}', None),
        (403, "application/json", b'{"title": "403 Forbidden", "code": 7}', None),
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


def test_validation_errors_of_litestar():
    """Litestar's `extra` is read field by field."""
    body = (
        b'{"status_code":400,"detail":"Validation failed for GET /","extra":'
        b'[{"message":"Expected `int`, got `str`","key":"page.size","source":"query"},{"message":"m"}]}'
    )
    found = fault_from_body(400, "application/json", body)
    assert (found.status, [part.field for part in found.errors]) == (400, ["/query/page/size", None])
    assert found.errors[0].suggestions == ("Expected `int`, got `str`",)


def test_which_responses_are_looked_into():
    """Failed ones without a structure that can be read here."""
    assert may_rewrite(399, "text/plain", None) is False
    assert may_rewrite(400, "text/plain", None) is True
    assert may_rewrite(500, "application/json", None, "gzip") is False
    assert may_rewrite(500, "application/json", None, "Identity") is True
    assert may_rewrite(500, "text/html", "text/html") is False
    assert may_rewrite(500, "image/png", None) is False


def test_responses_of_sync_frameworks():
    """A large body and an application's own body are kept; a wait in the headers is also in the body (P3)."""
    request, settings = RequestInfo(), Settings()
    assert rewrite(400, [("Content-Type", "text/plain")], b"x" * 70000, request, settings) is None
    assert rewrite(400, [("Content-Type", "image/png")], b"", request, settings) is None
    assert rewrite(400, [("Content-Type", "application/json")], b'{"mine":1}', request, settings) is None
    _, found = rewrite(
        503, [("Retry-After", "7"), ("X-Mine", "1"), ("Vary", "Origin")], b"", request, settings
    )
    assert b'"retry_after_ms":7000' in found.body
    assert dict(found.headers)["X-Mine"] == "1"
    assert dict(found.headers)["vary"] == "Accept, Origin"


def test_compressed_bodies():
    """A compressed HTML page is replaced along with its body headers; other compressed bodies are kept."""
    packed = [("Content-Encoding", "gzip"), ("ETag", "x"), ("X-Mine", "1")]
    _, page = rewrite(
        404, [("Content-Type", "text/html"), *packed], b"\x1f\x8b...", RequestInfo(), Settings()
    )
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


def test_a_success_is_not_rewritten():
    """Only statuses from 400 are rewritten."""
    assert rewrite(200, [("content-type", "text/plain")], b"", RequestInfo(), Settings()) is None


@pytest.mark.parametrize(("size", "kept"), [(LIMIT, False), (LIMIT + 1, True)])
async def test_a_large_body_is_the_applications_own(size, kept):
    """Also if it is sent in one message."""

    async def app(scope, receive, send):
        await send(
            {"type": "http.response.start", "status": 404, "headers": [(b"content-type", b"text/plain")]}
        )
        await send({"type": "http.response.body", "body": b"x" * size})

    transport = httpx2.ASGITransport(app=Problems(app))
    async with httpx2.AsyncClient(transport=transport, base_url="http://shop.example") as client:
        response = await client.get("/")
    assert (response.headers["content-type"] == "text/plain") is kept


@pytest.mark.parametrize(
    ("status", "kind", "accept", "encoding", "expected"),
    [
        (399, "text/plain", None, None, False),
        (400, "text/plain", None, None, True),
        (400, "", None, None, True),
        (400, "Application/JSON; charset=utf-8", None, None, True),
        (400, "image/png", None, None, False),
        (400, "text/html", None, None, True),
        (400, "text/html", "text/html", None, False),
        (400, "text/html", None, "gzip", True),
        (400, "text/plain", None, "gzip", False),
        (400, "text/plain", None, "Identity", True),
    ],
)
def test_what_may_be_rewritten(status, kind, accept, encoding, expected):
    """Errors of the forms that frameworks write by themselves; a page only if the client did not ask for one."""
    assert may_rewrite(status, kind, accept, encoding) is expected


def test_the_exception_behind_a_response_decides():
    """If it is known, its fault is sent, not that of the status."""
    from amends.errors import ConflictError

    fault, found = rewrite(500, [], b"", RequestInfo(), Settings(), cause=ConflictError("Seat 7 is taken"))
    assert (fault.code, fault.message, found.status) == ("CONFLICT", "Seat 7 is taken", 409)
    fault, found = rewrite(500, [], b"", RequestInfo(), Settings())
    assert (fault.code, found.status) == ("INTERNAL_ERROR", 500)
