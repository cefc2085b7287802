"""Calls of models: repeated where they only compute, so that no call is lost that the official SDK would have saved."""

import asyncio
import json

import openai
import pytest

from amends import vendors
from amends.core.policy import Policy
from amends.gateway.config import UpstreamConfig
from tests.gateway.peers import OK, Upstream, answer, http, serving
from tests.gateway.test_http_upstream import ask

CHAT = {
    "id": "c", "object": "chat.completion", "created": 1, "model": "m",
    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "hi"}}],
}  # fmt: skip
GOOD = answer(200, json.dumps(CHAT).encode(), b"content-type: application/json")
STREAM = (
    b'data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"hi"}}]}\n\n'
    b"data: [DONE]\n\n"
)


def failed(status, kind="server_error", *headers):
    body = json.dumps({"error": {"message": "x", "type": kind, "code": None}}).encode()
    return answer(status, body, b"content-type: application/json", *headers)


def streamed(data):
    return answer(200, data, b"content-type: text/event-stream")


def sdk(gateway):
    return openai.AsyncOpenAI(base_url=f"{gateway.url}/v1", api_key="k", max_retries=0)


FAULTS = {
    **{f"{status}": [failed(status)] for status in (408, 409, 429, 500, 502, 503, 504)},
    "two 500": [failed(500), failed(500)],
    "429 with a wait": [failed(429, "rate_limit", b"retry-after: 1")],
    "closed": ["close"],
    "garbage": [b"\0\1\r\n\r\n"],
    "an HTML page": [answer(503, b"<html>busy</html>", b"content-type: text/html")],
}


@pytest.mark.parametrize("name", FAULTS)
async def test_the_sdk_without_its_own_retries_gets_its_answer(name):
    """What the defaults of OpenAI's SDK recover from, the gateway does, with `max_retries=0` as its docs advise."""
    async with (
        Upstream(*FAULTS[name], GOOD) as up,
        serving(UpstreamConfig(name="models", url=up.url, vendor="openai")) as gateway,
    ):
        async with sdk(gateway) as client:
            found = await client.chat.completions.create(
                model="m", messages=[{"role": "user", "content": "x"}]
            )
        assert found.choices[0].message.content == "hi"
        assert len(up.requests) == len(FAULTS[name]) + 1


@pytest.mark.parametrize(
    "first",
    [
        b'event: error\ndata: {"error":{"message":"busy","type":"overloaded_error","code":"server_overloaded"}}\n\n',
        (
            b'event: response.created\ndata: {"type":"response.created"}\n\n'
            b'event: error\ndata: {"type":"error","error":{"message":"busy","code":"server_overloaded","type":"x"}}\n\n'
        ),
    ],
)
async def test_an_overload_before_the_answer_has_begun_is_repeated(first):
    """The SDK itself gives up then. Events that only announce the answer are held back for a moment."""
    async with (
        Upstream(streamed(first), streamed(STREAM)) as up,
        serving(http(up, vendor="openai")) as gateway,
    ):
        async with sdk(gateway) as client:
            stream = await client.chat.completions.create(
                model="m", messages=[{"role": "user", "content": "x"}], stream=True
            )
            assert [part.choices[0].delta.content async for part in stream] == ["hi"]
        assert len(up.requests) == 2


async def post(gateway, body, *headers, path="/v1/responses"):
    given = (b"content-type: application/json", *headers)
    return await ask(gateway, path, *given, method="POST", body=json.dumps(body).encode())


@pytest.mark.parametrize(
    ("body", "path", "tries"),
    [
        ({"input": "x"}, "/v1/responses", 2),
        ({"input": "x", "tools": [{"type": "mcp", "server_url": "https://x"}]}, "/v1/responses", 1),
        ({"input": "x", "tools": [{"type": "web_search"}]}, "/v1/responses", 1),
        ({"input": "x", "background": True}, "/v1/responses", 1),
        ({"input": "x", "conversation": "conv_1"}, "/v1/responses", 1),
        ({"input": "x", "store": True}, "/v1/responses", 1),
        ({"input": [{"content": [{"file_id": "file-1"}]}]}, "/v1/responses", 1),
        ({"purpose": "batch"}, "/v1/batches", 1),
        ({"input": "x" * 400_000}, "/v1/responses", 2),
    ],
)
async def test_only_what_computes_is_repeated(body, path, tries):
    """A 500 after which it may have been done: repeated if that costs its price only. Long conversations are kept for it."""
    async with Upstream(failed(500), GOOD) as up, serving(http(up, vendor="openai")) as gateway:
        assert (await post(gateway, body, path=path))[0] == (200 if tries == 2 else 500)
        assert len(up.requests) == tries
        assert gateway.upstreams[0].stats.recomputed == tries - 1


async def test_without_a_proof_of_the_service_nothing_is_assumed():
    """A route of that name at an unknown address may do anything; the user's word or the host proves the service."""
    async with Upstream(failed(500), GOOD) as up:
        async with serving(http(up)) as gateway:
            assert (await post(gateway, {"input": "x"}))[0] == 500
        vendors.hosts({up.url: "openai"})
        up.script = [failed(500), GOOD]
        async with serving(http(up)) as gateway:
            assert (await post(gateway, {"input": "x"}))[0] == 200


async def test_repeats_of_computations_can_be_turned_off():
    """`policy = { repeat_computations = false }`: refusals are still repeated, what may have been computed is not."""
    async with Upstream(failed(500), GOOD) as up, serving(
        http(up, vendor="openai", repeat_computations=False)
    ) as gateway:  # fmt: skip
        assert (await post(gateway, {"input": "x"}))[0] == 500
        up.script = [failed(429, "rate_limit"), GOOD]
        assert (await post(gateway, {"input": "x"}))[0] == 200


@pytest.mark.parametrize(("headers", "tries"), [((), 1), ((b"x-stainless-read-timeout: 600",), 2)])
async def test_after_the_gateways_own_time_out_the_callers_limit_counts(headers, tries):
    """Nobody knows whether a caller still waits that long, unless it says so."""
    policy = Policy(attempts=2)
    async with (
        Upstream("hang") as up,
        serving(http(up, vendor="openai", timeout=0.3, policy=policy)) as gateway,
    ):
        assert (await post(gateway, {"input": "x"}, *headers))[0] == 504
        assert len(up.requests) == tries


async def test_a_stream_that_has_begun_is_not_repeated():
    """After its first output the stream passes as it is, with the failure in it."""
    begun = (
        STREAM.partition(b"data: [DONE]")[0] + b'data: {"error":{"message":"busy","type":"server_error"}}\n\n'
    )
    async with Upstream(streamed(begun), OK) as up, serving(http(up, vendor="openai")) as gateway:
        assert (await post(gateway, {"input": "x", "stream": True}))[2].endswith(begun)
        assert len(up.requests) == 1


async def test_many_large_bodies_do_not_fill_the_memory():
    """Beyond a bound they are streamed, and not repeated."""
    async with Upstream(failed(500), GOOD) as up, serving(http(up, vendor="openai")) as gateway:
        gateway.upstreams[0]._held_bytes = 128 * 1024 * 1024
        assert (await post(gateway, {"input": "x" * 400_000}))[0] == 500
        assert gateway.upstreams[0]._held_bytes == 128 * 1024 * 1024
        assert (await asyncio.gather(post(gateway, {"input": "x"})))[0][0] == 200
