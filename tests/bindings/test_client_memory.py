"""Our transports over transports that answer from memory, as tests of applications use them."""

import asyncio
import gzip
import io
from unittest.mock import patch

import httpx
import httpx2
import pytest
import requests
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

from amends import FaultError
from amends.bindings.httpx import AsyncTransport, Transport
from amends.bindings.requests import Adapter
from amends.errors import NotFoundError, RateLimitedError

URL = "https://shop.example/orders"
MODULES = pytest.mark.parametrize("module", [httpx2, httpx], ids=["httpx2", "httpx"])
KINDS = pytest.mark.parametrize("kind", ["sync", "async"])


def call(module, kind, inner, *, method="GET", options=None, url=URL, **request):
    """Send one request through our transport over `inner`, and return the response."""
    if kind == "sync":
        with module.Client(transport=Transport(inner, **(options or {}))) as client:
            return client.request(method, url, **request)

    async def run():
        async with module.AsyncClient(transport=AsyncTransport(inner, **(options or {}))) as client:
            return await client.request(method, url, **request)

    return asyncio.run(run())


BODIES = {
    "content": {"content": b"three trains"},
    "text": {"text": "three trains"},
    "html": {"html": "<p>three trains</p>"},
    "json": {"json": {"trains": 3}},
    "none": {},
}


@MODULES
@KINDS
@pytest.mark.parametrize("body", BODIES)
def test_an_answer_in_memory_is_returned_unchanged(module, kind, body, clock):
    """`Response(content=…)` and its kind: the very response of the inner transport, after failures too."""
    for failures in (0, 1):
        made = [module.Response(503) for _ in range(failures)] + [module.Response(200, **BODIES[body])]
        scripted = iter(made)
        found = call(module, kind, module.MockTransport(lambda _: next(scripted)))  # noqa: B023 - called at once
        assert found is made[-1]
        assert found.content == module.Response(200, **BODIES[body]).content


@MODULES
@KINDS
@pytest.mark.parametrize("method", ["GET", "POST", "HEAD", "DELETE"])
def test_failures_in_memory_are_typed(module, kind, method, clock):
    """A refusal of MockTransport is repeated where that is safe, and raised as a typed error with its response."""
    statuses = []

    def respond(request):
        statuses.append(request.method)
        return module.Response(429, headers={"Retry-After": "1"}, json={"detail": "slowly"})

    with pytest.raises(RateLimitedError) as caught:
        call(module, kind, module.MockTransport(respond), method=method)
    assert len(statuses) > 1
    assert caught.value.response.json() == {"detail": "slowly"}
    assert isinstance(caught.value.response, module.Response)


@MODULES
@KINDS
def test_a_compressed_answer_in_memory_is_read(module, kind, clock):
    """Failed and successful ones; a stream of bytes is as good as content."""
    packed, headers = gzip.compress(b'{"code": "NOT_FOUND"}'), {"content-encoding": "gzip"}
    for body in ({"content": packed}, {"stream": module.ByteStream(packed)}):
        found = call(
            module,
            kind,
            module.MockTransport(lambda _: module.Response(200, headers=headers, **body)),  # noqa: B023
        )
        assert found.text == '{"code": "NOT_FOUND"}'
        with pytest.raises(NotFoundError) as caught:
            call(
                module,
                kind,
                module.MockTransport(lambda _: module.Response(404, headers=headers, **body)),  # noqa: B023
            )
        assert caught.value.response.json() == {"code": "NOT_FOUND"}


@MODULES
@KINDS
def test_a_failure_inside_an_answer_in_memory_is_found(module, kind, clock):
    """A known vendor's successful answer that reports a failure: repeated or raised as over a network."""
    throttled = {"errors": [{"message": "later", "extensions": {"code": "THROTTLED"}}], "data": None}
    scripted = iter([module.Response(200, json=throttled), module.Response(200, json={"data": {"shop": 1}})])
    url = "https://shop.example/graphql"
    found = call(
        module,
        kind,
        module.MockTransport(lambda _: next(scripted)),
        url=url,
        method="POST",
        json={"query": "{shop}"},
        options={"keyed": True},
    )
    assert found.json() == {"data": {"shop": 1}}
    refused = {"errors": [{"message": "no", "extensions": {"code": "FORBIDDEN"}}], "data": None}
    inner = module.MockTransport(lambda _: module.Response(200, json=refused))
    with pytest.raises(FaultError) as caught:
        call(module, kind, inner, url=url, method="POST", json={"query": "{shop}"})
    assert caught.value.response.json() == refused
    found = call(module, kind, inner, url=url, method="POST", json={}, options={"raises": "nothing"})
    assert found.json() == refused


@MODULES
@KINDS
def test_the_stream_of_a_model_in_memory_is_watched(module, kind, clock):
    """An event stream as content: a failure before the first output is repeated."""
    bad = b'data: {"error": {"type": "server_error", "code": "server_error", "message": "later"}}\n\n'
    good = b'data: {"choices": [{"delta": {"content": "hi"}}]}\n\ndata: [DONE]\n\n'
    headers = {"content-type": "text/event-stream"}
    scripted = iter([module.Response(200, headers=headers, content=each) for each in (bad, good)])
    found = call(
        module,
        kind,
        module.MockTransport(lambda _: next(scripted)),
        method="POST",
        url="https://api.openai.com/v1/chat/completions",
        json={"stream": True},
    )
    assert found.content == good


@MODULES
def test_streams_of_generators(module, clock):
    """A generator serves one kind of client; its answer is watched and complete."""

    async def parts():
        yield b"three "
        yield b"trains"

    found = call(module, "async", module.MockTransport(lambda _: module.Response(200, content=parts())))
    assert found.text == "three trains"
    found = call(
        module,
        "sync",
        module.MockTransport(lambda _: module.Response(200, content=iter([b"three ", b"trains"]))),
    )
    assert found.text == "three trains"


@MODULES
def test_wsgi_and_asgi_applications(module, clock):
    """The libraries' transports that call an application."""
    refusals = [429]

    def wsgi(environ, start_response):
        status = "429 Too Many Requests" if refusals else "200 OK"
        if refusals:
            refusals.pop()
        start_response(status, [("Content-Type", "text/plain")])
        return [b"three trains"]

    assert call(module, "sync", module.WSGITransport(wsgi)).text == "three trains"
    statuses = [429, 200]

    def orders(request):
        return JSONResponse({"trains": 3}, statuses.pop(0))

    app = Starlette(routes=[Route("/orders", orders)])
    assert call(module, "async", module.ASGITransport(app)).json() == {"trains": 3}
    assert (refusals, statuses) == ([], [])


def test_an_answer_that_a_mock_made_of_a_file(clock):
    """`raw` may be any file: requests' own adapter is patched to return it."""
    made = requests.Response()
    made.status_code, made.raw, made.url = 200, io.BytesIO(b"three trains"), URL
    with patch("requests.adapters.HTTPAdapter.send", return_value=made), requests.Session() as client:
        client.mount("https://", Adapter())
        assert client.get(URL).text == "three trains"
    made = requests.Response()
    made.status_code, made.url, made._content = 200, URL, b"three trains"
    with patch("requests.adapters.HTTPAdapter.send", return_value=made), requests.Session() as client:
        client.mount("https://", Adapter())
        assert client.get(URL).text == "three trains"
