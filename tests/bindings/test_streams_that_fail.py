"""Streams that fail before their first chunk are answered with a problem document; later ones cannot be."""

import asyncio
import json
import logging

import httpx2
import pytest
from fastapi import FastAPI
from fastapi.responses import StreamingResponse as FastAPIStream
from litestar import Litestar
from litestar import get as litestar_get
from litestar.params import FromPath
from litestar.response import Stream
from quart import Quart
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.responses import StreamingResponse
from starlette.routing import Route

import amends.bindings.fastapi
import amends.bindings.starlette
from amends.bindings.asgi import Problems
from amends.errors import ConflictError
from tests.http.serving import serve

SECRET = "s3cr3t of db.internal"


async def parts(kind):
    if kind == "typed":
        raise ConflictError("The export changed")
    if kind == "bug":
        raise RuntimeError(SECRET)
    if kind == "http":
        raise HTTPException(403, "Ask Ann for access")
    yield b"one "
    if kind == "late":
        raise RuntimeError(SECRET)
    yield b"two"


def in_starlette(*middleware):
    async def page(request):
        return StreamingResponse(parts(request.path_params["kind"]))

    app = Starlette(routes=[Route("/{kind}", page)], middleware=[Middleware(each) for each in middleware])
    amends.bindings.starlette.install(app)
    return app


def in_fastapi():
    app = FastAPI()
    amends.bindings.fastapi.install(app)

    @app.get("/{kind}")
    async def page(kind: str):
        return FastAPIStream(parts(kind))

    return app


def in_litestar():
    @litestar_get("/{kind:str}")
    async def page(kind: FromPath[str]) -> Stream:
        return Stream(parts(kind))

    return Problems(Litestar([page], logging_config=None))


def in_quart():
    app = Quart("shop")

    @app.get("/<kind>")
    async def page(kind):
        return parts(kind)

    return Problems(app)


class Passing(BaseHTTPMiddleware):
    async def dispatch(self, request, call_next):
        return await call_next(request)


def bare():
    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        async for part in parts(scope["path"].removeprefix("/")):
            await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    return Problems(app)


def wrapped():
    return in_starlette(Passing)


FRAMEWORKS = [bare, in_starlette, wrapped, in_fastapi, in_litestar, in_quart]


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("framework", FRAMEWORKS)
async def test_before_the_first_chunk(framework):
    """P1: a problem document instead of 200 and a stream that is cut; a stream that works is unchanged."""
    with serve(framework()) as url:
        async with httpx2.AsyncClient(base_url=url) as client:
            for kind, status, detail in (
                ("typed", 409, "The export changed"),
                ("bug", 500, "Something went wrong inside the service"),
                ("http", 403, "Ask Ann for access"),
            ):
                response = await client.get(f"/{kind}")
                assert response.headers["content-type"] == "application/problem+json", kind
                document = response.json()
                assert (response.status_code, document["status"], document["detail"]) == (
                    status,
                    status,
                    detail,
                )
            assert (await client.get("/fine")).text == "one two"
            if framework is not wrapped:
                # Starlette's BaseHTTPMiddleware ends a stream that fails as if it were complete, also without amends.
                with pytest.raises(httpx2.RemoteProtocolError):
                    await client.get("/late")


def exchange(app, *, headers=()):
    """Return a task that sends a request to an application, and the list of the messages that it sends."""
    sent = []

    async def receive():
        await asyncio.Event().wait()

    async def send(message):
        sent.append(message)

    scope = {"type": "http", "method": "GET", "path": "/", "headers": list(headers)}
    return asyncio.ensure_future(Problems(app)(scope, receive, send)), sent


async def until(condition):
    while not condition():
        await asyncio.sleep(0.005)


START = {"type": "http.response.start", "status": 200, "headers": []}
EVENTS = {**START, "headers": [(b"Content-Type", b"text/event-stream; charset=utf-8")]}
COMPLETE = {**START, "headers": [(b"content-length", b"3")]}


async def test_a_slow_stream_is_held_at_most_a_tenth_of_a_second():
    """Then its start is sent, and a failure cuts it."""
    release = asyncio.Event()

    async def app(scope, receive, send):
        await send(START)
        await release.wait()
        raise ConflictError

    loop = asyncio.get_running_loop()
    began = loop.time()
    task, sent = exchange(app)
    await until(lambda: sent)
    assert loop.time() - began >= 0.09
    assert sent == [START]
    release.set()
    with pytest.raises(ConflictError):
        await task
    assert sent == [START]


@pytest.mark.parametrize("start", [EVENTS, COMPLETE])
async def test_what_is_not_held(start):
    """The headers of server-sent events, which readers wait for, and of a response that states its length."""
    sent_at_once = []

    async def app(scope, receive, send):
        await send(start)
        sent_at_once.extend(sent)
        await send({"type": "http.response.body", "body": b"one"})

    task, sent = exchange(app)
    await task
    assert sent_at_once == [start]


async def test_chunks_after_a_late_start_keep_their_order():
    """The chunk waits for a start that is being sent."""
    sent = []

    async def send(message):
        await asyncio.sleep(0.05)
        sent.append(message["type"])

    async def app(scope, receive, send):
        await send(START)
        await asyncio.sleep(0.12)
        await send({"type": "http.response.body", "body": b"one", "more_body": True})
        await send({"type": "http.response.body", "body": b"two"})

    await Problems(app)({"type": "http", "method": "GET", "path": "/", "headers": []}, None, send)
    assert sent == ["http.response.start", "http.response.body", "http.response.body"]


async def test_a_client_that_leaves_ends_the_wait():
    """The server cancels the application: nothing is sent afterwards, and no timer stays."""

    async def app(scope, receive, send):
        await send(START)
        await asyncio.Event().wait()

    task, sent = exchange(app)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.sleep(0.15)
    assert sent == []


async def test_other_messages_and_an_end_without_a_body():
    """What comes before the first chunk is sent after the start; an application that ends without a body sent its start."""

    async def trailing(scope, receive, send):
        await send(START)
        await send({"type": "http.response.pathsend", "path": "/x"})

    async def ending(scope, receive, send):
        await send(START)

    task, sent = exchange(trailing)
    await task
    assert [message["type"] for message in sent] == ["http.response.start", "http.response.pathsend"]
    task, sent = exchange(ending)
    await task
    assert sent == [START]


async def test_without_asyncio():
    """In another event loop the start is sent at once."""

    async def app(scope, receive, send):
        await send(START)
        raise ConflictError

    sent = []

    async def send(message):
        sent.append(message)

    logging.getLogger("amends.http").disabled = True
    try:
        coroutine = Problems(app)({"type": "http", "method": "GET", "path": "/", "headers": []}, None, send)
        await asyncio.to_thread(drive, coroutine)
    finally:
        logging.getLogger("amends.http").disabled = False
    assert sent == [START]


def drive(coroutine):
    """Run a coroutine that never waits, without an event loop."""
    with pytest.raises(ConflictError):
        coroutine.send(None)


def test_the_document_is_whole():
    """In process, with every member of a problem."""

    async def run():
        transport = httpx2.ASGITransport(app=in_starlette())
        async with httpx2.AsyncClient(transport=transport, base_url="http://shop.example") as client:
            return (await client.get("/typed")).text

    document = json.loads(asyncio.run(run()))
    assert {"type", "title", "status", "detail", "trace_id", "is_retriable", "suggestions"} <= set(document)
