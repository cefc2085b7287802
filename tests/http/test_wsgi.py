"""Rewriting responses of synchronous frameworks."""

import httpx2

from amends.bindings.asgi import Problems
from amends.http.request_info import RequestInfo
from amends.http.responses import Settings
from amends.http.wsgi import rewrite


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


def test_the_exception_behind_a_response_decides():
    """If it is known, its fault is sent, not that of the status."""
    from amends.errors import ConflictError

    fault, found = rewrite(500, [], b"", RequestInfo(), Settings(), cause=ConflictError("Seat 7 is taken"))
    assert (fault.code, fault.message, found.status) == ("CONFLICT", "Seat 7 is taken", 409)
    fault, found = rewrite(500, [], b"", RequestInfo(), Settings())
    assert (fault.code, found.status) == ("INTERNAL_ERROR", 500)
