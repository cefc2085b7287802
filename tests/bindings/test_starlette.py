"""Starlette: `install`, and the middleware and handlers that the application has."""

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import PlainTextResponse, StreamingResponse
from starlette.routing import Mount, Route, WebSocketRoute
from starlette.testclient import TestClient

from amends.bindings.starlette import install
from amends.errors import ConflictError, InternalError


async def conflict(request):
    raise ConflictError("It changed in the meantime")


async def broken(request):
    raise RuntimeError("s3cr3t")


async def teapot(request):
    raise HTTPException(418, "Short and stout", headers={"x-pot": "tea"})


async def unchanged(request):
    raise HTTPException(304)


async def stream(request):
    async def parts():
        yield b"one "
        yield b"two"

    return StreamingResponse(parts())


async def socket(websocket):
    await websocket.accept()
    await websocket.send_text(await websocket.receive_text())
    await websocket.close()


class Security(BaseHTTPMiddleware):
    async def dispatch(self, request, call_next):
        if "x-refuse" in request.headers:
            raise ValueError("refused by s3cr3t middleware")
        response = await call_next(request)
        response.headers["x-frame-options"] = "DENY"
        return response


def application(**options):
    app = Starlette(
        routes=[
            Route("/conflict", conflict),
            Route("/broken", broken),
            Route("/teapot", teapot),
            Route("/unchanged", unchanged),
            Route("/stream", stream),
            WebSocketRoute("/socket", socket),
            Mount("/sub", routes=[Route("/conflict", conflict)]),
        ],
        middleware=[Middleware(CORSMiddleware, allow_origins=["https://ui.example"]), Middleware(Security)],
        **options,
    )
    install(app)
    return app


async def get(path, method="GET", app=None, **headers):
    transport = httpx2.ASGITransport(app=app or application(), raise_app_exceptions=False)
    async with httpx2.AsyncClient(transport=transport, base_url="https://shop.example") as session:
        return await session.request(method, path, headers=headers)


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("/conflict", 409, "CONFLICT"),
        ("/sub/conflict", 409, "CONFLICT"),
        ("/broken", 500, "INTERNAL_ERROR"),
        ("/nowhere", 404, "NOT_FOUND"),
        ("/teapot", 418, "BAD_REQUEST"),
    ],
)
async def test_failures_keep_cors_and_security_headers(path, status, code):
    """P1: every kind of failure is a problem, with the headers that outer middleware adds."""
    response = await get(path, origin="https://ui.example")
    assert (response.status_code, response.json()["code"], response.json()["status"]) == (
        status,
        code,
        status,
    )
    assert response.headers["content-type"] == "application/problem+json"
    assert response.headers["access-control-allow-origin"] == "https://ui.example"
    assert response.headers["x-frame-options"] == "DENY"
    assert "Accept" in response.headers["vary"]
    assert "s3cr3t" not in response.text


async def test_an_exceptions_headers_and_detail_are_kept():
    """`HTTPException(headers=…)`, `Allow` of a 405, and a status below 400."""
    pot = await get("/teapot")
    assert (pot.headers["x-pot"], pot.json()["detail"]) == ("tea", "Short and stout")
    assert set((await get("/conflict", "DELETE")).headers["allow"].split(", ")) == {"GET", "HEAD"}
    assert (await get("/conflict", "DELETE")).json()["code"] == "METHOD_NOT_ALLOWED"
    assert (await get("/unchanged")).status_code == 304


async def test_exceptions_of_outer_middleware_are_answered():
    """The handler for Exception answers them, without their text."""
    response = await get("/conflict", **{"x-refuse": "1"})
    assert response.json()["code"] == "INTERNAL_ERROR"
    assert "s3cr3t" not in response.text


async def test_handlers_of_the_application_are_kept():
    """`install` does not replace a registered exception handler."""

    async def mine(request, exc):
        return PlainTextResponse("mine", 299)

    app = application(exception_handlers={ConflictError: mine})
    assert (await get("/conflict", app=app)).status_code == 299


async def test_a_typed_error_with_status_500_is_answered_once(caplog):
    """The log line and the response have the same trace id."""

    async def fail(request):
        raise InternalError("The stock is not known")

    app = Starlette(routes=[Route("/", fail)])
    install(app)
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://localhost") as client:
        response = await client.get("/")
    assert (response.status_code, response.json()["detail"]) == (500, "The stock is not known")
    (line,) = [record for record in caplog.records if record.name == "amends.http"]
    assert line.trace_id == response.json()["trace_id"]


async def test_streams_and_websockets_pass():
    """Streams and websockets without failures are unchanged."""
    assert (await get("/stream")).text == "one two"
    with TestClient(application()) as session, session.websocket_connect("/socket") as wire:
        wire.send_text("hello")
        assert wire.receive_text() == "hello"


async def test_installing_late_is_refused():
    """Middleware cannot be added after the first request."""
    app = application()
    await get("/conflict", app=app)
    with pytest.raises(RuntimeError):
        install(app)
