"""WebSockets and the other types of ASGI, in every framework: a denial before they are accepted, a close afterwards."""

import json
from contextlib import asynccontextmanager

import httpx2
import pytest
import websockets
from fastapi import FastAPI, Query, WebSocket, WebSocketException
from litestar import Litestar
from litestar import WebSocket as LitestarSocket
from litestar import websocket as litestar_websocket
from litestar.exceptions import HTTPException as LitestarError
from quart import Quart
from quart import websocket as quart_websocket
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.routing import WebSocketRoute

import amends.bindings.fastapi
import amends.bindings.starlette
from amends.bindings.asgi import Problems
from amends.bindings.limits import Limited
from amends.errors import ConflictError, RateLimitedError, ServiceUnavailableError
from amends.http.cancellation import Cancellable
from amends.http.idempotency import Idempotent
from tests.http.serving import serve

SECRET = "s3cr3t of db.internal"


def fail(kind):
    if kind == "typed":
        raise ConflictError("The seat is taken")
    if kind == "busy":
        raise RateLimitedError("Slow down", retry_after=2)
    if kind == "bug":
        raise RuntimeError(SECRET)
    if kind == "group":
        raise ExceptionGroup("g", [ConflictError("One"), ConflictError("Two")])
    if kind == "lost":
        raise ConnectionRefusedError(SECRET)


EXPECTED = {
    "typed": (409, "CONFLICT", 1008, "CONFLICT: The seat is taken"),
    "busy": (429, "RATE_LIMITED", 1013, "RATE_LIMITED: Slow down"),
    "bug": (500, "INTERNAL_ERROR", 1011, "INTERNAL_ERROR: Something went wrong inside the service"),
    "group": (409, "CONFLICT", 1008, "CONFLICT: The request does not fit the present state"),
    "lost": (503, "SERVICE_UNAVAILABLE", 1013, "SERVICE_UNAVAILABLE: The service is temporarily unavailable"),
}


async def starlette_endpoint(socket):
    kind, when = socket.path_params["kind"], socket.path_params["when"]
    if when == "before":
        fail(kind)
    await socket.accept()
    if when == "after":
        fail(kind)
    await socket.send_text(await socket.receive_text())
    await socket.close()


def in_starlette():
    app = Starlette(routes=[WebSocketRoute("/{when}/{kind}", starlette_endpoint)])
    amends.bindings.starlette.install(app)
    return app


def in_fastapi():
    app = FastAPI()
    amends.bindings.fastapi.install(app)

    @app.websocket("/{when}/{kind}")
    async def endpoint(socket: WebSocket, when: str, kind: str):
        await starlette_endpoint(socket)

    return app


def in_litestar():
    @litestar_websocket("/{when:str}/{kind:str}")
    async def endpoint(socket: LitestarSocket) -> None:
        await starlette_endpoint(socket)

    return Problems(Litestar([endpoint], logging_config=None))


def in_quart():
    app = Quart("shop")

    @app.websocket("/<when>/<kind>")
    async def endpoint(when, kind):
        if when == "before":
            fail(kind)
        await quart_websocket.accept()
        if when == "after":
            fail(kind)
        await quart_websocket.send(await quart_websocket.receive())

    return Problems(app)


def bare():
    async def app(scope, receive, send):
        if scope["type"] != "websocket":
            return
        _, when, kind = scope["path"].split("/")
        assert (await receive())["type"] == "websocket.connect"
        if when == "before":
            fail(kind)
        await send({"type": "websocket.accept"})
        if when == "after":
            fail(kind)
        text = (await receive())["text"]
        await send({"type": "websocket.send", "text": text})
        await send({"type": "websocket.close", "code": 1000})

    return Problems(app)


def without_denials(app):
    async def plain(scope, receive, send):
        if scope["type"] == "websocket":
            scope = {**scope, "extensions": {}}
        await app(scope, receive, send)

    return plain


def wrapped_idempotent():
    return Idempotent(in_starlette(), "memory:")


FRAMEWORKS = [bare, in_starlette, in_fastapi, in_litestar, in_quart, wrapped_idempotent]


async def outcome(url, path):
    """Return the refusal of a connection as (status, body), or the end of an accepted one as (code, reason)."""
    address = url.replace("http://", "ws://") + path
    try:
        async with websockets.connect(address, open_timeout=20, proxy=None) as socket:
            try:
                await socket.send("hello")
                text = await socket.recv()
                await socket.wait_closed()
                return text, socket.close_code
            except websockets.ConnectionClosed:
                return socket.close_code, socket.close_reason
    except websockets.InvalidStatus as refused:
        return refused.response.status_code, refused.response


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("framework", FRAMEWORKS)
async def test_failures_of_a_socket(framework):
    """Before accept: a problem document; afterwards: a close with a code and a reason that has no foreign text."""
    with serve(framework(), ws="websockets-sansio") as url:
        for kind, (status, code, close, reason) in EXPECTED.items():
            found, response = await outcome(url, f"/before/{kind}")
            document = json.loads(response.body)
            assert (found, document["status"], document["code"]) == (status, status, code), kind
            assert response.headers["content-type"] == "application/problem+json"
            assert SECRET not in str(document)
            assert await outcome(url, f"/after/{kind}") == (close, reason)
        assert await outcome(url, "/after/fine") == ("hello", 1000)


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("framework", FRAMEWORKS)
async def test_a_server_without_denials(framework):
    """It answers 403 before accept."""
    with serve(without_denials(framework()), ws="websockets-sansio") as url:
        for kind in EXPECTED:
            found, _ = await outcome(url, f"/before/{kind}")
            assert found == 403
        assert (await outcome(url, "/after/typed"))[0] == 1008


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("install", [True, False])
async def test_exceptions_of_starlette(install):
    """`HTTPException(403)` is a denial before accept and a close afterwards; `WebSocketException` keeps its code."""

    async def endpoint(socket):
        when = socket.path_params["when"]
        if when == "after":
            await socket.accept()
        if socket.path_params["kind"] == "http":
            raise HTTPException(403, "Ask Ann for access")
        raise WebSocketException(4321, "in the author's words")

    app = Starlette(routes=[WebSocketRoute("/{when}/{kind}", endpoint)])
    if install:
        amends.bindings.starlette.install(app)
    with serve(app if install else Problems(app), ws="websockets-sansio") as url:
        status, response = await outcome(url, "/before/http")
        document = json.loads(response.body)
        assert (status, document["code"], document["detail"]) == (
            403,
            "PERMISSION_DENIED",
            "Ask Ann for access",
        )
        code, reason = await outcome(url, "/after/http")
        assert code == 1008
        assert reason.startswith("PERMISSION_DENIED: ")
        assert await outcome(url, "/after/socket") == (4321, "in the author's words")
        assert (await outcome(url, "/before/socket"))[0] == 403


@pytest.mark.usefixtures("quiet")
async def test_a_refused_argument_of_a_socket():
    """FastAPI's validation error names the field, and does not repeat the value."""
    app = FastAPI()
    amends.bindings.fastapi.install(app)

    @app.websocket("/")
    async def endpoint(socket: WebSocket, seat: int = Query()):
        await socket.accept()

    with serve(app, ws="websockets-sansio") as url:
        status, response = await outcome(url, "/?seat=window")
    assert (status, json.loads(response.body)["field"]) == (422, "/query/seat")


@pytest.mark.usefixtures("quiet")
async def test_exceptions_of_litestar():
    """A status that the application states, before and after accept: never the text of the exception behind it."""

    @litestar_websocket("/{when:str}")
    async def endpoint(socket: LitestarSocket) -> None:
        if socket.path_params["when"] == "after":
            await socket.accept()
        try:
            raise OSError(SECRET)
        except OSError as error:
            raise LitestarError(str(error), status_code=503) from error

    with serve(Problems(Litestar([endpoint], logging_config=None)), ws="websockets-sansio") as url:
        status, response = await outcome(url, "/before")
        assert (status, SECRET in response.body.decode()) == (503, False)
        code, reason = await outcome(url, "/after")
        assert (code, SECRET in reason) == (1013, False)


class Refusing:
    def __init__(self, app):
        self.app = app

    async def __call__(self, scope, receive, send):
        if scope["type"] == "websocket":
            raise ServiceUnavailableError("Later", retry_after=3)
        await self.app(scope, receive, send)


@pytest.mark.usefixtures("quiet")
async def test_middleware_that_refuses_a_socket():
    """Also middleware around `Problems` gets its error answered."""
    app = Starlette(
        routes=[WebSocketRoute("/{when}/{kind}", starlette_endpoint)], middleware=[Middleware(Refusing)]
    )
    amends.bindings.starlette.install(app)
    with serve(app, ws="websockets-sansio") as url:
        status, response = await outcome(url, "/after/fine")
    assert (status, response.headers["retry-after"]) == (503, "3")


def messages(*events):
    waiting = list(events)

    async def receive():
        return waiting.pop(0)

    return receive


async def exchange(app, *events, **scope):
    sent = []

    async def send(message):
        sent.append(message)

    scope = {"type": "websocket", "path": "/", "headers": [], "extensions": {}, **scope}
    await app(scope, messages(*events), send)
    return sent


async def test_a_client_that_has_left(caplog):
    """Nothing is sent to it, and the exception goes to the server as without amends."""

    async def app(scope, receive, send):
        await receive()
        await send({"type": "websocket.accept"})
        await receive()
        raise ConflictError

    with pytest.raises(ConflictError):
        await exchange(Problems(app), {"type": "websocket.connect"}, {"type": "websocket.disconnect"})


async def test_an_exception_after_the_close(caplog):
    """It is logged with its traceback; nothing more is sent."""

    async def app(scope, receive, send):
        await send({"type": "websocket.accept"})
        await send({"type": "websocket.close", "code": 1000})
        raise RuntimeError(SECRET)

    sent = await exchange(Problems(app))
    assert [message["type"] for message in sent] == ["websocket.accept", "websocket.close"]
    assert "after its WebSocket was closed" in caplog.text


async def test_a_close_while_an_exception_is_handled():
    """A handler that catches an exception and closes keeps its own code and reason."""

    async def app(scope, receive, send):
        await send({"type": "websocket.accept"})
        try:
            raise ValueError
        except ValueError:
            await send({"type": "websocket.close", "code": 4000, "reason": "mine"})

    assert (await exchange(Problems(app)))[-1] == {"type": "websocket.close", "code": 4000, "reason": "mine"}


async def test_a_plain_denial_is_completed():
    """An application that answers with a bare status gets a problem document; one of its own stays."""

    async def app(scope, receive, send):
        start = {"type": "websocket.http.response.start", "status": 401, "headers": []}
        if scope["path"] == "/own":
            start = {**start, "headers": [(b"content-type", b"application/xml")]}
        await send(start)
        await send({"type": "websocket.http.response.body", "body": b""})

    extensions = {"websocket.http.response": {}}
    start, body = await exchange(Problems(app), extensions=extensions)
    assert start["type"] == "websocket.http.response.start"
    assert dict(start["headers"])[b"www-authenticate"] == b"Bearer"
    assert json.loads(body["body"])["code"] == "UNAUTHENTICATED"
    start, body = await exchange(Problems(app), extensions=extensions, path="/own")
    assert (dict(start["headers"]), body["body"]) == ({b"content-type": b"application/xml"}, b"")


async def test_the_reason_fits_a_close_frame():
    """At most 123 bytes, without control characters."""

    async def app(scope, receive, send):
        await send({"type": "websocket.accept"})
        raise ConflictError("ä\n" * 500)

    reason = (await exchange(Problems(app)))[-1]["reason"]
    assert 120 <= len(reason.encode()) <= 123
    assert "\n" not in reason


MIDDLEWARE = {
    "problems": Problems,
    "idempotent": lambda app: Idempotent(app, "memory:"),
    "cancellable": lambda app: Cancellable(app, "memory:"),
    "limited": lambda app: Limited(app, "1/minute"),
    "all": lambda app: Cancellable(Idempotent(Limited(Problems(app), "1/minute"), "memory:"), "memory:"),
}


@pytest.mark.parametrize("kind", ["custom", "webtransport"])
@pytest.mark.parametrize("name", MIDDLEWARE)
async def test_other_types_pass(name, kind):
    """Types that amends does not know are left alone by every middleware, and so are their failures."""
    seen = []

    async def app(scope, receive, send):
        seen.append((scope, await receive()))
        await send({"type": f"{kind}.ok"})
        raise RuntimeError(SECRET)

    for _ in range(3):
        with pytest.raises(RuntimeError):
            await exchange(MIDDLEWARE[name](app), {"type": f"{kind}.begin"}, type=kind)
    assert [scope["type"] for scope, _ in seen] == [kind] * 3


@pytest.mark.parametrize("name", MIDDLEWARE)
async def test_the_lifespan_passes(name):
    """The application gets the server's events, and the server its answers."""

    async def app(scope, receive, send):
        for event in ("startup", "shutdown"):
            assert (await receive())["type"] == f"lifespan.{event}"
            await send({"type": f"lifespan.{event}.complete"})

    sent = await exchange(
        MIDDLEWARE[name](app),
        {"type": "lifespan.startup"},
        {"type": "lifespan.shutdown"},
        type="lifespan",
        state={},
    )
    assert [message["type"] for message in sent] == [
        "lifespan.startup.complete",
        "lifespan.shutdown.complete",
    ]


@pytest.mark.parametrize("name", MIDDLEWARE)
async def test_sockets_pass_every_middleware(name):
    """None of them counts, keys or cancels a WebSocket."""

    async def app(scope, receive, send):
        assert (await receive())["type"] == "websocket.connect"
        await send({"type": "websocket.accept"})
        await send({"type": "websocket.close", "code": 1000})

    for _ in range(3):
        sent = await exchange(MIDDLEWARE[name](app), {"type": "websocket.connect"})
        assert [message["type"] for message in sent] == ["websocket.accept", "websocket.close"]


@asynccontextmanager
async def refusing_lifespan(app):
    raise ConflictError("No stock")
    yield


async def test_a_lifespan_that_fails():
    """The server gets the failure as the framework reports it."""
    app = Starlette(lifespan=refusing_lifespan)
    amends.bindings.starlette.install(app)
    sent = []

    async def send(message):
        sent.append(message)

    with pytest.raises(ConflictError):
        await app({"type": "lifespan", "state": {}}, messages({"type": "lifespan.startup"}), send)
    assert sent[0]["type"] == "lifespan.startup.failed"


async def test_http_beside_sockets():
    """The same application answers requests as before."""
    app = in_starlette()
    transport = httpx2.ASGITransport(app=app)
    async with httpx2.AsyncClient(transport=transport, base_url="http://shop.example") as client:
        assert (await client.get("/nowhere")).json()["code"] == "NOT_FOUND"
