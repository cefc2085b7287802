"""Errors raised in applications that are mounted, or wrapped by `Problems`: Starlette, FastAPI, Quart, Litestar."""

import asyncio

import httpx2
import pytest
from fastapi import FastAPI
from litestar import Litestar
from litestar import get as litestar_get
from litestar.params import FromPath
from quart import Quart
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.responses import JSONResponse, PlainTextResponse, StreamingResponse
from starlette.routing import Mount, Route

from amends.bindings import fastapi as fastapi_binding
from amends.bindings.asgi import Problems
from amends.bindings.starlette import install
from amends.errors import ConflictError, RateLimitedError


class SeatTaken(Exception):
    pass


def fail(kind):
    if kind == "conflict":
        raise ConflictError("It changed", headers={"X-Version": "7"})
    if kind == "seat":
        raise SeatTaken("s3cr3t seat")
    raise RuntimeError("s3cr3t in the database")


async def endpoint(request):
    fail(request.path_params["kind"])


def starlette_app(**options):
    return Starlette(routes=[Route("/raise/{kind}", endpoint)], **options)


def fastapi_app():
    app = FastAPI()

    @app.get("/raise/{kind}")
    async def route(kind: str, number: int = 0):
        fail(kind)

    return app


def quart_app():
    app = Quart(__name__)

    @app.get("/raise/<kind>")
    async def route(kind):
        fail(kind)

    return app


def litestar_app():
    @litestar_get("/raise/{kind:str}")
    async def route(kind: FromPath[str]) -> None:
        fail(kind)

    return Litestar([route], logging_config=None)


class Passing(BaseHTTPMiddleware):
    async def dispatch(self, request, call_next):
        if "x-refuse" in request.headers:
            raise RateLimitedError("Not so fast", retry_after=3)
        return await call_next(request)


def mounted(sub):
    app = Starlette(routes=[Mount("/sub", app=sub)], middleware=[Middleware(Passing)])
    install(app, errors={SeatTaken: "CONFLICT"})
    return app


def mounted_and_wrapped(sub):
    """`Problems` gets the answer of the mounted application from another task than the one that handles the exception."""
    return wrapped(Starlette(routes=[Mount("/sub", app=sub)], middleware=[Middleware(Passing)]))


def fastapi_mounted(sub):
    app = FastAPI()
    app.mount("/sub", sub)
    fastapi_binding.install(app, errors={SeatTaken: "CONFLICT"})
    return app


def wrapped(app):
    return Problems(app, errors={SeatTaken: "CONFLICT"})


def wrapped_inside(app):
    """Quart's own way to add middleware."""
    app.asgi_app = Problems(app.asgi_app, errors={SeatTaken: "CONFLICT"})
    return app


def wrapped_behind_task(app):
    """Starlette's BaseHTTPMiddleware calls the application in a task of its own."""
    return wrapped(Passing(Passing(app)))


def mounted_behind_task(app):
    return mounted(Passing(app))


class Plain:
    """A middleware that does not keep the application under a usual name."""

    def __init__(self, wrapped):
        self.wrapped = wrapped

    async def __call__(self, scope, receive, send):
        async def send_marked(message):
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message["headers"], (b"x-mark", b"1")]}
            await send(message)

        await self.wrapped(scope, receive, send_marked)


def wrapped_around(app):
    return wrapped(Plain(app))


async def get(app, path, **headers):
    transport = httpx2.ASGITransport(app=app)
    async with httpx2.AsyncClient(transport=transport, base_url="https://shop.example") as client:
        return await client.get(path, headers=headers)


APPS = [
    pytest.param(wrapped, starlette_app, "", id="wrapped-starlette"),
    pytest.param(wrapped, fastapi_app, "", id="wrapped-fastapi"),
    pytest.param(wrapped, quart_app, "", id="wrapped-quart"),
    pytest.param(wrapped, litestar_app, "", id="wrapped-litestar"),
    pytest.param(wrapped_inside, quart_app, "", id="wrapped-inside-quart"),
    pytest.param(mounted, quart_app, "/sub", id="quart-in-starlette"),
    pytest.param(mounted, starlette_app, "/sub", id="starlette-in-starlette"),
    pytest.param(mounted, fastapi_app, "/sub", id="fastapi-in-starlette"),
    pytest.param(mounted, litestar_app, "/sub", id="litestar-in-starlette"),
    pytest.param(fastapi_mounted, fastapi_app, "/sub", id="fastapi-in-fastapi"),
    pytest.param(mounted_and_wrapped, starlette_app, "/sub", id="starlette-in-wrapped-starlette"),
    pytest.param(mounted_and_wrapped, fastapi_app, "/sub", id="fastapi-in-wrapped-starlette"),
    pytest.param(mounted_and_wrapped, quart_app, "/sub", id="quart-in-wrapped-starlette"),
    pytest.param(mounted_and_wrapped, litestar_app, "/sub", id="litestar-in-wrapped-starlette"),
    pytest.param(mounted_behind_task, starlette_app, "/sub", id="starlette-mounted-behind-task"),
    pytest.param(mounted_behind_task, fastapi_app, "/sub", id="fastapi-mounted-behind-task"),
    pytest.param(mounted_behind_task, quart_app, "/sub", id="quart-mounted-behind-task"),
    pytest.param(mounted_behind_task, litestar_app, "/sub", id="litestar-mounted-behind-task"),
    pytest.param(wrapped_behind_task, starlette_app, "", id="starlette-behind-task"),
    pytest.param(wrapped_behind_task, fastapi_app, "", id="fastapi-behind-task"),
    pytest.param(wrapped_behind_task, quart_app, "", id="quart-behind-task"),
    pytest.param(wrapped_behind_task, litestar_app, "", id="litestar-behind-task"),
]


def ours(caplog):
    return [record for record in caplog.records if record.name == "amends.http"]


@pytest.mark.parametrize("accept", ["*/*", "text/html"])
@pytest.mark.parametrize(("outer", "inner", "prefix"), APPS)
async def test_a_typed_error_arrives_as_what_it_is(outer, inner, prefix, accept, caplog):
    """The code, the headers and one log line without a traceback, with the whole path."""
    caplog.set_level("INFO")
    app = outer(inner())
    response = await get(app, f"{prefix}/raise/conflict", accept=accept)
    assert (response.status_code, response.headers["x-version"]) == (409, "7")
    assert "It changed" in response.text
    (record,) = ours(caplog)
    assert record.exc_info is None
    assert f"GET {prefix}/raise/conflict answered 409 CONFLICT" in record.getMessage()
    assert record.trace_id in response.text


@pytest.mark.parametrize("inner", [starlette_app, fastapi_app, quart_app, litestar_app])
async def test_headers_of_middleware_below_are_kept(inner):
    """`Problems` around another middleware: the typed error is answered, with the headers that the middleware adds."""
    answered = await get(wrapped_around(inner()), "/raise/conflict")
    assert (answered.status_code, answered.json()["code"]) == (409, "CONFLICT")
    assert (answered.headers["x-version"], answered.headers["x-mark"]) == ("7", "1")
    assert answered.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize(("outer", "inner", "prefix"), APPS)
async def test_a_registered_class_has_its_code(outer, inner, prefix):
    """`errors={E: "CODE"}`: the code without the exception's text."""
    response = await get(outer(inner()), f"{prefix}/raise/seat")
    assert (response.status_code, response.json()["code"]) == (409, "CONFLICT")
    assert "s3cr3t" not in response.text


@pytest.mark.parametrize(("outer", "inner", "prefix"), APPS)
async def test_a_traceback_is_logged_with_the_answers_trace_id(outer, inner, prefix, caplog):
    """P5: one log line with the traceback and the id of the answer, also where a framework answered first."""
    response = await get(outer(inner()), f"{prefix}/raise/broken")
    assert (response.status_code, response.json()["code"]) == (500, "INTERNAL_ERROR")
    assert "s3cr3t" not in response.text
    (record,) = ours(caplog)
    assert record.trace_id == response.json()["trace_id"]
    assert isinstance(record.exc_info[1], RuntimeError)
    assert f"GET {prefix}/raise/broken" in record.getMessage()


async def test_a_mounted_application_with_its_own_install(caplog):
    """The inner application answers, once; its log line has the whole path."""
    inner = starlette_app()
    install(inner)
    response = await get(mounted(inner), "/sub/raise/broken")
    assert (response.json()["instance"], response.json()["code"]) == ("/sub/raise/broken", "INTERNAL_ERROR")
    (record,) = ours(caplog)
    assert record.trace_id == response.json()["trace_id"]
    assert "GET /sub/raise/broken" in record.getMessage()


async def test_a_typed_error_of_a_middleware():
    """Middleware outside of `Problems` raises typed errors, too."""
    response = await get(mounted(starlette_app()), "/sub/raise/conflict", **{"x-refuse": "1"})
    assert (response.status_code, response.headers["retry-after"]) == (429, "3")


async def test_the_validation_errors_of_a_mounted_fastapi():
    """FastAPI's own 422 of an application without `install` is read field by field."""
    response = await get(mounted(fastapi_app()), "/sub/raise/broken?number=x")
    assert (response.status_code, response.json()["field"]) == (422, "/query/number")


@pytest.mark.parametrize("kind", [500, Exception])
@pytest.mark.parametrize("late", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("factory", [starlette_app, fastapi_app])
async def test_handlers_for_exception_and_500_are_called(factory, late, kind):
    """A handler of the application is called for unexpected exceptions, registered before or after `install`."""
    calls = []

    async def mine(request, exc):
        calls.append(exc)
        return JSONResponse({"mine": True}, 500)

    app = factory()
    binding = install if factory is starlette_app else fastapi_binding.install
    if late:
        binding(app, errors={SeatTaken: "CONFLICT"})
    app.add_exception_handler(kind, mine)
    if not late:
        binding(app, errors={SeatTaken: "CONFLICT"})
    transport = httpx2.ASGITransport(app=app, raise_app_exceptions=False)
    async with httpx2.AsyncClient(transport=transport, base_url="https://shop.example") as client:
        assert (await client.get("/raise/broken")).json() == {"mine": True}
        assert len(calls) == 1
        assert (await client.get("/raise/conflict")).status_code == 409
        assert (await client.get("/raise/seat")).status_code == 409
    assert len(calls) == 1


@pytest.mark.parametrize("inner", [starlette_app, fastapi_app])
@pytest.mark.parametrize("wrap", [lambda app: app, Passing], ids=["direct", "behind-task"])
async def test_a_handler_is_called_for_exceptions_of_mounted_applications(inner, wrap, caplog):
    """The handler of the outer application answers, instead of the mounted application's plain 500."""
    calls = []

    async def mine(request, exc):
        calls.append(exc)
        return JSONResponse({"mine": True}, 500)

    app = Starlette(routes=[Mount("/sub", app=wrap(inner()))], exception_handlers={Exception: mine})
    install(app, errors={SeatTaken: "CONFLICT"})
    transport = httpx2.ASGITransport(app=app, raise_app_exceptions=False)
    async with httpx2.AsyncClient(transport=transport, base_url="https://shop.example") as client:
        assert (await client.get("/sub/raise/broken")).json() == {"mine": True}
        assert [type(exc) for exc in calls] == [RuntimeError]
        assert (await client.get("/sub/raise/seat")).status_code == 409
        assert (await client.get("/sub/raise/conflict")).status_code == 409
    assert len(calls) == 1


async def test_a_handler_is_not_needed_for_a_framework_that_does_not_raise(caplog):
    """Litestar and Quart do not raise what they answered, so the handler is not called; the traceback is logged."""

    async def mine(request, exc):
        raise AssertionError

    app = Starlette(routes=[Mount("/sub", app=litestar_app())], exception_handlers={Exception: mine})
    install(app)
    response = await get(app, "/sub/raise/broken")
    assert (response.status_code, response.json()["code"]) == (500, "INTERNAL_ERROR")
    (record,) = ours(caplog)
    assert isinstance(record.exc_info[1], RuntimeError)


async def test_a_handler_of_a_mounted_application_is_called():
    """Its structured answer arrives."""

    async def mine(request, exc):
        return JSONResponse({"mine": True}, 500)

    sub = starlette_app(exception_handlers={Exception: mine})
    assert (await get(mounted(sub), "/sub/raise/broken")).json() == {"mine": True}


async def test_a_handler_for_another_class_is_left_alone():
    """A plain 503 that a handler made for its own exception keeps the author's text."""

    async def mine(request, exc):
        return PlainTextResponse("Being counted", 503)

    app = Problems(starlette_app(exception_handlers={SeatTaken: mine}))
    response = await get(app, "/raise/seat")
    assert (response.status_code, response.json()["detail"]) == (503, "Being counted")


async def test_an_answer_of_the_applications_own_does_not_wait_for_its_background_task():
    """Only a plain 500, which may be followed by its exception, is held until the application ends."""
    sent = asyncio.Event()

    async def own(request):
        return JSONResponse({"error": "mine"}, 500, background=BackgroundTask(sent.wait))

    app = wrapped(Starlette(routes=[Route("/own", own)], middleware=[Middleware(Passing)]))
    messages = []

    async def send(message):
        messages.append(message)
        if not message.get("more_body", True):
            sent.set()

    async def receive():
        return {"type": "http.request", "body": b"", "more_body": False}

    scope = {"type": "http", "method": "GET", "path": "/own", "query_string": b"", "headers": []}
    await asyncio.wait_for(app(scope, receive, send), 10)
    assert b"".join(message.get("body", b"") for message in messages) == b'{"error":"mine"}'


async def test_a_plain_500_without_an_exception_is_rewritten():
    async def plain(request):
        return PlainTextResponse("Internal Server Error", 500)

    app = wrapped(Starlette(routes=[Route("/plain", plain)], middleware=[Middleware(Passing)]))
    response = await get(app, "/plain")
    assert (response.status_code, response.json()["code"]) == (500, "INTERNAL_ERROR")


@pytest.mark.parametrize("factory", [starlette_app, fastapi_app])
async def test_a_failure_in_the_middle_of_a_response_is_logged_once(factory, caplog):
    """Nothing was answered with 500, so no line says so."""

    async def parts():
        yield b"a part"
        raise RuntimeError("broken")

    async def stream(request):
        return StreamingResponse(parts())

    app = factory()
    app.router.routes.append(Route("/stream", stream))
    install(app)
    transport = httpx2.ASGITransport(app=app, raise_app_exceptions=False)
    async with httpx2.AsyncClient(transport=transport, base_url="https://shop.example") as client:
        await client.get("/stream")
    (record,) = ours(caplog)
    assert "GET /stream failed in the middle of its response" in record.getMessage()
