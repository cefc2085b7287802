"""Clients of known vendors: failures inside successful answers, routes that only compute, and streams of models."""

import asyncio
import json

import aiohttp
import httpx
import httpx2
import pytest
import requests

from amends import FaultError, Policy, Upstream
from amends.bindings.aiohttp import recovering
from amends.bindings.httpx import AsyncTransport, Transport
from amends.bindings.requests import Adapter
from tests.bindings.clients import client as client  # noqa: PLC0414 - a fixture
from tests.http.raw_server import answer, raw_server

JSON = {"Content-Type": "application/json"}
SSE = {"Content-Type": "text/event-stream"}


def document(value, status=200, **headers):
    return answer(status, json.dumps(value).encode(), headers={**JSON, **headers})


def events(*values):
    return answer(
        200, b"".join(b"data: " + json.dumps(each).encode() + b"\n\n" for each in values), headers=SSE
    )


def token(text):
    return {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"content": text}}]}


ROLE = {
    "object": "chat.completion.chunk",
    "choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}],
}
OVERLOAD = {"error": {"type": "overloaded_error", "message": "x"}}
CHAT = "v1/chat/completions"


def test_a_failure_inside_a_success_is_repeated(client, clock):
    """Slack's rate limit with status 200: the call is sent again, and the caller gets the answer."""
    with raw_server(document({"ok": False, "error": "ratelimited"}), document({"ok": True})) as server:
        got = client.call("POST", server.url, content=b"{}", options={"vendor": "slack"})
    assert json.loads(got.body) == {"ok": True}
    assert len(server.requests) == 2


def test_a_refusal_inside_a_success_is_raised(client, clock):
    """A failure that a repeat cannot help is a typed error at once."""
    with (
        raw_server(document({"ok": False, "error": "invalid_auth"})) as server,
        pytest.raises(FaultError) as caught,
    ):
        client.call("POST", server.url, content=b"{}", options={"vendor": "slack"})
    assert (caught.value.fault.code, len(server.requests)) == ("UNAUTHENTICATED", 1)
    assert caught.value.decision.action == "fix"


def test_a_failure_inside_a_success_is_returned_on_request(client, clock):
    """`raises="nothing"`: the last answer is returned as it is."""
    refused = {"ok": False, "error": "invalid_auth"}
    with raw_server(document(refused)) as server:
        options = {"vendor": "slack", "raises": "nothing"}
        got = client.call("POST", server.url, content=b"{}", options=options)
    assert (got.status, json.loads(got.body)) == (200, refused)


def test_without_a_vendor_a_success_is_a_success(client, clock):
    """Arbitrary JSON is never guessed at; GraphQL is known by its path."""
    refused = {"ok": False, "error": "ratelimited"}
    with raw_server(document(refused)) as server:
        assert json.loads(client.call("GET", server.url).body) == refused
    failed = {"errors": [{"message": "x", "extensions": {"code": "UNAUTHENTICATED"}}], "data": None}
    with raw_server(document(failed)) as server, pytest.raises(FaultError) as caught:
        client.call("POST", f"{server.url}/graphql", content=b"{}")
    assert caught.value.fault.code == "UNAUTHENTICATED"


def test_a_partial_graphql_answer_is_returned(client, clock):
    """Data with errors is an answer: each error is decided by itself."""
    partly = {"errors": [{"message": "x", "path": ["a"]}], "data": {"b": 1}}
    with raw_server(document(partly)) as server:
        assert json.loads(client.call("POST", f"{server.url}/graphql", content=b"{}").body) == partly


def test_a_route_that_only_computes_is_repeated_without_a_key(client, clock):
    """A 500 of a chat route is repeated; the same from another route is not, because it may have had its effect."""
    ok, failed = document({"id": "c"}), document({"error": {"message": "x", "type": "server_error"}}, 500)
    with raw_server(failed, ok) as server:
        options = {"vendor": "openai", "keys": False}
        assert client.call("POST", f"{server.url}/{CHAT}", content=b"{}", options=options).status == 200
    with raw_server(failed, ok) as server, pytest.raises(FaultError) as caught:
        client.call("POST", f"{server.url}/v1/files", content=b"{}", options=options)
    assert caught.value.decision.action == "verify"


def test_exhausted_credit_is_not_repeated(client, clock):
    """OpenAI sends it as a 429; the vendor of an Upstream counts, too."""
    failed = document(
        {"error": {"message": "x", "type": "insufficient_quota", "code": "insufficient_quota"}}, 429
    )
    options = {"upstream": Upstream("models", vendor="openai")}
    with raw_server(failed) as server, pytest.raises(FaultError) as caught:
        client.call("POST", f"{server.url}/{CHAT}", content=b"{}", options=options)
    assert (caught.value.fault.code, len(server.requests)) == ("QUOTA_EXCEEDED", 1)


def test_an_unknown_vendor_is_a_lookup_error():
    """The message lists the names."""
    for make in (Transport, AsyncTransport, Adapter, recovering):
        with pytest.raises(LookupError, match="openai"):
            make(vendor="nowhere")


# Streams ------------------------------------------------------------------------------------------------------------


def stream_httpx(module, options, url, got):
    session = module.Client(transport=Transport(**options))
    with session, session.stream("POST", url, content=b"{}") as response:
        for part in response.iter_lines():
            got.append(part)


def stream_async_httpx(module, options, url, got):
    async def run():
        session = module.AsyncClient(transport=AsyncTransport(**options))
        async with session, session.stream("POST", url, content=b"{}") as response:
            async for part in response.aiter_lines():
                got.append(part)

    asyncio.run(run())


def stream_requests(_, options, url, got):
    with requests.Session() as session:
        session.mount("http://", Adapter(**options))
        for part in session.post(url, data=b"{}", stream=True).iter_lines(chunk_size=7):
            got.append(part.decode())


def stream_aiohttp(_, options, url, got):
    async def run():
        session = aiohttp.ClientSession(middlewares=[recovering(**options)])
        async with session, session.post(url, data=b"{}") as response:
            async for line in response.content:
                got.append(line.decode().strip())

    asyncio.run(run())


STREAMS = [
    (stream_httpx, httpx2), (stream_httpx, httpx), (stream_async_httpx, httpx2), (stream_async_httpx, httpx),
    (stream_requests, None), (stream_aiohttp, None),
]  # fmt: skip


@pytest.mark.parametrize(("read", "module"), STREAMS, ids=lambda each: getattr(each, "__name__", ""))
def test_a_stream_that_fails_before_the_first_token_is_repeated(read, module, clock):
    """The first event announces the role only, so nothing was delivered."""
    got = []
    with raw_server(events(ROLE, OVERLOAD), events(ROLE, token("Hi"))) as server:
        read(module, {"vendor": "openai"}, f"{server.url}/{CHAT}", got)
    assert len(server.requests) == 2
    assert [json.loads(line[6:]) for line in got if line] == [ROLE, token("Hi")]


@pytest.mark.parametrize(("read", "module"), STREAMS, ids=lambda each: getattr(each, "__name__", ""))
def test_a_stream_that_fails_after_the_first_token_is_typed(read, module, clock):
    """What came before is delivered, the failure is raised in its place, and nothing is repeated."""
    got = []
    with (
        raw_server(events(ROLE, token("Hi"), token("you"), OVERLOAD)) as server,
        pytest.raises(FaultError) as caught,
    ):
        read(module, {"vendor": "openai"}, f"{server.url}/{CHAT}", got)
    assert (caught.value.fault.code, caught.value.delivered) == ("OVERLOADED", 2)
    assert caught.value.fault.executed == "maybe"
    assert [json.loads(line[6:]) for line in got if line] == [ROLE, token("Hi"), token("you")]
    assert len(server.requests) == 1


@pytest.mark.parametrize(("read", "module"), STREAMS, ids=lambda each: getattr(each, "__name__", ""))
def test_a_stream_is_left_alone_on_request(read, module, clock):
    """`raises="nothing"`: an SDK reads the failure itself, also if it comes first and no attempt is left."""
    for sent in ((ROLE, token("Hi"), OVERLOAD), (ROLE, OVERLOAD)):
        got = []
        with raw_server(events(*sent)) as server:
            options = {"vendor": "openai", "raises": "nothing", "policy": Policy(attempts=1)}
            read(module, options, f"{server.url}/{CHAT}", got)
        assert [json.loads(line[6:]) for line in got if line] == list(sent)
