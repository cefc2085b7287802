"""`Idempotent` in the other order, where keys and answers are the same, and requests that are cancelled."""

import asyncio
from collections import Counter

import httpx2
import pytest
from fastapi import FastAPI, Request
from litestar import Litestar, post
from litestar import Request as LitestarRequest
from litestar.params import FromPath
from quart import Quart
from quart import request as quart_request
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route

from amends import stores
from amends.bindings.asgi import Problems
from amends.bindings.starlette import install
from amends.durable.batch import wait_for_background
from amends.errors import ServiceUnavailableError
from amends.http.idempotency import Idempotent

CALLS = Counter()


def act(kind, key):
    """Fail at the first call with a key: without an effect, perhaps with one, or by a bug."""
    CALLS[key] += 1
    if CALLS[key] == 1:
        if kind == "bug":
            raise KeyError("s3cr3t")
        raise ServiceUnavailableError("Later", retry_after=1, executed=kind)
    return "done"


def raw():
    async def app(scope, receive, send):
        text = act(scope["path"][1:], dict(scope["headers"])[b"idempotency-key"].decode())
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": text.encode()})

    return app


def starlette():
    async def route(request):
        return PlainTextResponse(act(request.path_params["kind"], request.headers["idempotency-key"]))

    return Starlette(routes=[Route("/{kind}", route, methods=["POST"])])


def fastapi():
    app = FastAPI()

    @app.post("/{kind}")
    def route(kind: str, request: Request):
        return act(kind, request.headers["idempotency-key"])

    return app


def quart():
    app = Quart("quart")

    @app.post("/<kind>")
    async def route(kind):
        return act(kind, quart_request.headers["idempotency-key"])

    return app


def litestar():
    @post("/{kind:str}", status_code=200)
    async def route(kind: FromPath[str], request: LitestarRequest) -> str:
        return act(kind, request.headers["idempotency-key"])

    return Litestar([route], logging_config=None)


def below_problems(app):
    return Problems(Idempotent(app(), "memory:"))


class Failing(BaseHTTPMiddleware):
    async def dispatch(self, request, call_next):
        return PlainTextResponse(act(request.url.path[1:], request.headers["idempotency-key"]))


def in_middleware(app):
    """The error is raised in a middleware that `Idempotent` is around."""
    app = app()
    install(app)
    app.add_middleware(Failing)
    app.add_middleware(Idempotent, store="memory:")
    return app


class Passing(BaseHTTPMiddleware):
    async def dispatch(self, request, call_next):
        return await call_next(request)


def around_a_mount(app):
    """The plain 500 of the mounted application is sent from another task than the one that handles the exception."""
    routes, middleware = [Mount("/", app=app())], [Middleware(Passing)]
    return Problems(Idempotent(Starlette(routes=routes, middleware=middleware), "memory:"))


def below_middleware(app):
    return Problems(Passing(Idempotent(Starlette(routes=[Mount("/", app=app())]), "memory:")))


APPS = [
    *((below_problems, app) for app in (raw, starlette, fastapi, quart, litestar)),
    (in_middleware, starlette),
    *((outer, app) for outer in (around_a_mount, below_middleware) for app in (starlette, fastapi)),
]


@pytest.mark.parametrize(("outer", "inner"), APPS, ids=lambda each: each.__name__)
async def test_a_failure_means_the_same_for_its_key_in_any_order(outer, inner, caplog):
    """A failure without an effect releases the key, another one keeps it in doubt. Every answer has the key, once."""
    CALLS.clear()
    caplog.set_level("INFO", "amends.http")
    app = outer(inner)
    expected = {
        "no": [(503, "SERVICE_UNAVAILABLE"), (200, None)],
        "maybe": [(503, "SERVICE_UNAVAILABLE"), (500, "EFFECT_UNKNOWN")],
        "bug": [(500, "INTERNAL_ERROR"), (500, "EFFECT_UNKNOWN")],
    }
    transport = httpx2.ASGITransport(app=app, raise_app_exceptions=False)
    async with httpx2.AsyncClient(transport=transport, base_url="http://shop.example") as client:
        for kind, answers in expected.items():
            for status, code in answers:
                caplog.clear()
                answered = await client.post(f"/{kind}", headers={"Idempotency-Key": kind})
                found = answered.json().get("code") if status >= 400 else None
                assert (answered.status_code, found) == (status, code), kind
                assert answered.headers.get_list("idempotency-key") == [kind], (kind, status)
                logged = [record for record in caplog.records if record.name == "amends.http"]
                assert [record.code for record in logged] == ([code] if code else [])


# Requests that are cancelled ----------------------------------------------------------------------------------------


class SlowTable:
    """A table whose next write is known to the store at once, or only later, and is acknowledged later."""

    def __init__(self, table, *, late):
        self.table, self.late = table, late
        self.slow = False
        self.begun, self.go = asyncio.Event(), asyncio.Event()

    def __getattr__(self, name):
        return getattr(self.table, name)

    async def create(self, *args, **more):
        return await self._write(self.table.create, *args, **more)

    async def put(self, *args, **more):
        return await self._write(self.table.put, *args, **more)

    async def _write(self, write, *args, **more):
        if not self.slow:
            return await write(*args, **more)
        self.slow = False
        result = None if self.late else await write(*args, **more)
        self.begun.set()
        await self.go.wait()
        return await write(*args, **more) if self.late else result


class SlowStore:
    def __init__(self, store, *, late=False):
        self.store, self.slow = store, SlowTable(store.table("amends.http.keys"), late=late)

    def __getattr__(self, name):
        return getattr(self.store, name)

    def table(self, name):
        return self.slow


def keyed_request(app, key, send):
    """Return the coroutine of a POST with a key."""
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/orders",
        "query_string": b"",
        "headers": [(b"idempotency-key", key), (b"content-length", b"0")],
    }

    async def receive():
        return {"type": "http.request", "body": b"", "more_body": False}

    return app(scope, receive, send)


async def status_of(app, key):
    messages = []

    async def send(message):
        messages.append(message)

    await keyed_request(app, key, send)
    return messages[0]["status"]


def counting():
    calls = []

    async def app(scope, receive, send):
        calls.append(scope["path"])
        await send({"type": "http.response.start", "status": 201, "headers": []})
        await send({"type": "http.response.body", "body": b"done"})

    return calls, app


@pytest.mark.parametrize("late", [False, True], ids=["stored", "not-stored"])
async def test_a_request_that_is_cancelled_before_it_runs_releases_its_key(late):
    """The store has the claim, or will have it, and the request did not run: the repeat runs, and is not in doubt."""
    calls, inner = counting()
    async with await stores.open("memory:") as store:
        slow = SlowStore(store, late=late)
        app = Idempotent(Problems(inner), slow)
        slow.slow.slow = True
        task = asyncio.ensure_future(status_of(app, b"a"))
        await slow.slow.begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        slow.slow.go.set()
        await wait_for_background()
        assert calls == []
        assert (await status_of(app, b"a"), len(calls)) == (201, 1)
        assert (await status_of(app, b"a"), len(calls)) == (201, 1)


@pytest.mark.parametrize("late", [False, True], ids=["stored", "not-stored"])
async def test_a_response_is_stored_if_the_request_is_cancelled_meanwhile(late):
    """The handler is done and its response is being stored: the repeat gets that response."""
    calls, inner = counting()
    async with await stores.open("memory:") as store:
        slow = SlowStore(store, late=late)

        async def application(scope, receive, send):
            slow.slow.slow = True
            await inner(scope, receive, send)

        app = Idempotent(Problems(application), slow)
        task = asyncio.ensure_future(status_of(app, b"a"))
        await slow.slow.begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        slow.slow.go.set()
        await wait_for_background()
        assert (await status_of(app, b"a"), len(calls)) == (201, 1)
